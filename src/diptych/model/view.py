"""The model as one role sees it: its rules folded, and what it may never see gone.

Folding decides all that depends on the role alone. For a viewer who is staff, `viewer.has(staff)` is true; for
one without a token `self.author.id == viewer.id` is false. What is left of a rule is TRUE (always), FALSE
(never: the field or resource does not exist in this view) or an expression over the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.expr import (
    FALSE,
    TRUE,
    Col,
    Compare,
    Const,
    Expr,
    HasRole,
    IsNull,
    May,
    ViewerId,
    and_,
    not_,
    or_,
    rewrite,
)
from diptych.model.roles import SIGNED_IN
from diptych.model.trace import rebase


@dataclass(frozen=True, slots=True)
class Signature:
    """All of a viewer that rules can fold on."""

    signed_in: bool = False
    has_id: bool = False
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.signed_in, self.has_id, self.roles, self.scopes)))

    def __hash__(self) -> int:
        return self._hash

    def allows(self, resource: str, kind: str) -> bool:
        """Do the scopes of the token leave room for this? (`kind` is read or write.)"""
        return self.scopes is None or kind in self.scopes or f"{resource}:{kind}" in self.scopes

    def stable(self) -> tuple[object, ...]:
        """The same in every process: a set has an order of its own in each."""
        scopes = None if self.scopes is None else sorted(self.scopes)
        return (self.signed_in, self.has_id, sorted(self.roles), scopes)


@dataclass(frozen=True, slots=True, eq=False)
class FieldView:
    """A field that exists for the role; `rule` says on which rows it shows."""

    field: FieldDef
    rule: Expr


@dataclass(frozen=True, slots=True, eq=False)
class RelationView:
    """A relation that exists for the role; `link` narrows the rows of a linking resource."""

    relation: RelationDef
    rule: Expr
    link: Expr


@dataclass(frozen=True, slots=True, eq=False)
class ResourceView:
    """A resource of which the role may read rows: those for which `read` holds."""

    resource: ResourceDef
    read: Expr
    fields: Mapping[str, FieldView]
    relations: Mapping[str, RelationView]


class View:
    """Everything that one role signature may see."""

    def __init__(self, model: Mapping[str, ResourceDef], signature: Signature) -> None:
        self.model = model
        self.signature = signature
        self._read: dict[str, Expr] = {}
        readable = {name: rule for name in model if (rule := self._read_rule(name)) != FALSE}
        self.resources: Mapping[str, ResourceView] = {
            name: ResourceView(model[name], rule, self._fields(model[name]), self._relations(model[name], readable))
            for name, rule in readable.items()
        }

    def fold(self, expr: Expr, resource: str) -> Expr:
        """Decide all that depends on the role alone."""

        def leaf(part: Expr) -> Expr | None:
            match part:
                case HasRole(role):
                    return TRUE if role in self.signature.roles else FALSE
                case May(path):
                    return self._may(resource, path)
                case Compare(_, ViewerId(), _) | Compare(_, _, ViewerId()) if not self.signature.has_id:
                    return FALSE
                case IsNull(ViewerId()):
                    return FALSE if self.signature.has_id else TRUE
                case Compare(_, Const(value=left), Const(value=right)) if left is None or right is None:
                    return FALSE
            return None

        return rewrite(expr, leaf)

    def _may(self, resource: str, path: tuple[str, ...]) -> Expr:
        """The read rule of the row at the end of the path, seen from this row; no row is not readable."""
        target = resource
        there: Expr = TRUE
        for depth, step in enumerate(path):
            relation = self.model[target].relations[step]
            if relation.nullable:
                there = and_(there, not_(IsNull(Col((*path[:depth], step + "Id")))))
            target = relation.target
        return and_(there, rebase(self._read_rule(target), path))

    def _read_rule(self, name: str) -> Expr:
        if name not in self._read:
            found = self.model[name]
            rules = [self._folded(rule.role, rule.expr, name) for rule in found.rules
                     if "read" in rule.verbs and not rule.fields]  # fmt: skip
            allowed = self.signature.allows(found.path, "read")
            self._read[name] = or_(*rules) if rules and allowed else FALSE
        return self._read[name]

    def _folded(self, role: str | None, expr: Expr, resource: str) -> Expr:
        return self.fold(expr, resource) if role is None or role in self.signature.roles else FALSE

    def _field_rule(self, found: ResourceDef, name: str, roles: tuple[str, ...] | None) -> Expr:
        """TRUE for a field that nothing restricts; else the roles of ReadBy, or the rules about the field."""
        rules = [rule for rule in found.rules if "read" in rule.verbs and name in rule.fields]
        if roles is None and not rules:
            return TRUE
        by_role = TRUE if self.signature.roles.intersection(roles or ()) else FALSE
        return or_(by_role, *(self._folded(rule.role, rule.expr, found.name) for rule in rules))

    def _fields(self, found: ResourceDef) -> Mapping[str, FieldView]:
        rules = {name: self._field_rule(found, name, field.read_roles) for name, field in found.fields.items()}
        return {name: FieldView(found.fields[name], rule) for name, rule in rules.items() if rule != FALSE}

    def _relations(self, found: ResourceDef, readable: Mapping[str, Expr]) -> Mapping[str, RelationView]:
        out = {}
        for name, relation in found.relations.items():
            key = found.fields.get(name + "Id") if relation.kind == "one" else None
            rule = self._field_rule(found, name, key.read_roles if key else None)
            link = readable.get(relation.link, FALSE) if relation.link else TRUE
            if rule != FALSE and link != FALSE and relation.target in readable:
                out[name] = RelationView(relation, rule, link)
        return out


def roles_that_matter(resources: Iterable[ResourceDef]) -> frozenset[str]:
    """The roles that some rule asks about; no other can change an answer."""
    names: set[str] = {SIGNED_IN}

    def leaf(part: Expr) -> Expr | None:
        if isinstance(part, HasRole):
            names.add(part.role)
        return None

    for found in resources:
        for rule in found.rules:
            names.update({rule.role} if rule.role else ())
            rewrite(rule.expr, leaf)
        for field in found.fields.values():
            names.update(field.read_roles or (), field.write_roles or ())
            names.update(move.to.name for move in field.moves if move.to)
    return frozenset(names)
