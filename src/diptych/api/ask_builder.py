"""Builds Asks: filters (`filters`), sort keys, pages, row values and call arguments, for both styles.

The tree of `where`, the keys of a sort and the arguments of a page mean the same in a GraphQL document, in its
variables and in a REST query string: a style only extracts them as RawValues, and an AskBuilder checks and builds. It
sees the model through the View of the viewer, so what the role may never see has no name here. Faults are collected, so
that a client gets all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace
from uuid_utils import uuid7

from diptych.api.aggregates import counts_rows, sort_value
from diptych.api.filters import Filters
from diptych.ask.nodes import (
    Assign,
    Call,
    ChangePart,
    MemberPick,
    OrderBy,
    Page,
    RowSet,
    TypeName,
    Watch,
    Write,
    WriteVerb,
)
from diptych.ask.slots import CHANGE_KIND, CURSOR, MOST, OFFSET, SIZE, RawValue, Slots, Source
from diptych.ask.wish import CallWish, WatchWish, WriteWish
from diptych.errors import MAX_FAULTS, Code, Fault, Path, Refusal
from diptych.model.call_defs import ArgumentDef, CallDef
from diptych.model.declare.markers import KeyMark
from diptych.model.defs import FieldDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Col, Expr, Slot
from diptych.model.scalars import BOOLEAN, ID, INT, JSON, Scalar
from diptych.model.value_scalar import patch_of
from diptych.model.view import View, not_yours

DEFAULT_SIZE = 20
NESTED_SIZE = 10
"""The default page of a list inside another resource. Prices multiply by level: with pages of 20, a list in a list in a
list would be over the limit."""


class AskBuilder(Filters):
    """Builds the parts of an Ask that both styles share, and numbers its slots."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.slots = Slots()
        self.faults: list[Fault] = []
        self.denied: list[Fault] = []
        self.implied = False
        """Is what is selected the default, since the request has no selection?"""

    def fault(self, path: Path, message: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(path, message))

    def done(self, code: Code, message: str) -> None:
        """Raise all faults that were collected, if any: those of a read. `write` and `call` hand theirs on."""
        if self.faults:
            raise Refusal(code, message, self.faults)

    # sort

    def sort_key(self, name: str, descending: bool, path: Path, resource: ResourceView) -> OrderBy | None:
        """A key of a sort: a field, or a path to one or to a number of related rows (`author.name`, `posts.count`)."""
        field = resource.searchable.get(name)
        if field is not None and field.field.scalar.sortable:
            return OrderBy(Col((name,)), descending)
        by = sort_value(name.split("."), resource, self.view) if "." in name else None
        if by is None:
            self.fault(path, f"{resource.resource.name} has no field '{name}' to sort by")
            return None
        return OrderBy(by, descending)

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
        if counts_rows(where):
            self.fault(("where",), "changes cannot be filtered by numbers of related rows")
        kinds = self.slots.take(CHANGE_KIND, arguments["kinds"], many=True) if self._has(arguments, "kinds") else None
        ask = Watch(resource.resource.name, parts, where, kinds, self._cursor(arguments, "after"))
        return WatchWish(ask, tuple(self.slots.slots), tuple(self.slots.sources), self.implied)

    # changes of many rows

    def rows(self, where: Expr, at: Path, most: RawValue, dry: RawValue | None) -> RowSet:
        """The rows of a change of many: a filter and a number are required."""
        if where == TRUE:
            self.fault(at, "expected a filter")
        if most.value is None:
            self.fault(most.path, "expected a number: how many rows it may reach at most")
            most = RawValue(1, most.path, fixed=True)
        has = dry is not None and dry.value is not None
        return RowSet(where, self.slots.take(MOST, most), self.slots.take(BOOLEAN, dry) if has and dry else None)

    def no_id(self, resource: ResourceView) -> Slot:
        """The slot of an id that is not of the request."""
        return self.slots.add(resource.resource.key, Source((), make=_no_id))

    # values of a row

    def row_id(self, resource: ResourceView, raw: RawValue | None, body: RawValue | None = None) -> Slot:
        """The slot of a row id; that of a new row is in its body if clients make ids, or generated here, or by the
        database."""
        key = resource.resource.key
        if resource.resource.client_ids and body is not None and isinstance(body.value, dict) and "id" in body.value:
            own = dict(body.entries())["id"]
            if raw is not None:
                self.fault(own.path, "the id is in the path")
            elif own.value is None:
                self.fault(own.path, "expected a value, and not null")
            else:
                return self.slots.take(key, own, constraints=(KeyMark(),))
        if raw is not None:
            return self.slots.take(key, raw, target=resource.resource.name)
        return self.slots.add(key, Source((), make=_new_id if key is ID else _no_id))

    def values(
        self, verb: WriteVerb, resource: ResourceView, raw: RawValue, *, merge: bool = True
    ) -> tuple[Assign, ...]:
        """The values that a client sends for a row, in the order of the model; other verbs take none. An update merges
        JSON."""
        match verb:
            case "delete" | "restore" | "purge":
                return ()
        if not isinstance(raw.value, dict):
            self.fault(raw.path, "expected an object of fields")
            return ()
        entries = dict(raw.entries())
        takes = resource.takes("create" if verb == "upsert" else verb)
        for name in entries:
            if name not in takes:
                self._refuse_value(name, (*raw.path, name), resource)
        for name, taken in takes.items():
            if taken.required and name not in entries:
                self.fault((*raw.path, name), "expected a value")
        patches = merge and verb == "update"
        assigned = (
            self._assign(_in_patch(taken.field) if patches else taken.field, taken.nullable, entries[name], resource)
            for name, taken in takes.items()
            if name in entries and (name != "id" or verb == "replace")
        )
        if not patches:
            return tuple(assigned)
        return tuple(
            replace(assign, merge=True) if assign.value is not None and _merges(assign.value.scalar) else assign
            for assign in assigned
        )

    def upsert_key(self, resource: ResourceView, raw: RawValue) -> str:
        """The unique key by which an upsert finds its row; "" if there is none of this name."""
        keys = resource.upsert_keys
        if raw.value in keys:
            return str(raw.value)
        self.fault(raw.path, f"expected one of {', '.join(keys)}" if keys else "there is no unique key to find it by")
        return ""

    def keeps(self, raw: RawValue | None, words: tuple[str, str], resource: ResourceView) -> bool:
        """Does an upsert keep a row that it finds? `words` are those for an update and for that."""
        value = words[0] if raw is None else raw.value
        if raw is not None and value not in words:
            self.fault(raw.path, f"expected {words[0]} or {words[1]}")
        elif value == words[0] and not resource.may("update"):
            raise not_yours(self.view)
        return bool(value == words[1])

    def key_values(self, resource: ResourceView, key: str, values: tuple[Assign, ...], body: RawValue) -> None:
        """Report fields of the key of an upsert that have no value; of a body that is no object, that alone is
        reported."""
        if not isinstance(body.value, dict):
            return
        sent, path = {assign.name for assign in values if assign.value is not None}, body.path
        sent |= {"id"} if "id" in body.value else set()
        faulty = {fault.path for fault in self.faults}
        for name in resource.upsert_keys.get(key, ()):
            if name not in sent and (*path, name) not in faulty:
                self.fault((*path, name), "expected a value, which finds the row")

    def _refuse_value(self, name: str, path: Path, resource: ResourceView) -> None:
        """Report a value for a field that the write does not accept."""
        field = resource.fields.get(name)
        if field is None and name in resource.relations:
            self.fault(path, "relations are written only by a create, and by an update as application/json")
        elif field is None:
            self.fault(path, f"{resource.resource.name} has no field '{name}'")
        elif field.field.is_server_set or not field.field.stored:
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
        own = (*to.constraints, KeyMark()) if to.scalar is ID else to.constraints
        return Assign(to.name, self.slots.take(to.scalar, raw, constraints=own))

    def key_of(self, resource: ResourceView, raw: RawValue) -> tuple[Assign, ...]:
        """The values of a unique key by which a row is found, in the order of the model."""
        entries = dict(raw.entries())
        fields = ((name, field) for name, field in resource.resource.fields.items() if name in entries)
        return tuple(self._assign(field, False, entries[name], resource) for name, field in fields)

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
        slots, sources = tuple(self.slots.slots), tuple(self.slots.sources)
        return CallWish(ask, slots, sources, path, tuple(self.faults), code, self.implied)

    def write(self, ask: Write, path: Path) -> WriteWish:
        """The wish of a write. Fields that the role may never write are refused here, with 403. Its faults are part of
        it: `WriteEngine.binder` raises them together with those of the values."""
        if self.denied:
            raise not_yours(self.view, self.denied)
        slots, sources = tuple(self.slots.slots), tuple(self.slots.sources)
        return WriteWish(ask, slots, sources, path, tuple(self.faults), implied=self.implied)


def default_order(resource: ResourceView) -> tuple[OrderBy, ...]:
    """The order of a list without a sort: by id, and of versions the newest first."""
    return (OrderBy(Col(("id",)), descending=True),) if resource.resource.versions_of else ()


def all_or(inside: Iterable[MemberPick | TypeName], scalar: Scalar) -> tuple[MemberPick | TypeName, ...] | None:
    """The members that are picked of a value object; None if these are all of them, in their order."""
    picked = tuple(inside)
    return None if picked == tuple(MemberPick(name, name) for name in scalar.members or ()) else picked


def _merges(scalar: Scalar) -> bool:
    return scalar is JSON or scalar.members is not None


def _in_patch(field: FieldDef) -> FieldDef:
    """The field as an update takes it: of a value object, the members that change."""
    return field if field.scalar.members is None else replace(field, scalar=patch_of(field.scalar))


def _new_id() -> str:
    return str(uuid7())


def _no_id() -> None:
    return None
