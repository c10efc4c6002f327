"""The pipeline of a change, on one page.

    wire → api → ask → check → compile → a script → db: committed → bytes → wire

`ready` is the cold half: rules become guards, and the Write is compiled. `write` is the hot half: the values of
all Writes of a request are bound, and a script is made of them that a store runs in one transaction: all of them
or none. If nothing changed, the script asks why, and the reason becomes a Refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import or_
from typing import Any, Generic, NamedTuple, TypeVar, cast

from diptych.ask.asked import Asked
from diptych.ask.change import Guard, Why
from diptych.ask.nodes import Field, Pick, Read, Write
from diptych.ask.split import Finish, split
from diptych.ask.wish import CallWish, WriteWish
from diptych.check.change import guard
from diptych.check.cost import Cost, cost_of_write
from diptych.check.values import Binder
from diptych.compile.dialect import Dialect
from diptych.compile.plan import MAX_ANSWER, Plan, too_long
from diptych.compile.write import WritePlan, compile_write
from diptych.db.replays import Claim, Kept
from diptych.db.script import Again, Row, Script, Step, Violation
from diptych.db.store import Session
from diptych.db.violations import refusal_of
from diptych.engine import FINISH, Engine, Paged, known_sizes, without_viewer
from diptych.errors import MAX_FAULTS, Code, Fault, Place, Refusal
from diptych.finish import finish as finish_answers
from diptych.lru import Hashed, LRUCache
from diptych.model.defs import FieldDef
from diptych.model.expr import FALSE
from diptych.model.roles import Viewer
from diptych.model.view import View, ViewName, not_yours

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class ReadyWrite:
    """A Write of a known shape: its plans, and how its values are got."""

    write: Write
    plan: WritePlan
    cost: Cost
    """The change itself, and its answer."""
    pages: tuple[Paged, ...]
    binder: Binder
    view: ViewName
    place: Place
    """Where the values of the row stand in the request."""
    asked: Asked | None = None
    finish: Finish | None = None
    """What Python does with the answer, if it has a part in it."""
    versioned: bool = False
    """Does the answer tell the version of the row?"""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.plan.size + self.binder.size + FINISH * (self.finish is not None)

    def place_of(self, field: str) -> Place:
        """Where the value of a field stands, or would stand."""
        for assign in self.write.values:
            if assign.name == field and assign.value is not None:
                return self.binder.sources[assign.value.index].place
        return (*self.place, field)


class Deed(NamedTuple):
    """A Write of a request, with its inputs; `path` is its place in the answer, `prefix` in the request."""

    ready: ReadyWrite
    inputs: Mapping[str, Any]
    path: Place = ()
    prefix: Place = ()


class Done(NamedTuple):
    """What became of a Write: the id of its row, the answer if anything was picked, and what is left to do with it."""

    id: Any
    answer: bytes | None
    finish: Finish | None = None


class Bound:
    """A Deed with its values."""

    __slots__ = ("deed", "keys", "values", "viewer")

    def __init__(self, deed: Deed, values: list[Any], keys: Mapping[int, bytes], viewer: Viewer) -> None:
        self.deed = deed
        self.values = values
        self.keys = keys
        self.viewer = viewer

    @property
    def id(self) -> Any:
        """The id of the row; a new row may have it from the database."""
        return self.values[self.deed.ready.write.id.index]

    @property
    def price(self) -> int:
        """What it costs."""
        return self.deed.ready.cost.price(self.values)

    def step(self, plan: Plan, marked: bool = False) -> Step:
        return Step(plan.sql, plan.parameters(self.values, self.viewer, self.keys), marked)


class Transactor:
    """Makes the changes of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.plans: LRUCache[WritePlan] = engine.cache("plans of changes")

    def ready(
        self, wish: WriteWish, inputs: Mapping[str, Any], view: View, asked: Asked | None = None
    ) -> ReadyWrite:
        """check → compile, once for a shape of requests. Faults of the shape and of the values are told at once."""
        write = wish.ask
        binder = self.binder(wish, inputs)
        answer = Read(write.resource, "one", write.pick)
        self.engine.checks.shape(asked, (answer,))
        sizes = known_sizes((answer,), binder)
        whole, rest = split(answer, self.engine.model.resources)
        plan = self._plan(replace(write, pick=cast("tuple[Pick, ...]", whole.pick)), view, sizes)
        pages = tuple(self.engine.pages((answer,)))
        cost = cost_of_write(write, self.engine.model.resources)
        versioned = Field("version", "version") in write.pick
        kept = without_viewer(asked)
        return ReadyWrite(write, plan, cost, pages, binder, view.name, wish.place, kept, rest, versioned)

    def binder(self, wish: WriteWish | CallWish, inputs: Mapping[str, Any]) -> Binder:
        """How the values of a wish are got; every fault of its shape and of these values is in one Refusal."""
        faults = list(wish.faults)
        try:
            binder = Binder(wish.slots, wish.sources, self.engine.limits, wish.code)
            if not faults:
                return binder
            binder(inputs)
        except Refusal as refusal:
            faults += refusal.faults
        raise Refusal(wish.code, "Some values are not valid.", faults)

    def _plan(self, write: Write, view: View, sizes: Mapping[int, int]) -> WritePlan:
        dialect = self.engine.store.dialect
        key = Hashed((write, view.signature, tuple(sizes.items()) if dialect.sees_limits else ()))
        found = self.plans.get(key)
        if found is None:
            found = compile_write(guard(write, view), self.engine.model, dialect, sizes)
            self.plans.put(key, found, found.size)
        return found

    async def write(
        self, deeds: Sequence[Deed], viewer: Viewer, finish: Callable[[Sequence[Done]], T],
        kept: Keeping[T] | None = None,
    ) -> T:  # fmt: skip
        """Make all changes or none. `finish` makes the answer of what was done; with `kept`, it is kept too."""
        bound = self.bind(deeds, viewer)
        self.engine.checks.price(deeds[0].ready.asked, viewer, sum([each.price for each in bound]))
        if any([deed.ready.finish for deed in deeds]):
            return await self.write_apart(lambda session: session.drive(lambda: self._changes(bound)), finish, kept)
        found = deeds[0].ready.plan.found if len(deeds) == 1 and kept is None else None
        if found is not None:
            row = await self._change_alone(bound[0], found)
            if row is not None:
                return finish((Done(bound[0].id, row[1]),))
            # nothing changed: the script asks why

        def script() -> Script[T]:
            if kept is not None:
                before = yield from kept.claim.take(self.engine.store.dialect)
                if before is not None:
                    return kept.unpack(before)
            result = finish((yield from self._changes(bound)))
            if kept is not None:
                yield from kept.claim.keep(kept.pack(result), self.engine.store.dialect)
            return result

        return await self.engine.store.write(script)

    def _change_alone(self, bound: Bound, found: Plan) -> Awaitable[Row]:
        """The one statement of a change that is all there is to do."""
        step = bound.step(bound.deed.ready.plan.change, self.engine.store.dialect.marks)
        return self.engine.store.change(step, partial(bound.step, found))

    def _changes(self, bound: Sequence[Bound]) -> Script[list[Done]]:
        done = []
        for each in bound:
            try:
                done.append((yield from steps(each, self.engine.store.dialect)))
            except Refusal as refusal:
                refusal.path = each.deed.path
                raise
        return done

    async def write_apart(
        self, work: Callable[[Session], Awaitable[Sequence[Done]]], finish: Callable[[Sequence[Done]], T],
        kept: Keeping[T] | None,
    ) -> T:  # fmt: skip
        """The same in a session, for changes in which code of the model has a part: what it raises undoes them."""
        dialect = self.engine.store.dialect
        session = await self.engine.store.session()
        try:
            if kept is not None:
                before = await session.drive(lambda: kept.claim.take(dialect))
                if before is not None:
                    return kept.unpack(before)
            result = finish(await self._finished(await work(session)))
            if kept is not None:
                await session.drive(lambda: kept.claim.keep(kept.pack(result), dialect))
            await session.commit()
            return result
        finally:
            await session.end()

    async def _finished(self, done: Sequence[Done]) -> Sequence[Done]:
        """The same, with what Python computes in the answers."""
        todo = [each.finish for each in done]
        if not any(todo):
            return done
        answers = await finish_answers(todo, [each.answer for each in done], self.engine.model.resources)
        return [Done(each.id, answer) for each, answer in zip(done, answers, strict=True)]

    async def replay(self, kept: Keeping[T]) -> T | None:
        """The answer that is kept, if there is one. (A request that only looks claims nothing.)"""
        dialect = self.engine.store.dialect

        def script() -> Script[T | None]:
            before = yield from kept.claim.look(dialect)
            return None if before is None else kept.unpack(before)

        return await self.engine.store.write(script)

    def bind(self, deeds: Sequence[Deed], viewer: Viewer) -> list[Bound]:
        """The values of all deeds, or a Refusal that names every faulty place of all of them."""
        bound: list[Bound] = []
        refusals: list[Refusal] = []
        for deed in deeds:
            ready = deed.ready
            try:
                values = ready.binder(deed.inputs)
                keys = self.engine.cursor_keys(ready.pages, ready.binder, values, viewer)
                bound.append(Bound(deed, values, keys, viewer))
            except Refusal as refusal:
                refusals.append(moved(refusal, deed.prefix))
        if refusals:
            raise joined(refusals)
        return bound


@dataclass(frozen=True, slots=True, eq=False)
class Keeping(Generic[T]):
    """An answer that is kept: under which key, and how it is packed."""

    claim: Claim
    pack: Callable[[T], Kept]
    unpack: Callable[[Kept], T]


def joined(refusals: Sequence[Refusal]) -> Refusal:
    """One Refusal for several: the first, with the faults of all that have its code, as far as anyone reads."""
    first = refusals[0]
    faults = [fault for each in refusals if each.code is first.code for fault in each.faults]
    return Refusal(first.code, first.message, faults[:MAX_FAULTS], more=first.more)


def moved(refusal: Refusal, prefix: Place) -> Refusal:
    """The same Refusal, where the values stand deeper in the body."""
    if not prefix:
        return refusal
    faults = [replace(fault, place=(*prefix, *fault.place[1:])) if fault.place[:1] == prefix[:1] else fault
              for fault in refusal.faults]  # fmt: skip
    return Refusal(refusal.code, refusal.message, faults, more=refusal.more)


def steps(bound: Bound, dialect: Dialect) -> Script[Done]:
    """The statements of one Write."""
    ready = bound.deed.ready
    plan, write = ready.plan, ready.write
    answer = None
    if plan.answer is not None and write.verb == "delete":
        row = yield bound.step(plan.answer)
        answer = row[0] if row else None
    before = yield from _before(bound)
    try:
        row = yield bound.step(plan.change, marked=dialect.marks)
    except Violation as violation:
        raise moved(_violated(violation, ready), bound.deed.prefix) from None
    if row is None:
        raise moved(_refused((yield bound.step(plan.why)), bound), bound.deed.prefix)
    if write.id.scalar.python is int:
        bound.values[write.id.index] = row[0]
    if plan.after is not None:
        after = yield bound.step(plan.after)
        if after is None or not all(map(or_, before or after, after)):
            raise not_yours(ready.view)
    if plan.answer is None:
        answer = row[1]
    elif write.verb != "delete":
        found = yield bound.step(plan.answer)
        if found is None:  # a row that leads to itself, and is not what its rules saw
            raise not_yours(ready.view)
        answer = found[0]
    if answer is None and write.pick:
        raise Refusal(Code.CONFLICT, "The row holds a value that its type does not allow, and cannot be shown.")
    if answer is not None and len(answer) > MAX_ANSWER:  # it is not whole
        raise too_long()
    return Done(bound.id, answer, ready.finish)


def _before(bound: Bound) -> Script[Row]:
    """What the guards that are tested after the change say of the row as it is, which is held for that."""
    plan = bound.deed.ready.plan
    if plan.before is None:
        return None
    if plan.hold is not None:
        yield bound.step(plan.hold)
    return (yield bound.step(plan.before))


# why nothing changed


def _refused(row: Sequence[Any] | None, bound: Bound) -> Refusal:
    ready = bound.deed.ready
    guards = ready.plan.guards
    if row is None:
        return Refusal(Code.NOT_FOUND, "There is nothing here.")
    failed = [each for each, holds in zip(guards, row, strict=False) if not holds]
    if not failed:
        raise Again
    failed = _tellable(failed)
    first = failed[0]
    alike = [each for each in failed if each.why is first.why]
    match first.why:
        case Why.HIDDEN:
            return Refusal(Code.NOT_FOUND, "There is nothing here.")
        case Why.DENIED:
            return not_yours(ready.view)
        case Why.STALE:
            return Refusal(Code.PRECONDITION_FAILED, "It has changed since: read it again.")
        case Why.STATE:
            states = dict(zip(ready.plan.states, row[len(guards) :], strict=True))
            return _state(first, states.get(first.field), ready)
        case Why.DANGLING:
            told = "there is nothing with this id"
            return _faulty(Code.CONFLICT, "A reference leads to nothing.", alike, ready, told)
        case Why.DIFFERS | Why.ABSENT:
            wrong = [each for each in failed if each.why in _REPLACED]
            faults = [Fault(ready.place_of(each.field), _REPLACED[each.why]) for each in wrong]
            return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)


_REPLACED = {Why.DIFFERS: "the field is read-only, and has another value", Why.ABSENT: "expected a value"}
"""What can be wrong with a replacement, once its row is known."""


def _tellable(failed: list[Guard]) -> list[Guard]:
    """Where a reference leads to nothing, not what rules say of the row as it would become: that could tell of a
    hidden row, to which the reference must seem to lead nowhere."""
    if all(each.why is not Why.DANGLING for each in failed):
        return failed
    return [each for each in failed if each.becomes == FALSE or each.why is Why.DANGLING]


def _faulty(code: Code, message: str, guards: Sequence[Guard], ready: ReadyWrite, told: str) -> Refusal:
    return Refusal(code, message, [Fault(ready.place_of(each.field), told) for each in guards])


def _state(failed: Guard, state: str | None, ready: ReadyWrite) -> Refusal:
    field = ready.view.model[ready.write.resource].fields[failed.field]
    if state is None and ready.write.verb != "create":  # the viewer may not see it
        return _faulty(Code.CONFLICT, "The state cannot move so.", [failed], ready, "the state cannot move so")
    allowed = _allowed(field, state, ready.view)
    begins = f"'{field.name}' is {state} and" if state is not None else f"'{field.name}' of a new row"
    told = f"{begins} can become {' or '.join(allowed)}" if allowed else f"{begins} cannot change"
    if state is None:
        told = f"{begins} can only be {allowed[0]}"
    faults = [Fault(ready.place_of(field.name), told)]
    return Refusal(Code.CONFLICT, told[:1].upper() + told[1:] + ".", faults, more={"allowed": allowed})


def _allowed(field: FieldDef, state: str | None, view: ViewName) -> list[str]:
    """The states that this viewer may choose next."""
    if state is None:
        return [field.default]
    roles = view.signature.roles
    moves = (move for move in field.moves if move.to is None or move.to.name in roles)
    return list(dict.fromkeys(move.target.value for move in moves if move.source.value == state))


def _violated(violation: Violation, ready: ReadyWrite) -> Refusal:
    refusal = refusal_of(violation.kind)
    if violation.kind not in ("unique", "reference"):
        return refusal
    resource = ready.view.model[ready.write.resource]
    own = {field.column: name for name, field in resource.fields.items() if field.stored}
    names = [own[column] for column in violation.columns if column in own and violation.table == resource.table]
    if violation.kind == "unique":
        given = {assign.name for assign in ready.write.values}  # what was not given may be hidden, and has no place
        faults = [Fault(ready.place_of(name), "another one has this value") for name in names if name in given]
        return Refusal(refusal.code, refusal.message, faults)
    if ready.write.verb == "delete" or not names:
        return refusal
    faults = [Fault(ready.place_of(name), "there is nothing with this id") for name in names]
    return Refusal(Code.CONFLICT, "A reference leads to nothing.", faults)
