"""Who asks: roles, what a token claims, and the Viewer that every request carries.

A role may imply another: whoever is `admin` below also is `staff`. Two names are given: everyone with a valid
token is `signed_in`, and whoever has none is `anonymous`.

    staff = Role("staff")
    admin = Role("admin", implies=staff)

A model may know more of its viewers than their id and roles: it declares a class of its own, and how that comes
from the claims of a token. Rules ask about its fields.

    class Member(Viewer):
        tenant: str | None = None

        @classmethod
        def of(cls, claims: Claims) -> Member:
            return cls(id=claims.subject, roles=claims.roles, tenant=claims.get("tenant"))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

SIGNED_IN = "signed_in"
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Role:
    """A role that tokens can carry and rules can ask about."""

    name: str
    implies: Role | tuple[Role, ...] = ()

    @property
    def implied(self) -> tuple[Role, ...]:
        """The roles that it implies of itself."""
        return self.implies if isinstance(self.implies, tuple) else (self.implies,)

    def closure(self) -> frozenset[str]:
        """The names of this role and of all that it implies."""
        return frozenset({self.name}).union(*(role.closure() for role in self.implied))


signed_in = Role(SIGNED_IN)
"""Everyone with a valid token."""


@dataclass(slots=True)
class RoleBook:
    """The roles of a model by name, and what is wrong with them: a cause and a fix for each."""

    roles: dict[str, Role] = field(default_factory=dict)
    faults: dict[object, tuple[str, str]] = field(default_factory=dict)

    def note(self, role: Role) -> None:
        """Keep a role and all that it implies."""
        fault = self._fault(role)
        if fault:
            self.faults.setdefault(str(role.name), fault)
        elif role.name not in self.roles:
            self.roles[role.name] = role
            for implied in role.implied:
                self.note(implied)

    def _fault(self, role: Role) -> tuple[str, str] | None:
        if not isinstance(role.name, str) or not _NAME.fullmatch(role.name):
            return "a role has no such name", "Use letters, digits, _ . : and -"
        if not all(isinstance(implied, Role) for implied in role.implied):
            return f"implies={role.implies!r} is no Role", "Write implies=staff, or a tuple of roles"
        if role.name == ANONYMOUS or (role.name == SIGNED_IN and role != signed_in):
            return "this name has a meaning of its own", "Rename it"
        if self.roles.get(role.name, role) != role:
            return "two roles have this name and imply different roles", "Declare it once and import it"
        return None


_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NAME = re.compile(r"[A-Za-z0-9_.:-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Claims:
    """What a valid token says of whoever holds it."""

    subject: str | None
    roles: frozenset[str]
    scopes: frozenset[str] | None
    expires: int
    all: Mapping[str, Any] = field(default_factory=dict)
    """Every claim as it stands in the token."""

    def get(self, name: str) -> Any:
        """A claim, or None if the token has none of this name."""
        return self.all.get(name)


V = TypeVar("V", bound="Viewer")


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever asks. Inside a rule, `viewer.id`, `viewer.has(role)` and the fields of a class of the model's own
    are traced."""

    id: str | None = None
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    signed_in: bool = False
    _hash: int = field(init=False, repr=False, compare=False)
    _known: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The values of its own fields, as rules compare them; the model fills it."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        cls.__hash__ = Viewer.__hash__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.id, self.roles, self.scopes, self.signed_in)))
        object.__setattr__(self, "_known", _NOTHING)

    def __hash__(self) -> int:
        return self._hash

    def knows(self, name: str) -> Any:
        """The value of a field of the model's own, as rules compare it; the viewer of another model has none."""
        return self._known.get(name)

    def all_known(self) -> Iterable[tuple[str, Any]]:
        """Every such value by its name."""
        return self._known.items()

    @classmethod
    def of(cls: type[V], claims: Claims) -> V | None:
        """The viewer whom a token means; asked on every request, so keep it quick. None refuses the token.

        Whatever it gives, the scopes of the token hold, and the roles bring what they imply.
        """
        return cls(id=claims.subject, roles=claims.roles)

    def has(self, role: Role) -> bool:
        """Does the viewer have the role, itself or through one that implies it?"""
        return role.name in self.roles


NOBODY = Viewer()
"""The viewer of a request without a token."""
