"""Who asks: roles, and the Viewer that every request carries.

A role may imply another: whoever is `admin` below also is `staff`. Two names are given: everyone with a valid
token is `signed_in`, and whoever has none is `anonymous`.

    staff = Role("staff")
    admin = Role("admin", implies=staff)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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


_NAME = re.compile(r"[A-Za-z0-9_.:-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever asks. Inside a rule, `viewer.id` and `viewer.has(role)` are traced."""

    id: str | None = None
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    signed_in: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.id, self.roles, self.scopes, self.signed_in)))

    def __hash__(self) -> int:
        return self._hash

    def has(self, role: Role) -> bool:
        """Does the viewer have the role, itself or through one that implies it?"""
        return role.name in self.roles


NOBODY = Viewer()
"""The viewer of a request without a token."""
