"""Drawing an Ask: the parts that both styles have in common, so that the same wish gives the same Ask.

The tree of `where`, the keys of a sort and the arguments of a page mean the same in a GraphQL document, in its
variables and in a REST query string; each style only finds them, as Givens, and a Draft draws them. A Draft
sees the model through the viewer's View: what the role may never see has no name here. Faults are collected,
so that a client learns of all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from uuid_utils import uuid7

from diptych.ask.nodes import Assign, Call, ChangePart, Order, Page, Watch, Write
from diptych.ask.slots import CHANGE_KIND, CURSOR, OFFSET, SIZE, Given, Slots, Source
from diptych.ask.wish import CallWish, WatchWish, WriteWish
from diptych.errors import MAX_FAULTS, Code, Fault, Place, Refusal
from diptych.model.defs import SERVER_FIELDS, ArgumentDef, CallDef
from diptych.model.expr import Col, Compare, Expr, Has, IsNull, Op, Slot, and_, not_, or_
from diptych.model.markers import Key, MaxLen
from diptych.model.scalars import ID, INT, MAX_SEARCHED
from diptych.model.view import FieldView, InputView, ResourceView, Taking, View, not_yours

DEFAULT_SIZE = 20
_OPS: Mapping[str, Op] = {
    "eq": "eq", "lt": "lt", "lte": "lte", "gt": "gt", "gte": "gte", "in": "in", "contains": "contains",
    "startsWith": "startsWith",
}  # fmt: skip
_SEARCHES = ("contains", "startsWith")
_SEARCHED = (MaxLen(MAX_SEARCHED),)


class Draft:
    """Draws the common parts of an Ask and deals out its slots."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.slots = Slots()
        self.faults: list[Fault] = []
        self.denied: list[Fault] = []

    def fault(self, place: Place, message: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(place, message))

    def done(self, code: Code, message: str) -> None:
        """Refuse if anything was wrong."""
        if self.faults:
            raise Refusal(code, message, self.faults)

    # where

    def where(self, given: Given, resource: ResourceView) -> Expr:
        """The tree of a filter, over the rows of a resource."""
        if not isinstance(given.value, dict):
            self.fault(given.place, "expected an object of fields")
            return and_()
        return and_(*(self._term(key, child, resource) for key, child in given.entries()))

    def _term(self, key: str, given: Given, resource: ResourceView) -> Expr:
        if given.value is None:
            self.fault(given.place, "null is no filter; leave it out, or use isNull")
        elif key in ("and", "or"):
            parts = (self.where(each, resource) for each in self._list(given))
            return and_(*parts) if key == "and" else or_(*parts)
        elif key == "not":
            return not_(self.where(given, resource))
        elif key in resource.searchable:
            return self.operators(given, resource.fields[key])
        elif key in resource.relations:
            return self._related(key, given, resource)
        else:
            self.fault(given.place, f"{resource.resource.name} has no field '{key}'")
        return and_()

    def _list(self, given: Given) -> list[Given]:
        if not isinstance(given.value, list | dict):
            self.fault(given.place, "expected a list of filters")
            return []
        return given.items()

    def operators(self, given: Given, field: FieldView) -> Expr:
        """The comparisons of one field: {gte: 1, lt: 9}."""
        if not isinstance(given.value, dict) or not given.value:
            self.fault(given.place, f"expected an object of operators: {', '.join(field.field.scalar.ops)}")
            return and_()
        return and_(*(self.operator(op, child, field) for op, child in given.entries()))

    def operator(self, op: str, given: Given, field: FieldView) -> Expr:
        """One comparison of one field."""
        scalar, column = field.field.scalar, Col((field.field.name,))
        if op not in scalar.ops:
            self.fault(given.place, f"'{op}' is no operator here; there are {', '.join(scalar.ops)}")
        elif given.value is None:
            self.fault(given.place, "null equals nothing; use isNull")
        elif op == "isNull":
            return self._is_null(column, given)
        elif op == "ne":
            return not_(Compare("eq", column, self.slots.take(scalar, given)))
        elif op in _SEARCHES:
            return Compare(_OPS[op], column, self.slots.take(scalar, given, constraints=_SEARCHED))
        else:
            return Compare(_OPS[op], column, self.slots.take(scalar, given, many=op == "in"))
        return and_()

    def _is_null(self, column: Expr, given: Given) -> Expr:
        wanted = {"true": True, "false": False}.get(given.value) if given.text else given.value
        if not isinstance(wanted, bool):
            self.fault(given.place, "expected true or false")
        return IsNull(column) if wanted is True else not_(IsNull(column))

    def _related(self, key: str, given: Given, resource: ResourceView) -> Expr:
        relation = resource.relations[key].relation
        target = self.view.resources[relation.target]
        if relation.kind == "one":
            return Has(key, self.where(given, target))
        if not isinstance(given.value, dict) or not given.value:
            self.fault(given.place, "expected an object with some, none or every")
            return and_()
        return and_(*(self._quantified(key, word, child, target) for word, child in given.entries()))

    def _quantified(self, relation: str, word: str, given: Given, target: ResourceView) -> Expr:
        if word not in ("some", "none", "every"):
            self.fault(given.place, f"'{word}' is none of some, none, every")
            return and_()
        inner = self.where(given, target)
        if word == "every":
            return not_(Has(relation, not_(inner)))
        return Has(relation, inner) if word == "some" else not_(Has(relation, inner))

    # sort

    def sort_key(self, name: str, descending: bool, place: Place, resource: ResourceView) -> Order | None:
        """One key of a sort."""
        field = resource.searchable.get(name)
        if field is None or not field.field.scalar.sortable:
            self.fault(place, f"{resource.resource.name} has no field '{name}' to sort by")
            return None
        return Order(Col((name,)), descending)

    # page

    def page(self, given: Mapping[str, Given], place: Place) -> Page:
        """The arguments first, last, after, before and offset. An absent or null cursor is the same."""
        backward = "last" in given
        if backward and "first" in given:
            self.fault(given["last"].place, "first and last exclude each other")
        if backward and self._there(given, "offset"):
            self.fault(given["offset"].place, "offset counts from the beginning and cannot go with last")
        name = "last" if backward else "first"
        size = given.get(name, Given(DEFAULT_SIZE, (*place, name), fixed=True))
        if size.value is None:
            self.fault(size.place, "null is no page size")
        return Page(
            self.slots.take(SIZE, size), backward, self._cursor(given, "after"), self._cursor(given, "before"),
            self.slots.take(OFFSET, given["offset"]) if self._there(given, "offset") else None,
        )  # fmt: skip

    def _cursor(self, given: Mapping[str, Given], name: str) -> Slot | None:
        return self.slots.take(CURSOR, given[name]) if self._there(given, name) else None

    @staticmethod
    def _there(given: Mapping[str, Given], name: str) -> bool:
        return name in given and given[name].value is not None

    # changes

    def watch(
        self, each: ResourceView, parts: tuple[ChangePart, ...], where: Expr, given: Mapping[str, Given]
    ) -> WatchWish:
        """What follows the changes of a resource; `given` may have `kinds` and `after`."""
        kinds = self.slots.take(CHANGE_KIND, given["kinds"], many=True) if self._there(given, "kinds") else None
        ask = Watch(each.resource.name, parts, where, kinds, self._cursor(given, "after"))
        return WatchWish(ask, tuple(self.slots.slots), tuple(self.slots.sources))

    # values of a row

    def row_id(self, each: ResourceView, given: Given | None) -> Slot:
        """The id of a row; that of a new one is made here, or by the database."""
        key = each.resource.key
        if given is not None:
            return self.slots.take(key, given)
        return self.slots.add(key, Source((), make=_new_id if key is ID else _no_id))

    def values(self, verb: Taking, each: ResourceView, given: Given) -> tuple[Assign, ...]:
        """The values that a client gives for a row, in the order of the model."""
        if not isinstance(given.value, dict):
            self.fault(given.place, "expected an object of fields")
            return ()
        entries = dict(given.entries())
        takes = each.takes(verb)
        for name in entries:
            if name not in takes:
                self._unwanted(name, (*given.place, name), each)
        for name, wanted in takes.items():
            if wanted.required and name not in entries:
                self.fault((*given.place, name), "expected a value")
        return tuple(self._assign(wanted, entries[name]) for name, wanted in takes.items() if name in entries)

    def _unwanted(self, name: str, place: Place, each: ResourceView) -> None:
        """A value for a field that the change does not take."""
        shown = each.fields.get(name)
        if shown is None:
            self.fault(place, f"{each.resource.name} has no field '{name}'")
        elif name in SERVER_FIELDS or not shown.field.stored:
            self.fault(place, "the field is read-only")
        elif len(self.denied) < MAX_FAULTS:
            self.denied.append(Fault(place, "you may not write this field"))

    def _assign(self, wanted: InputView, given: Given) -> Assign:
        field = wanted.field
        if given.value is None:
            if not wanted.nullable:
                self.fault(given.place, "expected a value, and not null")
            return Assign(field.name, None)
        own = (*field.constraints, Key()) if field.scalar is ID and not field.relation else field.constraints
        return Assign(field.name, self.slots.take(field.scalar, given, constraints=own))

    def version(self, given: Given | None) -> Slot | None:
        """The version that a row must have, or a list of them."""
        if given is None or given.value is None:
            return None
        return self.slots.take(INT, given, many=isinstance(given.value, list))

    # arguments of a call

    def arguments(self, call: CallDef, given: Mapping[str, Given], place: Place) -> tuple[Assign, ...]:
        """The arguments of an action or a query, in the order of its signature."""
        known = {each.name: each for each in call.arguments}
        for name in given:
            if name not in known:
                self.fault((*place, name), f"'{call.name}' has no argument '{name}'")
        for name, argument in known.items():
            if argument.required and name not in given:
                self.fault((*place, name), "expected a value")
        return tuple(self._argument(known[name], given[name]) for name in known if name in given)

    def _argument(self, argument: ArgumentDef, given: Given) -> Assign:
        if given.value is None:
            if not argument.nullable:
                self.fault(given.place, "expected a value, and not null")
            return Assign(argument.name, None)
        own = (*argument.constraints, Key()) if argument.scalar is ID else argument.constraints
        return Assign(argument.name, self.slots.take(argument.scalar, given, constraints=own))

    def call(self, ask: Call, place: Place, code: Code = Code.BAD_USER_INPUT) -> CallWish:
        """A call that is drawn; its faults go with it."""
        return CallWish(ask, tuple(self.slots.slots), tuple(self.slots.sources), place, tuple(self.faults), code)

    def write(self, ask: Write, place: Place) -> WriteWish:
        """A change that is drawn: refused if the role may never make it; its faults go with it."""
        if self.denied:
            raise not_yours(self.view, self.denied)
        return WriteWish(ask, tuple(self.slots.slots), tuple(self.slots.sources), place, tuple(self.faults))


def _new_id() -> str:
    return str(uuid7())


def _no_id() -> None:
    return None
