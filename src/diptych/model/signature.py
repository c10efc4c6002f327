"""The part of a viewer that a View depends on: viewers with equal signatures share a View, and the plans made for it.

    Signature(signed_in=True, has_id=True, roles=frozenset({"staff"}))

A role is part of a signature only if some rule depends on it, so that the number of signatures stays small.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from diptych.model.declare.roles import SIGNED_IN
from diptych.model.defs import ResourceDef
from diptych.model.rules.expr import HasRole, all_leaves


class Signature(Struct, frozen=True, cache_hash=True):
    """The part of a viewer that folding depends on: roles, scopes, and which values are known."""

    signed_in: bool = False
    has_id: bool = False
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    knows: frozenset[str] = frozenset()
    """The fields of the model's viewer class that have a value."""

    def allows(self, resource: str, kind: str) -> bool:
        """Do the scopes of the token include this? (`kind` is read or write.)"""
        return self.scopes is None or kind in self.scopes or f"{resource}:{kind}" in self.scopes

    def stable(self) -> tuple[object, ...]:
        """The signature as sorted tuples, equal in every process (the order of a set is not)."""
        scopes = None if self.scopes is None else sorted(self.scopes)
        knows = (sorted(self.knows),) if self.knows else ()
        return (self.signed_in, self.has_id, sorted(self.roles), scopes, *knows)


def roles_that_matter(resources: Iterable[ResourceDef]) -> frozenset[str]:
    """The roles that some rule depends on; no other role can change an answer."""
    names: set[str] = {SIGNED_IN}
    for resource in resources:
        for rule in resource.rules:
            names.update({rule.role} if rule.role else ())
            names.update(part.role for part in all_leaves(rule.expr) if isinstance(part, HasRole))
        for definition in resource.fields.values():
            names.update(definition.read_roles or (), definition.write_roles or ())
            names.update(move.to.name for move in definition.moves if move.to)
        names.update(call.role for call in resource.calls if call.role)
        names.update(resource.audit.roles if resource.audit else ())
    return frozenset(names)
