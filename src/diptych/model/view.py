"""The model as one role sees it: its rules folded, and what it may never see gone.

Folding decides all that depends on the role alone. For a viewer who is staff, `viewer.has(staff)` is true;
for one without a token `self.author.id == viewer.id` is false. What is left of a rule is TRUE (always), FALSE
(never: the field or resource does not exist in this view) or an expression over the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from diptych.errors import Code, Fault, Refusal
from diptych.model.defs import SERVER_FIELDS, CallDef, FieldDef, QueryDef, RelationDef, ResourceDef
from diptych.model.expr import (
    FALSE,
    TRUE,
    Col,
    Compare,
    Const,
    Expr,
    Has,
    HasRole,
    IsNull,
    May,
    ViewerId,
    ViewerValue,
    all_leaves,
    and_,
    leaves,
    not_,
    or_,
    rewrite,
)
from diptych.model.paths import rebase
from diptych.model.resource import Verb
from diptych.model.roles import SIGNED_IN

Taking = Literal["create", "update", "replace"]
"""A change that takes values."""


@dataclass(frozen=True, slots=True)
class Signature:
    """All of a viewer that rules can fold on."""

    signed_in: bool = False
    has_id: bool = False
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None
    knows: frozenset[str] = frozenset()
    """The names of the viewer's own fields that have a value."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.signed_in, self.has_id, self.roles, self.scopes, self.knows)))

    def __hash__(self) -> int:
        return self._hash

    def allows(self, resource: str, kind: str) -> bool:
        """Do the scopes of the token leave room for this? (`kind` is read or write.)"""
        return self.scopes is None or kind in self.scopes or f"{resource}:{kind}" in self.scopes

    def stable(self) -> tuple[object, ...]:
        """The same in every process: a set has an order of its own in each."""
        scopes = None if self.scopes is None else sorted(self.scopes)
        knows = (sorted(self.knows),) if self.knows else ()
        return (self.signed_in, self.has_id, sorted(self.roles), scopes, *knows)


@dataclass(frozen=True, slots=True, eq=False)
class FieldView:
    """A field that exists for the role; `rule` says on which rows it shows."""

    field: FieldDef
    rule: Expr


@dataclass(frozen=True, slots=True, eq=False)
class WriteView:
    """A field that the role may write: on which new rows, and on which of those that are there."""

    field: FieldDef
    create: Expr
    update: Expr


@dataclass(frozen=True, slots=True, eq=False)
class InputView:
    """A field that a change takes: must it be given, may it be null, or may it only stand as it was?"""

    field: FieldDef
    required: bool = False
    nullable: bool = False
    fixed: bool = False


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
    """A resource of which the role may read rows: those for which `read` holds. So also create, update, delete."""

    resource: ResourceDef
    read: Expr
    fields: Mapping[str, FieldView]
    relations: Mapping[str, RelationView]
    create: Expr = FALSE
    """Which new rows the role may make; never, if it may not give a value that is required."""
    update: Expr = FALSE
    """On which rows something may be updated; what, is a matter of the fields."""
    delete: Expr = FALSE
    writes: Mapping[str, WriteView] = field(default_factory=dict)

    @property
    def searchable(self) -> Mapping[str, FieldView]:
        """The fields that can be filtered by: all but those that Python computes."""
        return {name: each for name, each in self.fields.items() if each.field.python is None}

    def may(self, verb: Verb | Literal["replace"]) -> bool:
        """Is there a row, or could there be one, on which the role may do this?"""
        match verb:
            case "read":
                return self.read != FALSE
            case "create":
                return self.create != FALSE
            case "delete":
                return self.delete != FALSE
        return self.update != FALSE

    def takes(self, verb: Taking) -> Mapping[str, InputView]:
        """What a client can give for a row, in the order of the model. A replacement takes back what was read."""
        if verb == "replace":
            known = ((name, each) for name, each in self.resource.fields.items()
                     if name in self.fields or self._may_change(name))  # fmt: skip
            return {name: self._replaces(name, each) for name, each in known}
        creates = verb == "create"
        mine = (each.field for name, each in self.writes.items()
                if (each.create != FALSE if creates else self._may_change(name)))  # fmt: skip
        return {each.name: InputView(each, creates and each.required, each.nullable) for each in mine}

    def _may_change(self, name: str) -> bool:
        return name in self.writes and self.writes[name].update != FALSE

    def _replaces(self, name: str, each: FieldDef) -> InputView:
        """Null is also what a viewer is shown who may not see the value of this row."""
        shown, mine = self.fields.get(name), self._may_change(name)
        always = shown is not None and shown.rule == TRUE and mine and self.writes[name].update == self.update
        masked = shown is not None and shown.rule != TRUE
        return InputView(each, each.required and not each.moves and always, each.nullable or masked, not mine)


@dataclass(frozen=True, slots=True, eq=False)
class ViewName:
    """Which View it was, without the rules that it folded: all that a plan may keep of it."""

    model: Mapping[str, ResourceDef]
    signature: Signature


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
        self.calls: Mapping[str, tuple[ResourceDef, CallDef]] = {
            call.root: (found, call) for found in model.values() for call in found.calls if self._may_call(found, call)
        }
        """The actions and queries that the role may call, by their root fields."""
        self.name = ViewName(model, signature)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        each = (len(found.fields) + len(found.relations) + len(found.writes) for found in self.resources.values())
        return _PER_RESOURCE * len(self.model) + _PER_FIELD * sum(each)

    def _resource(self, found: ResourceDef, readable: Mapping[str, Expr]) -> ResourceView:
        relations = self._relations(found, readable)
        writes = self._writes(found)
        wanted = (name for name, each in found.fields.items() if each.required)
        given = (writes[name].create if name in writes else FALSE for name in wanted)
        create = and_(self.rule(found, "create"), *given)
        update = or_(*(each.update for each in writes.values()))
        return ResourceView(found, readable[found.name], self._fields(found), relations,
                            create, update, self.rule(found, "delete"), writes)  # fmt: skip

    def _may_call(self, found: ResourceDef, call: CallDef) -> bool:
        """May the role call it, on a row that it may see, with an answer that it may see?"""
        seen = [call.result.resource] if call.result.resource else []
        seen += [found.name] if call.on == "row" else []
        return self.call_rule(found, call) != FALSE and all(name in self.resources for name in seen)

    def call_rule(self, found: ResourceDef, call: CallDef) -> Expr:
        """On which rows the role may call it; TRUE if on all, or on the class."""
        kind = "read" if isinstance(call, QueryDef) else "write"
        if not self.signature.allows(found.path, kind):
            return FALSE
        rules = [rule for rule in found.rules if call.on == "row" and call.attr in rule.actions]
        if rules:
            return or_(*(self._folded(rule.role, rule.expr, found.name) for rule in rules))
        return TRUE if call.role is None or call.role in self.signature.roles else FALSE

    def fold(self, expr: Expr, resource: str) -> Expr:
        """Decide all that depends on the role alone."""

        def leaf(part: Expr) -> Expr | None:
            match part:
                case HasRole(role):
                    return TRUE if role in self.signature.roles else FALSE
                case May(path):
                    return self._may(resource, path)
                case Has(relation, where, link):
                    inner = self.fold(where, self.model[resource].relations[relation].target)
                    return FALSE if inner == FALSE else Has(relation, inner, link)
                case Compare(_, left, right) if self._is_unknown(left) or self._is_unknown(right):
                    return FALSE
                case IsNull(ViewerId() | ViewerValue() as of):
                    return TRUE if self._is_unknown(of) else FALSE
                case Compare(_, Const(value=left), Const(value=right)) if left is None or right is None:
                    return FALSE
            return None

        return rewrite(expr, leaf)

    def _is_unknown(self, part: Expr) -> bool:
        """Is it something of the viewer that has no value?"""
        match part:
            case ViewerId():
                return not self.signature.has_id
            case ViewerValue(name):
                return name not in self.signature.knows
        return False

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
            self._read[name] = self.rule(self.model[name], "read")
        return self._read[name]

    def rule(self, found: ResourceDef, verb: Verb, field: str = "") -> Expr:
        """Where a verb is allowed on the row, or on a field by rules about that field."""
        if not self.signature.allows(found.path, "read" if verb == "read" else "write"):
            return FALSE
        rules = (rule for rule in found.rules if verb in rule.verbs)
        about = (rule for rule in rules if (field in rule.fields if field else not rule.fields))
        return or_(*(self._folded(rule.role, rule.expr, found.name) for rule in about))

    def _writes(self, found: ResourceDef) -> Mapping[str, WriteView]:
        """The fields that the role may write. A rule about a field allows what the rules of the row do not."""
        writes: dict[str, WriteView] = {}
        row = {verb: self.rule(found, verb) for verb in ("create", "update")}
        for name, each in found.fields.items():
            if name in SERVER_FIELDS or not each.stored:
                continue
            open_ = each.write_roles is None or self.signature.roles.intersection(each.write_roles)
            mine = TRUE if open_ else FALSE
            create = and_(row["create"], or_(mine, self.rule(found, "create", name)))
            update = or_(and_(row["update"], mine), self.rule(found, "update", name))
            if (create, update) != (FALSE, FALSE):
                writes[name] = WriteView(each, create, update)
        return writes

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
        field = found.fields[name]
        rule = self._own_rule(found, name, field.read_roles)
        parts: list[tuple[str, ...]] = [(need,) for need in field.needs]
        if field.computed is not None:
            parts += [part.path for part in leaves(field.computed) if isinstance(part, Col)]
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


class TrustedView(View):
    """The view of code that the model trusts: no rule holds it back. States and references hold for it too."""

    def __init__(self, model: Mapping[str, ResourceDef], roles: Iterable[str], has_id: bool) -> None:
        super().__init__(model, Signature(True, has_id, frozenset({*roles, _TRUSTED})))

    def rule(self, found: ResourceDef, verb: Verb, field: str = "") -> Expr:
        return FALSE if field else TRUE

    def call_rule(self, found: ResourceDef, call: CallDef) -> Expr:
        return TRUE

    def _own_rule(self, found: ResourceDef, name: str, roles: tuple[str, ...] | None) -> Expr:
        return TRUE


_PER_RESOURCE, _PER_FIELD = 2_000, 1_000
"""Bytes of a resource and of a field in a View."""
_TRUSTED = "trusted code"
"""Marks the signature of a TrustedView, so that its plans are nobody else's. No role has a name with a space."""


def roles_that_matter(resources: Iterable[ResourceDef]) -> frozenset[str]:
    """The roles that some rule asks about; no other can change an answer."""
    names: set[str] = {SIGNED_IN}
    for found in resources:
        for rule in found.rules:
            names.update({rule.role} if rule.role else ())
            names.update(part.role for part in all_leaves(rule.expr) if isinstance(part, HasRole))
        for each in found.fields.values():
            names.update(each.read_roles or (), each.write_roles or ())
            names.update(move.to.name for move in each.moves if move.to)
        names.update(call.role for call in found.calls if call.role)
    return frozenset(names)

def not_yours(view: View | ViewName, faults: Iterable[Fault] = ()) -> Refusal:
    """What others may do and this viewer may not."""
    if view.signature.signed_in:
        return Refusal(Code.FORBIDDEN, "You may not do this.", faults)
    return Refusal(Code.UNAUTHENTICATED, "You need to sign in for this.", faults)
