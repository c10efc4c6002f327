"""Code of the model's own, run in a transaction: actions and queries.

    a session begins → the row is loaded → await function(row, tx, **arguments) → its answer is read → commit

An exception takes back everything, and nothing of it is told. The other changes of the same request run in the
same session, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from diptych.ask.asked import Asked
from diptych.ask.nodes import Call, Field, Page, Read
from diptych.ask.slots import SIZE
from diptych.ask.wish import CallWish
from diptych.check.cost import Cost, cost_of
from diptych.check.public import age_of_call
from diptych.check.values import Binder
from diptych.compile.fragment import finish as finished
from diptych.compile.fragment import identifier, sql
from diptych.compile.plan import Plan, SlotBind
from diptych.compile.read import compile_reads
from diptych.db.script import Script, Step
from diptych.db.store import Session
from diptych.db.unicode import unicode
from diptych.engine import Prepared, without_viewer
from diptych.errors import Code, Place, Refusal
from diptych.finish import finish as finish_answers
from diptych.model import rows
from diptych.model.defs import CallDef, ResourceDef
from diptych.model.expr import TRUE, Col, Compare, Expr, Slot, and_
from diptych.model.resource import Resource
from diptych.model.roles import NOBODY, Viewer
from diptych.model.scalars import from_json, to_json
from diptych.model.view import View, ViewName, not_yours
from diptych.nesting import decode
from diptych.steps import Deed, Done, locked_steps
from diptych.transact import Keeping, Transactor
from diptych.tx import ModelTx

T = TypeVar("T")
_rows = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


@dataclass(frozen=True, slots=True, eq=False)
class ReadyCall:
    """A call of a known shape: what runs, how its values are got, and how its answer is read."""

    call: Call
    resource: ResourceDef
    definition: CallDef
    binder: Binder
    view: ViewName
    place: Place
    answer: Prepared | None
    cost: Cost
    """The call itself, and its answer."""
    admits: Plan | None
    """Finds the row if the rules of the action hold on it; None if it has none that depend on the row."""
    asked: Asked | None = None
    max_age: int = 0
    """For how many seconds anyone may keep what a query gives; 0 is never."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.binder.size + sum(each.size for each in (self.answer, self.admits) if each is not None)

    def price(self, inputs: Mapping[str, Any], most: int) -> int:
        """What it costs. How many rows it will list is not known, so that is as many as it may."""
        return self.cost.price([*self.binder(inputs), None, most])

    def arguments(self, values: Sequence[Any]) -> dict[str, Any]:
        """What the function takes, as values of Python."""
        given = {assign.name: assign.value for assign in self.call.values}
        found: dict[str, Any] = {}
        for each in self.definition.arguments:
            slot = given.get(each.name)
            value = values[slot.index] if slot is not None else None if each.name in given else each.default
            found[each.attr] = from_json(each.scalar, value)
        return found


class CallDeed(NamedTuple):
    """A call of a request, with its inputs; `path` is its place in the answer."""

    ready: ReadyCall
    inputs: Mapping[str, Any]
    path: Place = ()


class Calls:
    """Runs the code of one model."""

    def __init__(self, transactor: Transactor) -> None:
        self.transactor = transactor
        self.engine = transactor.engine

    def ready(
        self, wish: CallWish, inputs: Mapping[str, Any], view: View, asked: Asked | None = None
    ) -> ReadyCall:
        """All that can be known of a call before its values are."""
        call = wish.ask
        binder = self.transactor.binder(wish, inputs)
        resource = self.engine.model.resources[call.resource]
        definition = resource.call(call.name)
        read = _answer(call, definition, self.engine.model.resources, len(wish.slots))
        prepared = None
        if read is not None:
            self.engine.checks.shape(asked, (read,))
            prepared = self.engine.prepare((read,), view, {})
        cost = cost_of_call(call, len(wish.slots), self.engine.model.resources)
        admits = self._admits(resource, view.call_rule(resource, definition))
        age = age_of_call(call, view).seconds
        kept = without_viewer(asked)
        return ReadyCall(call, resource, definition, binder, view.name, wish.place, prepared, cost, admits, kept, age)

    def _admits(self, resource: ResourceDef, rule: Expr) -> Plan | None:
        if rule == TRUE:
            return None
        where = and_(Compare("eq", Col(("id",)), Slot(0, resource.key)), rule)
        read = Read(resource.name, "one", (Field("id", "id"),), where)
        return compile_reads([read], self.engine.model, self.engine.store.dialect)

    async def write(
        self, deeds: Sequence[Deed | CallDeed], viewer: Viewer, finish: Callable[[Sequence[Done]], T],
        kept: Keeping[T] | None = None,
    ) -> T:  # fmt: skip
        """Make all changes of a request, or none, some of which are calls."""
        self._check(deeds, viewer)

        async def work(session: Session) -> list[Done]:
            return [await self._do(deed, viewer, session) for deed in deeds]

        return await self.transactor.write_apart(work, finish, kept)

    async def read(self, deed: CallDeed, viewer: Viewer) -> bytes:
        """The answer of a query."""
        self._check([deed], viewer)
        session = await self.engine.store.session(reading=True)
        try:
            return (await self._do(deed, viewer, session)).answer or b"null"
        finally:
            await session.end()

    def _check(self, deeds: Sequence[Deed | CallDeed], viewer: Viewer) -> None:
        """Refuse faulty values, and what is too dear, before anything runs."""
        bound = self.transactor.bind([deed for deed in deeds if isinstance(deed, Deed)], viewer)
        price = sum(each.price for each in bound)
        most = self.engine.limits.page
        price += sum(deed.ready.price(deed.inputs, most) for deed in deeds if isinstance(deed, CallDeed))
        self.engine.checks.price(deeds[0].ready.asked, viewer, price)

    async def _do(self, deed: Deed | CallDeed, viewer: Viewer, session: Session) -> Done:
        try:
            if isinstance(deed, Deed):
                (bound,) = self.transactor.bind([deed], viewer)
                return await session.drive(lambda: locked_steps(bound, self.engine.store.dialect))
            return await self._call(deed, viewer, session)
        except Refusal as refusal:
            refusal.path = deed.path
            raise

    async def _call(self, deed: CallDeed, viewer: Viewer, session: Session) -> Done:
        ready = deed.ready
        values = ready.binder(deed.inputs)
        tx = ModelTx(self.transactor, session, viewer, self.engine.model.view(ready.view.signature))
        target: Any = ready.resource.cls
        if ready.call.id is not None:
            key = values[ready.call.id.index]
            await self._hold(ready.resource, key, session)
            target = await tx.get(ready.resource.cls, key) if key is not None else None
            if target is None:
                raise Refusal(Code.NOT_FOUND, "There is nothing here.")
            await self._admit(ready, key, viewer, session)
        result = await ready.definition.function(target, tx, **ready.arguments(values))
        return Done(None, await self._answered(ready, values, result, viewer, session))

    async def _admit(self, ready: ReadyCall, key: Any, viewer: Viewer, session: Session) -> None:
        """Refuse a call on a row on which the rules of the action do not hold."""
        if ready.admits is not None:
            step = Step(ready.admits.sql, ready.admits.parameters([key], viewer, {}))
            if await session.drive(lambda: _one_step(step)) is None:
                raise not_yours(ready.view)

    async def _hold(self, resource: ResourceDef, key: Any, session: Session) -> None:
        """Keep others from changing the row until the end, where there are others."""
        dialect = self.engine.store.dialect
        if dialect.lock:
            bind = dialect.value(SlotBind(0, resource.key))
            text, binds = finished(sql(dialect.lock, identifier(resource.table), bind), dialect.placeholder)
            plan = Plan(text, binds, tuple(map(dialect.getter, binds)))
            await session.drive(lambda: _one_step(Step(plan.sql, plan.parameters([key], NOBODY, {}))))

    # what it gives

    async def _answered(
        self, ready: ReadyCall, values: Sequence[Any], result: Any, viewer: Viewer, session: Session
    ) -> bytes:
        told, name = ready.definition.result, f"{ready.resource.name}.{ready.definition.attr}"
        if told.kind == "none":
            return b"true"
        if result is None:
            if not told.nullable:
                raise TypeError(f"{name} gave None, and is declared otherwise")
            return b"null"
        if told.scalar is not None:
            return msgspec.json.encode(to_json(told.scalar, result))
        key = self.engine.model.resources[told.resource].key
        if told.kind == "one":
            found = await self._read(ready, [*values, key.parse(_id_of(result, name))], viewer, session)
            if found is None and not told.nullable:
                raise Refusal(Code.FORBIDDEN, "You may not see what this gives.")
            return found or b"null"
        ids = [key.parse(_id_of(row, name)) for row in result]
        if len(ids) > self.engine.limits.page:
            raise ValueError(f"{name} gave {len(ids)} rows; {self.engine.limits.page} are allowed")
        listed = await self._read(ready, [*values, list(dict.fromkeys(ids)), max(1, len(ids))], viewer, session)
        return _in_order(listed or b"[]", ids, _id_label(ready.call))

    async def _read(self, ready: ReadyCall, values: list[Any], viewer: Viewer, session: Session) -> bytes | None:
        assert ready.answer is not None
        plan, keys = ready.answer.plan, self.engine.cursor_keys(ready.answer.pages, ready.binder, values, viewer)
        step = Step(plan.sql, plan.parameters(values, viewer, keys))
        row = await session.drive(lambda: _one_step(step))
        if row is None or ready.answer.finish is None:
            return None if row is None else unicode(row[0])
        (answer,) = await finish_answers(ready.answer.finish, [unicode(row[0])], self.engine.model.resources)
        return answer


def cost_of_call(call: Call, slots: int, resources: Mapping[str, ResourceDef]) -> Cost:
    """The cost of running a call that has so many slots, and of its answer; the size of a list is the slot after the
    next."""
    definition = resources[call.resource].call(call.name)
    read = _answer(call, definition, resources, slots)
    found = cost_of((read,) if read else (), resources, definition.weight)
    return Cost(max(found.depth, 1), found.price)


def _one_step(step: Step) -> Script[Any]:
    return (yield step)


def _answer(call: Call, definition: CallDef, resources: Mapping[str, ResourceDef], slots: int) -> Read | None:
    """The Read that answers a call; its slots come after those of the arguments."""
    result = definition.result
    if not result.resource:
        return None
    key = resources[result.resource].key
    if result.kind == "one":
        return Read(result.resource, "one", call.pick, Compare("eq", Col(("id",)), Slot(slots, key)))
    where = Compare("in", Col(("id",)), Slot(slots, key, many=True))
    picks = (Field("id", _id_label(call)), *call.pick)
    return Read(result.resource, "list", picks, where, page=Page(Slot(slots + 1, SIZE)))


def _id_of(row: object, name: str) -> str:
    if not isinstance(row, Resource) or rows.is_new(row):
        raise TypeError(f"{name} gave {row!r}, and no row that is saved")
    return row.id


def _id_label(call: Call) -> str:
    """The label of the ids of listed rows until they are in order: one that is no alias of the client's."""
    taken, label = {pick.label for pick in call.pick}, "_id"
    while label in taken:
        label = "_" + label
    return label


def _in_order(listed: bytes, ids: Sequence[Any], label: str) -> bytes:
    """The rows in the order in which they were given; those that the viewer may not read are not among them."""
    found: dict[str, dict[str, msgspec.Raw]] = {}
    for row in decode(_rows, listed):
        found[msgspec.json.decode(row.pop(label))] = row
    return msgspec.json.encode([found[str(each)] for each in ids if str(each) in found])
