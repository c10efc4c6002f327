"""Who asks: roles, and the Viewer that every request carries.

A role may imply another: whoever is `admin` below also is `staff`. Two names are given: everyone with a valid
token is `signed_in`, and whoever has none is `anonymous`.

    staff = Role("staff")
    admin = Role("admin", implies=staff)
"""

from __future__ import annotations

from dataclasses import dataclass

SIGNED_IN = "signed_in"
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Role:
    """A role that tokens can carry and rules can ask about."""

    name: str
    implies: Role | tuple[Role, ...] = ()

    def closure(self) -> frozenset[str]:
        """The names of this role and of all that it implies."""
        implied = self.implies if isinstance(self.implies, tuple) else (self.implies,)
        return frozenset({self.name}).union(*(role.closure() for role in implied))


signed_in = Role(SIGNED_IN)
"""Everyone with a valid token."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever asks. Inside a rule, `viewer.id` and `viewer.has(role)` are traced."""

    id: str | None = None
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    signed_in: bool = False

    def has(self, role: Role) -> bool:
        """Does the viewer have the role, itself or through one that implies it?"""
        return role.name in self.roles


NOBODY = Viewer()
"""The viewer of a request without a token."""
