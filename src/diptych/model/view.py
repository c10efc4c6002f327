"""The model as one role sees it: its rules folded, and what it may never see gone.

Folding decides all that depends on the role alone. For a viewer who is staff, `viewer.has(staff)` is true;
for one without a token `self.author.id == viewer.id` is false. What is left of a rule is TRUE (always), FALSE
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
    leaves,
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
    """A relation that exists for the role: on which rows it shows, on which rows of the target the way back
    shows, and which rows of a linking resource count."""

    relation: RelationDef
    rule: Expr
    back: Expr
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
            name: self._resource(model[name], readable) for name in readable
        }

    def _resource(self, found: ResourceDef, readable: Mapping[str, Expr]) -> ResourceView:
        relations = self._relations(found, readable)
        return ResourceView(found, readable[found.name], self._fields(found), relations)

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

    def _own_rule(self, found: ResourceDef, name: str, roles: tuple[str, ...] | None) -> Expr:
        """TRUE for a field that nothing restricts; else the roles of ReadBy, or the rules about the field."""
        rules = [rule for rule in found.rules if "read" in rule.verbs and name in rule.fields]
        if roles is None and not rules:
            return TRUE
        by_role = TRUE if self.signature.roles.intersection(roles or ()) else FALSE
        return or_(by_role, *(self._folded(rule.role, rule.expr, found.name) for rule in rules))

    def _field_rule(self, found: ResourceDef, name: str) -> Expr:
        """Where a field shows. A computed field shows where all that it is made of shows."""
        made = found.fields[name].computed
        rule = self._own_rule(found, name, found.fields[name].read_roles)
        if made is None:
            return rule
        parts = [part.path for part in leaves(made) if isinstance(part, Col)]
        return and_(rule, *(self._shows(found, path) for path in parts))

    def _way_rule(self, found: ResourceDef, relation: RelationDef) -> Expr:
        key = found.fields.get(relation.name + "Id") if relation.kind == "one" else None
        return self._own_rule(found, relation.name, key.read_roles if key else None)

    def _shows(self, found: ResourceDef, path: tuple[str, ...]) -> Expr:
        """Where the value at the end of a path shows: every row on the way can be read, or is not there."""
        name, *rest = path
        if not rest:
            return self._field_rule(found, name)
        relation = found.relations[name]
        target = self.model[relation.target]
        absent = IsNull(Col((name + "Id",))) if relation.nullable else FALSE
        there = rebase(and_(self._read_rule(target.name), self._shows(target, tuple(rest))), (name,))
        return and_(self._way_rule(found, relation), or_(absent, there))

    def _fields(self, found: ResourceDef) -> Mapping[str, FieldView]:
        rules = {name: self._field_rule(found, name) for name in found.fields}
        return {name: FieldView(found.fields[name], rule) for name, rule in rules.items() if rule != FALSE}

    def _relations(self, found: ResourceDef, readable: Mapping[str, Expr]) -> Mapping[str, RelationView]:
        out: dict[str, RelationView] = {}
        for name, relation in found.relations.items():
            rule, (back, link) = self._way_rule(found, relation), self._back_rules(relation, readable)
            if FALSE not in (rule, back, link) and relation.target in readable:
                out[name] = RelationView(relation, rule, back, link)
        return out

    def _back_rules(self, relation: RelationDef, readable: Mapping[str, Expr]) -> tuple[Expr, Expr]:
        """Where the way back shows, on the rows of the target and of the link: who is related is told there too."""
        if relation.kind == "many":
            target = self.model[relation.target]
            return self._way_rule(target, target.relations[relation.inverse]), TRUE
        if relation.kind == "one":
            return TRUE, TRUE
        link = self.model[relation.link]
        ends = (link.relations[end] for end in (relation.link_mine, relation.link_theirs))
        return TRUE, and_(readable.get(link.name, FALSE), *(self._way_rule(link, end) for end in ends))


def roles_that_matter(resources: Iterable[ResourceDef]) -> frozenset[str]:
    """The roles that some rule asks about; no other can change an answer."""
    names: set[str] = {SIGNED_IN}
    for found in resources:
        for rule in found.rules:
            names.update({rule.role} if rule.role else ())
            names.update(part.role for part in leaves(rule.expr) if isinstance(part, HasRole))
        for each in found.fields.values():
            names.update(each.read_roles or (), each.write_roles or ())
            names.update(move.to.name for move in each.moves if move.to)
    return frozenset(names)
