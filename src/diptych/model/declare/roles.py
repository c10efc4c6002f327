"""Roles, the claims of a token, and the Viewer on whose behalf a request runs.

A role may imply another: a viewer with `admin` below also has `staff`. Two names are built in: everyone with a valid
token has `signed_in`, and a viewer without one is `anonymous`.

    staff = Role("staff")
    admin = Role("admin", implies=staff)

A model may have a viewer class of its own, with more than an id and roles, made from the claims of a token. Rules can
use its fields.

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

from msgspec import Struct
from msgspec import field as default

SIGNED_IN = "signed_in"
ANONYMOUS = "anonymous"


class Role(Struct, frozen=True):
    """A role that tokens can contain and rules can test."""

    name: str
    implies: Role | tuple[Role, ...] = ()

    @property
    def implied(self) -> tuple[Role, ...]:
        """The roles that it implies directly."""
        return self.implies if isinstance(self.implies, tuple) else (self.implies,)

    def closure(self) -> frozenset[str]:
        """The names of this role and of all that it implies, transitively."""
        return frozenset({self.name}).union(*(role.closure() for role in self.implied))


signed_in = Role(SIGNED_IN)
"""Everyone with a valid token."""


class RoleBook(Struct):
    """The roles of a model by name, and their faults: a cause and a fix for each."""

    roles: dict[str, Role] = default(default_factory=dict)
    faults: dict[object, tuple[str, str]] = default(default_factory=dict)

    def note(self, role: Role) -> None:
        """Register a role and all that it implies."""
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


class Claims(Struct, frozen=True):
    """The claims of a valid token."""

    subject: str | None
    roles: frozenset[str]
    scopes: frozenset[str] | None
    expires: int
    all: Mapping[str, Any] = default(default_factory=dict)
    """All claims of the token, unprocessed."""

    def get(self, name: str) -> Any:
        """A claim by name, or None."""
        return self.all.get(name)


V = TypeVar("V", bound="Viewer")


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, slots=True)
class Viewer:
    """The user on whose behalf a request runs. Rules can use `viewer.id`, `viewer.has(role)` and the fields of the
    model's own viewer class."""

    id: str | None = None
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    signed_in: bool = False
    _hash: int = field(init=False, repr=False, compare=False)
    _known: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The values of the model's own fields in canonical form, set by the model."""
    _expires: int | None = field(init=False, repr=False, compare=False)
    """When its token expires, in seconds, set by the model."""
    _claims: Claims | None = field(init=False, repr=False, compare=False)
    """The claims that it was made of, set by the model."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        cls.__hash__ = Viewer.__hash__  # type: ignore[method-assign]  # dataclass() replaced it

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.id, self.roles, self.scopes, self.signed_in)))
        object.__setattr__(self, "_known", _NOTHING)
        object.__setattr__(self, "_expires", None)
        object.__setattr__(self, "_claims", None)

    def __hash__(self) -> int:
        return self._hash

    def knows(self, name: str) -> Any:
        """The canonical value of a field of the model's own viewer class; None if there is none."""
        return self._known.get(name)

    @property
    def expires(self) -> int | None:
        """When its token expires, in seconds since 1970; None if it never does."""
        return self._expires

    def all_known(self) -> Iterable[tuple[str, Any]]:
        """All such values by name."""
        return self._known.items()

    @classmethod
    def of(cls: type[V], claims: Claims) -> V | None:
        """Make the viewer of a token; None refuses the token. It is called on every request, so keep it fast.

        The scopes of the token apply whatever it returns, and its roles include those that they imply.
        """
        return cls(id=claims.subject, roles=claims.roles)

    def has(self, role: Role) -> bool:
        """Does the viewer have the role, directly or through one that implies it?"""
        return role.name in self.roles


def claims_of(viewer: Viewer) -> Claims | None:
    """The claims that a viewer was made of; None if it is anonymous."""
    return viewer._claims


NOBODY = Viewer()
"""The viewer of a request without a token."""
