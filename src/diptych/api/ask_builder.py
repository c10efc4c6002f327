"""Builds Asks: filters, sort keys, pages, row values and call arguments, for both styles.

The tree of `where`, the keys of a sort and the arguments of a page mean the same in a GraphQL document, in its
variables and in a REST query string: a style only extracts them as RawValues, and an AskBuilder checks and builds. It
sees the model through the View of the viewer, so what the role may never see has no name here. Faults are collected, so
that a client gets all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from uuid_utils import uuid7

from diptych.ask.nodes import Assign, Call, ChangePart, OrderBy, Page, Watch, Write
from diptych.ask.slots import CHANGE_KIND, CURSOR, OFFSET, SIZE, RawValue, Slots, Source
from diptych.ask.wish import CallWish, WatchWish, WriteWish
from diptych.errors import MAX_FAULTS, Code, Fault, Path, Refusal
from diptych.model.declare.markers import Key, MaxLen
from diptych.model.defs import SERVER_FIELDS, ArgumentDef, CallDef, FieldDef
from diptych.model.rules.expr import Col, Compare, Expr, Has, IsNull, Op, Slot, and_, not_, or_
from diptych.model.scalars import ID, INT, MAX_SEARCHED, SEARCHES
from diptych.model.view import FieldView, ResourceView, Taking, View, not_yours

DEFAULT_SIZE = 20
NESTED_SIZE = 10
"""The default page of a list inside another resource. Prices multiply by level: with pages of 20, a list in a list in a
list would be over the limit."""
_SEARCHED = (MaxLen(MAX_SEARCHED),)


class AskBuilder:
    """Builds the parts of an Ask that both styles share, and numbers its slots."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.slots = Slots()
        self.faults: list[Fault] = []
        self.denied: list[Fault] = []

    def fault(self, path: Path, message: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(path, message))

    def done(self, code: Code, message: str) -> None:
        """Raise all faults that were collected, if any."""
        if self.faults:
            raise Refusal(code, message, self.faults)

    # where

    def where(self, raw: RawValue, resource: ResourceView) -> Expr:
        """The condition of a filter on the rows of a resource."""
        if not isinstance(raw.value, dict):
            self.fault(raw.path, "expected an object of fields")
            return and_()
        return and_(*(self._term(key, child, resource) for key, child in raw.entries()))

    def _term(self, key: str, raw: RawValue, resource: ResourceView) -> Expr:
        if raw.value is None:
            self.fault(raw.path, "null is no filter; leave it out, or use isNull")
        elif key in ("and", "or"):
            parts = (self.where(part, resource) for part in self._list(raw))
            return and_(*parts) if key == "and" else or_(*parts)
        elif key == "not":
            return not_(self.where(raw, resource))
        elif key in resource.searchable:
            return self.operators(raw, resource.fields[key])
        elif key in resource.relations:
            return self._related(key, raw, resource)
        else:
            self.fault(raw.path, f"{resource.resource.name} has no field '{key}'")
        return and_()

    def _list(self, raw: RawValue) -> list[RawValue]:
        if not isinstance(raw.value, list | dict):
            self.fault(raw.path, "expected a list of filters")
            return []
        return raw.items()

    def operators(self, raw: RawValue, field: FieldView) -> Expr:
        """The comparisons of one field: {gte: 1, lt: 9}."""
        if not isinstance(raw.value, dict) or not raw.value:
            self.fault(raw.path, f"expected an object of operators: {', '.join(field.field.scalar.ops)}")
            return and_()
        return and_(*(self.operator(op, child, field) for op, child in raw.entries()))

    def operator(self, op: str, raw: RawValue, field: FieldView) -> Expr:
        scalar, column = field.field.scalar, Col((field.field.name,))
        if op not in scalar.ops:
            self.fault(raw.path, f"'{op}' is no operator here; there are {', '.join(scalar.ops)}")
        elif raw.value is None:
            self.fault(raw.path, "null equals nothing; use isNull")
        elif op == "isNull":
            return self._is_null(column, raw)
        elif op == "ne":
            return not_(Compare("eq", column, self.slots.take(scalar, raw)))
        elif op in SEARCHES:
            return Compare(cast(Op, op), column, self.slots.take(scalar, raw, constraints=_SEARCHED))
        else:
            return Compare(cast(Op, op), column, self.slots.take(scalar, raw, many=op == "in"))
        return and_()

    def _is_null(self, column: Expr, raw: RawValue) -> Expr:
        wanted = {"true": True, "false": False}.get(raw.value) if raw.text else raw.value
        if not isinstance(wanted, bool):
            self.fault(raw.path, "expected true or false")
        return IsNull(column) if wanted is True else not_(IsNull(column))

    def _related(self, key: str, raw: RawValue, resource: ResourceView) -> Expr:
        relation = resource.relations[key].relation
        target = self.view.resources[relation.target]
        if relation.kind == "one":
            return Has(key, self.where(raw, target))
        if not isinstance(raw.value, dict) or not raw.value:
            self.fault(raw.path, "expected an object with some, none or every")
            return and_()
        return and_(*(self._quantified(key, word, child, target) for word, child in raw.entries()))

    def _quantified(self, relation: str, word: str, raw: RawValue, target: ResourceView) -> Expr:
        if word not in ("some", "none", "every"):
            self.fault(raw.path, f"'{word}' is none of some, none, every")
            return and_()
        inner = self.where(raw, target)
        if word == "every":
            return not_(Has(relation, not_(inner)))
        return Has(relation, inner) if word == "some" else not_(Has(relation, inner))

    # sort

    def sort_key(self, name: str, descending: bool, path: Path, resource: ResourceView) -> OrderBy | None:
        field = resource.searchable.get(name)
        if field is None or not field.field.scalar.sortable:
            self.fault(path, f"{resource.resource.name} has no field '{name}' to sort by")
            return None
        return OrderBy(Col((name,)), descending)

    # page

    def page(self, arguments: Mapping[str, RawValue], path: Path, default: int = DEFAULT_SIZE) -> Page:
        """A page from first, last, after, before and offset. A null cursor means the same as none."""
        backward = "last" in arguments
        if backward and "first" in arguments:
            self.fault(arguments["last"].path, "first and last exclude each other")
        if backward and self._has(arguments, "offset"):
            self.fault(arguments["offset"].path, "offset counts from the beginning and cannot go with last")
        name = "last" if backward else "first"
        size = arguments.get(name, RawValue(default, (*path, name), fixed=True))
        if size.value is None:
            self.fault(size.path, "null is no page size")
        return Page(
            self.slots.take(SIZE, size),
            backward,
            self._cursor(arguments, "after"),
            self._cursor(arguments, "before"),
            self.slots.take(OFFSET, arguments["offset"]) if self._has(arguments, "offset") else None,
        )

    def _cursor(self, arguments: Mapping[str, RawValue], name: str) -> Slot | None:
        return self.slots.take(CURSOR, arguments[name]) if self._has(arguments, name) else None

    @staticmethod
    def _has(arguments: Mapping[str, RawValue], name: str) -> bool:
        return name in arguments and arguments[name].value is not None

    # changes

    def watch(
        self, resource: ResourceView, parts: tuple[ChangePart, ...], where: Expr, arguments: Mapping[str, RawValue]
    ) -> WatchWish:
        """The Ask for changes of a resource; `arguments` may have `kinds` and `after`."""
        kinds = self.slots.take(CHANGE_KIND, arguments["kinds"], many=True) if self._has(arguments, "kinds") else None
        ask = Watch(resource.resource.name, parts, where, kinds, self._cursor(arguments, "after"))
        return WatchWish(ask, tuple(self.slots.slots), tuple(self.slots.sources))

    # values of a row

    def row_id(self, resource: ResourceView, raw: RawValue | None) -> Slot:
        """The slot of a row id; that of a new row is generated here, or by the database."""
        key = resource.resource.key
        if raw is not None:
            return self.slots.take(key, raw, target=resource.resource.name)
        return self.slots.add(key, Source((), make=_new_id if key is ID else _no_id))

    def values(self, verb: Taking, resource: ResourceView, raw: RawValue) -> tuple[Assign, ...]:
        """The values that a client sends for a row, in the order of the model."""
        if not isinstance(raw.value, dict):
            self.fault(raw.path, "expected an object of fields")
            return ()
        entries = dict(raw.entries())
        takes = resource.takes(verb)
        for name in entries:
            if name not in takes:
                self._refuse_value(name, (*raw.path, name), resource)
        for name, taken in takes.items():
            if taken.required and name not in entries:
                self.fault((*raw.path, name), "expected a value")
        return tuple(
            self._assign(taken.field, taken.nullable, entries[name], resource)
            for name, taken in takes.items()
            if name in entries
        )

    def _refuse_value(self, name: str, path: Path, resource: ResourceView) -> None:
        """Report a value for a field that the write does not accept."""
        field = resource.fields.get(name)
        if field is None:
            self.fault(path, f"{resource.resource.name} has no field '{name}'")
        elif name in SERVER_FIELDS or not field.field.stored:
            self.fault(path, "the field is read-only")
        elif len(self.denied) < MAX_FAULTS:
            self.denied.append(Fault(path, "you may not write this field"))

    def _assign(
        self, to: FieldDef | ArgumentDef, nullable: bool, raw: RawValue, resource: ResourceView | None = None
    ) -> Assign:
        if raw.value is None:
            if not nullable:
                self.fault(raw.path, "expected a value, and not null")
            return Assign(to.name, None)
        if isinstance(to, FieldDef) and to.relation and resource is not None:
            target = resource.resource.relations[to.relation].target
            return Assign(to.name, self.slots.take(to.scalar, raw, constraints=to.constraints, target=target))
        own = (*to.constraints, Key()) if to.scalar is ID else to.constraints
        return Assign(to.name, self.slots.take(to.scalar, raw, constraints=own))

    def version(self, raw: RawValue | None) -> Slot | None:
        """The version that a row must have, or a list of them."""
        if raw is None or raw.value is None:
            return None
        return self.slots.take(INT, raw, many=isinstance(raw.value, list))

    # arguments of a call

    def arguments(self, call: CallDef, raws: Mapping[str, RawValue], path: Path) -> tuple[Assign, ...]:
        """The arguments of an action or a query, in the order of its signature."""
        known = {argument.name: argument for argument in call.arguments}
        for name in raws:
            if name not in known:
                self.fault((*path, name), f"'{call.name}' has no argument '{name}'")
        for name, argument in known.items():
            if argument.required and name not in raws:
                self.fault((*path, name), "expected a value")
        return tuple(
            self._assign(argument, argument.nullable, raws[name]) for name, argument in known.items() if name in raws
        )

    def call(self, ask: Call, path: Path, code: Code = Code.BAD_USER_INPUT) -> CallWish:
        """The wish of a call; its faults are part of it, to be reported with others."""
        return CallWish(ask, tuple(self.slots.slots), tuple(self.slots.sources), path, tuple(self.faults), code)

    def write(self, ask: Write, path: Path) -> WriteWish:
        """The wish of a write, with its faults; refused if the role may never make it."""
        if self.denied:
            raise not_yours(self.view, self.denied)
        return WriteWish(ask, tuple(self.slots.slots), tuple(self.slots.sources), path, tuple(self.faults))


def _new_id() -> str:
    return str(uuid7())


def _no_id() -> None:
    return None
