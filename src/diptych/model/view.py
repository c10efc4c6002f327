"""The model as seen by one role signature: rules partially evaluated, and what it may never see removed.

Folding evaluates everything that depends on the role alone. For a viewer who is staff, `viewer.has(staff)` is true;
for one without a token `self.author.id == viewer.id` is false. What is left of a rule is TRUE (always), FALSE
(never: the field or resource does not exist in this view) or an expression over the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from diptych.errors import Code, Fault, Refusal
from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.declare.resource import GrantVerb
from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.resource_view import FieldView, RelationView, ResourceView, WriteView
from diptych.model.rules.expr import (
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
    and_,
    leaves,
    not_,
    or_,
    rewrite,
)
from diptych.model.rules.in_trash import in_trash
from diptych.model.rules.paths import rebase
from diptych.model.signature import Signature
from diptych.model.versions import ACTOR_FIELDS, OWN
from diptych.model.viewer_object import VIEWER, ByName


class ViewName(Struct, frozen=True, eq=False):
    """The identity of a View without its rules: all that a cached plan keeps of it."""

    model: Mapping[str, ResourceDef]
    signature: Signature


class View:
    """Everything that one role signature may see and do."""

    def __init__(self, model: Mapping[str, ResourceDef], signature: Signature) -> None:
        self.model = model
        self.signature = signature
        self._read: dict[str, Expr] = {}
        readable = {name: rule for name in model if (rule := self._read_rule(name)) != FALSE}
        self.versions = self._versions(readable)
        """The resources of versions of rows, which `resources` finds by name, and does not list."""
        self.resources: Mapping[str, ResourceView] = ByName(
            {name: self._resource(model[name], readable) for name in readable}, self._viewer(readable), self.versions
        )
        self.calls: Mapping[str, tuple[ResourceDef, CallDef]] = {
            call.root: (resource, call)
            for resource in model.values()
            for call in resource.calls
            if self._may_call(resource, call)
        }
        """The actions and queries that the role may call, by root field."""
        self.name = ViewName(model, signature)
        self.memo: dict[Any, Any] = {}
        """What others derived from this view, by a key of their own."""

    @property
    def shown(self) -> Mapping[str, ResourceView]:
        """All that answers can show: the resources, and the versions of their rows."""
        return {**self.resources, **self.versions}

    @property
    def size(self) -> int:
        counts = (
            len(resource.fields) + len(resource.relations) + len(resource.writes)
            for resource in self.resources.values()
        )
        return _PER_RESOURCE * len(self.model) + _PER_FIELD * sum(counts)

    def _resource(self, resource: ResourceDef, readable: Mapping[str, Expr]) -> ResourceView:
        relations = self._relations(resource, readable)
        writes = self._writes(resource)
        unfilled = frozenset(
            name for name, field in resource.fields.items() if field.of_viewer and self._is_unknown(field.of_viewer)
        )
        required = (
            name
            for name, field in resource.fields.items()
            if field.required or (name in unfilled and not field.nullable)
        )
        rules = (writes[name].create if name in writes else FALSE for name in required)
        create = and_(self.rule(resource, "create"), *rules)
        update = or_(*(write.update for write in writes.values()))
        return ResourceView(
            resource,
            readable[resource.name],
            self._fields(resource),
            relations,
            create,
            update,
            self.rule(resource, "delete"),
            self._deleted_rule(resource),
            writes,
            unfilled,
            self.rule(resource, "export") != FALSE,
        )

    def _viewer(self, readable: Mapping[str, Expr]) -> ResourceView:
        """The viewer itself: nothing of it is hidden from it, and no scope is needed. Without a token there is none."""
        definition = self.model[VIEWER]
        relations = {
            name: RelationView(relation, TRUE, TRUE, TRUE)
            for name, relation in definition.relations.items()
            if relation.target in readable
        }
        fields = {name: FieldView(field, TRUE) for name, field in definition.fields.items()}
        return ResourceView(definition, TRUE if self.signature.signed_in else FALSE, fields, relations)

    def _versions(self, readable: Mapping[str, Expr]) -> dict[str, ResourceView]:
        """The versions of rows, for those who may read them. Who made one is for itself and for some roles."""
        versions: Mapping[str, ResourceDef] = getattr(self.model, "versions", {})
        out: dict[str, ResourceView] = {}
        for name, definition in versions.items():
            audit = self.model[definition.versions_of].audit
            if audit is None or definition.versions_of not in readable or not self._is_writable(audit.readers):
                continue
            own = Compare("eq", OWN, ViewerId()) if self.signature.has_id else FALSE
            sees = TRUE if self._is_writable(audit.actors) else own
            fields = {
                key: FieldView(field, rule)
                for key, field in definition.fields.items()
                if (rule := sees if key in ACTOR_FIELDS else TRUE) != FALSE
            }
            relations = {key: RelationView(way, TRUE, TRUE, TRUE) for key, way in definition.relations.items()}
            out[name] = ResourceView(definition, TRUE, fields, relations)
        return out

    def _may_call(self, resource: ResourceDef, call: CallDef) -> bool:
        """May the role call it, and read both the row that it is called on and its result?"""
        seen = [call.result.resource] if call.result.resource else []
        seen += [resource.name] if call.on == "row" else []
        return self.call_rule(resource, call) != FALSE and all(name in self.resources for name in seen)

    def call_rule(self, resource: ResourceDef, call: CallDef) -> Expr:
        """The rows on which the role may call it; TRUE for all rows, or for the class."""
        kind = "read" if isinstance(call, QueryDef) else "write"
        if not self.signature.allows(resource.path, kind):
            return FALSE
        rules = [rule for rule in resource.rules if call.on == "row" and call.attr in rule.actions]
        if rules:
            return or_(*(self._folded(rule.role, rule.expr, resource.name) for rule in rules))
        return TRUE if call.role is None or call.role in self.signature.roles else FALSE

    def fold(self, expr: Expr, resource: str) -> Expr:
        """Evaluate everything that depends on the role alone."""

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
        """Is it a value of the viewer that this viewer does not have?"""
        match part:
            case ViewerId():
                return not self.signature.has_id
            case ViewerValue(name):
                return name not in self.signature.knows
        return False

    def _may(self, resource: str, path: tuple[str, ...]) -> Expr:
        """The read rule of the row at the end of the path, relative to this row; an absent row is not readable."""
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
            self._read[name] = and_(self.rule(self.model[name], "read"), self.model[name].present)
        return self._read[name]

    def _deleted_rule(self, resource: ResourceDef) -> Expr:
        """The deleted rows that the role may see: those that it may read and delete but for that."""
        if not resource.trash:
            return FALSE
        rules = and_(self.rule(resource, "read"), self.rule(resource, "delete"))
        return and_(not_(resource.present), in_trash(rules, resource, self.model))

    def rule(self, resource: ResourceDef, verb: GrantVerb, field: str = "") -> Expr:
        """The rows on which a verb is allowed, or, with `field`, on which rules about that field allow it."""
        if not self.signature.allows(resource.path, "read" if verb in ("read", "export") else "write"):
            return FALSE
        rules = (rule for rule in resource.rules if verb in rule.verbs)
        about = (rule for rule in rules if (field in rule.fields if field else not rule.fields))
        return or_(*(self._folded(rule.role, rule.expr, resource.name) for rule in about))

    def _writes(self, resource: ResourceDef) -> Mapping[str, WriteView]:
        """The fields that the role may write. A rule about a field allows updates beyond the rules of the row."""
        writes: dict[str, WriteView] = {}
        row = {verb: self.rule(resource, verb) for verb in ("create", "update")}
        for name, definition in resource.fields.items():
            if definition.is_server_set or not definition.stored:
                continue
            open_ = self._is_writable(definition.write_roles)
            by_role = TRUE if open_ else FALSE
            create = and_(row["create"], or_(by_role, self.rule(resource, "create", name)))
            update = or_(and_(row["update"], by_role), self.rule(resource, "update", name))
            if definition.column in resource.key_columns:  # another key would be another row
                update = FALSE
            if (create, update) != (FALSE, FALSE):
                writes[name] = WriteView(definition, create, update)
        return writes

    def _folded(self, role: str | None, expr: Expr, resource: str) -> Expr:
        return self.fold(expr, resource) if role is None or role in self.signature.roles else FALSE

    def _is_writable(self, roles: tuple[str, ...] | None) -> bool:
        """May a field with these roles of WriteBy be written?"""
        return roles is None or not self.signature.roles.isdisjoint(roles)

    def _own_rule(self, resource: ResourceDef, name: str, roles: tuple[str, ...] | None) -> Expr:
        """Where a field is visible by ReadBy or the rules about it; TRUE if there are none."""
        rules = [rule for rule in resource.rules if "read" in rule.verbs and name in rule.fields]
        if roles is None and not rules:
            return TRUE
        by_role = TRUE if self.signature.roles.intersection(roles or ()) else FALSE
        return or_(by_role, *(self._folded(rule.role, rule.expr, resource.name) for rule in rules))

    def _field_rule(self, resource: ResourceDef, name: str) -> Expr:
        """Where a field is visible. A computed field is visible where all fields that it is computed from are."""
        field = resource.fields[name]
        rule = self._own_rule(resource, name, field.read_roles)
        parts: list[tuple[str, ...]] = [(need,) for need in field.needs]
        if field.computed is not None:
            parts += [part.path for part in leaves(field.computed) if isinstance(part, Col)]
        return and_(rule, *(self._shows(resource, path) for path in parts))

    def _relation_rule(self, resource: ResourceDef, relation: RelationDef) -> Expr:
        key = resource.fields.get(relation.name + "Id") if relation.kind == "one" else None
        if key is not None and key.computed is not None:  # it reveals the columns that it refers by
            return and_(self._own_rule(resource, relation.name, key.read_roles), self._field_rule(resource, key.name))
        return self._own_rule(resource, relation.name, key.read_roles if key else None)

    def _shows(self, resource: ResourceDef, path: tuple[str, ...]) -> Expr:
        """Where the value at the end of a path is visible: every row along the path is readable, or absent."""
        name, *rest = path
        if not rest:
            return self._field_rule(resource, name)
        relation = resource.relations[name]
        target = self.model[relation.target]
        absent = IsNull(Col((name + "Id",))) if relation.nullable else FALSE
        there = rebase(and_(self._read_rule(target.name), self._shows(target, tuple(rest))), (name,))
        return and_(self._relation_rule(resource, relation), or_(absent, there))

    def _fields(self, resource: ResourceDef) -> Mapping[str, FieldView]:
        rules = {name: self._field_rule(resource, name) for name in resource.fields}
        return {name: FieldView(resource.fields[name], rule) for name, rule in rules.items() if rule != FALSE}

    def _relations(self, resource: ResourceDef, readable: Mapping[str, Expr]) -> Mapping[str, RelationView]:
        out: dict[str, RelationView] = {}
        for name, relation in resource.relations.items():
            if relation.past:
                if resource.audit is not None and self._is_writable(resource.audit.readers):
                    out[name] = RelationView(relation, TRUE, TRUE, TRUE)
                continue
            rule, (back, link) = self._relation_rule(resource, relation), self._back_rules(relation, readable)
            if FALSE not in (rule, back, link) and relation.target in readable:
                is_inverse = relation.kind == "many"  # each row that it leads to refers back to this one
                known = rebase(readable[resource.name], (relation.inverse,)) if is_inverse else TRUE
                out[name] = RelationView(relation, rule, back, link, known)
        return out

    def _back_rules(self, relation: RelationDef, readable: Mapping[str, Expr]) -> tuple[Expr, Expr]:
        """Where the inverse is visible, on the target and on the link: it reveals the same pairs of rows."""
        if relation.kind == "many":
            target = self.model[relation.target]
            return self._relation_rule(target, target.relations[relation.inverse]), TRUE
        if relation.kind == "one":
            return TRUE, TRUE
        link = self.model[relation.link]
        ends = (link.relations[end] for end in (relation.link_mine, relation.link_theirs))
        return TRUE, and_(readable.get(link.name, FALSE), *(self._relation_rule(link, end) for end in ends))


class TrustedView(View):
    """The view of trusted model code: no access rule applies. State transitions and references are still checked."""

    def __init__(
        self, model: Mapping[str, ResourceDef], roles: Iterable[str], has_id: bool, knows: frozenset[str]
    ) -> None:
        super().__init__(model, Signature(True, has_id, frozenset({*roles, _TRUSTED}), knows=knows))

    def rule(self, resource: ResourceDef, verb: GrantVerb, field: str = "") -> Expr:
        return FALSE if field else TRUE

    def call_rule(self, resource: ResourceDef, call: CallDef) -> Expr:
        return TRUE

    def _is_writable(self, roles: tuple[str, ...] | None) -> bool:
        return True

    def _own_rule(self, resource: ResourceDef, name: str, roles: tuple[str, ...] | None) -> Expr:
        return TRUE


_PER_RESOURCE, _PER_FIELD = 2_000, 1_000
"""Estimated bytes of a resource and of a field in a View."""
_TRUSTED = "trusted code"
"""Marks the signature of a TrustedView, so that no viewer shares its plans: role names have no spaces."""


def not_yours(view: View | ViewName, faults: Iterable[Fault] = ()) -> Refusal:
    """The Refusal of what other viewers may do: forbidden, or a hint to sign in."""
    if view.signature.signed_in:
        return Refusal(Code.FORBIDDEN, "You may not do this.", faults)
    return Refusal(Code.UNAUTHENTICATED, "You need to sign in for this.", faults)
