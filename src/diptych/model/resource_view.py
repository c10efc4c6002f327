"""What one role may see and do on a resource: its fields, its relations, its input fields, and the rows of each verb.

Rules are folded for the role (`view`): each is TRUE (always), FALSE (never), or an expression over the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from diptych.model.declare.resource import Verb
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.rules.expr import FALSE, TRUE, Const, Expr

Taking = Literal["create", "update", "replace"]
"""A verb whose request has values."""


class FieldView(Struct, frozen=True, eq=False):
    """A field that the role may read, on the rows that match `rule`."""

    field: FieldDef
    rule: Expr


class WriteView(Struct, frozen=True, eq=False):
    """A field that the role may write, on new rows that match `create` and existing rows that match `update`."""

    field: FieldDef
    create: Expr
    update: Expr


class InputView(Struct, frozen=True, eq=False):
    """A field of the input of a write: is it required, may it be null, or must it keep its value (`fixed`)?"""

    field: FieldDef
    required: bool = False
    nullable: bool = False
    fixed: bool = False


class RelationView(Struct, frozen=True, eq=False):
    """A relation that the role may read: on rows that match `rule`, to rows of the target that match `back`, through
    rows of the linking resource that match `link`."""

    relation: RelationDef
    rule: Expr
    back: Expr
    link: Expr
    known: Expr = TRUE
    """What holds for all rows that it leads to, since it holds for the row that it leads from."""


class ResourceView(Struct, frozen=True, eq=False):
    """A resource that the role may read, and the predicates of the rows that it may read, create, update and delete."""

    resource: ResourceDef
    read: Expr
    fields: Mapping[str, FieldView]
    relations: Mapping[str, RelationView]
    create: Expr = FALSE
    """The new rows that the role may create; FALSE if it may not write a required field."""
    update: Expr = FALSE
    """The rows on which the role may update some field."""
    delete: Expr = FALSE
    deleted: Expr = FALSE
    """The deleted rows that the role may read, restore and delete for good."""
    writes: Mapping[str, WriteView] = field(default_factory=dict)
    unfilled: frozenset[str] = frozenset()
    """The fields whose default is a value of the viewer that this one does not have."""
    exports: bool = False
    """May the role read a whole list at once?"""

    @property
    def searchable(self) -> Mapping[str, FieldView]:
        """The fields that filters can use: all except those that Python computes."""
        return {name: shown for name, shown in self.fields.items() if shown.field.python is None}

    @property
    def ways(self) -> Mapping[str, RelationView]:
        """The relations that filters and sorts can use: those to rows as they are."""
        return {name: way for name, way in self.relations.items() if not way.relation.past}

    @property
    def upsert_keys(self) -> Mapping[str, tuple[str, ...]]:
        """The unique keys by which the role can find a row that it would else create: it may give and read them."""
        if self.create == FALSE:
            return {}
        takes = self.takes("create")
        return {
            name: fields
            for name, fields in self.resource.unique_keys.items()
            if all(field in takes and field in self.fields for field in fields)
        }

    @property
    def searched(self) -> tuple[str, ...]:
        """The fields that a full-text search of this role looks at."""
        return tuple(name for name in self.resource.search if name in self.fields)

    def may(self, verb: Verb | Literal["replace", "upsert", "restore", "purge"]) -> bool:
        """May the role do this on any row?"""
        match verb:
            case "read":
                return self.read != FALSE
            case "create":
                return self.create != FALSE
            case "upsert":
                return bool(self.upsert_keys)
            case "delete":
                return self.delete != FALSE
            case "restore" | "purge":
                return self.deleted != FALSE
        return self.update != FALSE

    def takes(self, verb: Taking) -> Mapping[str, InputView]:
        """The input fields of a write, in the order of the model. A replacement accepts all that can be read."""
        if verb == "replace":
            known = (
                (name, field)
                for name, field in self.resource.fields.items()
                if name in self.fields or self._may_change(name)
            )
            return {name: self._replaces(name, field) for name, field in known}
        creates = verb == "create"
        mine = (
            write.field
            for name, write in self.writes.items()
            if (write.create != FALSE if creates else self._may_change(name))
        )
        own = (
            {"id": InputView(self.resource.fields["id"], self.resource.needs_id)}
            if creates and self.resource.client_ids
            else {}
        )
        return own | {
            known.name: InputView(known, creates and self._must_be_sent(known), known.nullable) for known in mine
        }

    def fresh_value(self, field: FieldDef) -> Expr:
        """The value of a field of a new row for which the client sends none."""
        return Const(None, field.scalar) if field.name in self.unfilled else field.fresh_value

    def _must_be_sent(self, field: FieldDef) -> bool:
        return field.required or (field.name in self.unfilled and not field.nullable)

    def _may_change(self, name: str) -> bool:
        return name in self.writes and self.writes[name].update != FALSE

    def _replaces(self, name: str, field: FieldDef) -> InputView:
        """The input of a replacement. Null is accepted for a field that a rule may hide, since then null was shown."""
        shown, mine = self.fields.get(name), self._may_change(name)
        always = shown is not None and shown.rule == TRUE and mine and self.writes[name].update == self.update
        masked = shown is not None and shown.rule != TRUE
        return InputView(field, field.required and not field.moves and always, field.nullable or masked, not mine)
