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
from typing import Any, Generic, TypeVar, cast

from diptych.ask.asked import Asked
from diptych.ask.nodes import Field, Pick, Read, Write
from diptych.ask.split import split
from diptych.ask.wish import CallWish, WriteWish
from diptych.check.change import guard
from diptych.check.cost import cost_of_write
from diptych.check.values import Binder
from diptych.compile.locks import taking
from diptych.compile.plan import Plan
from diptych.compile.write import WritePlan, compile_write
from diptych.db.replays import Claim, Kept
from diptych.db.script import Row, Script
from diptych.db.store import Session
from diptych.db.unicode import unicode
from diptych.engine import Engine, known_sizes, without_viewer
from diptych.errors import Refusal
from diptych.finish import finish as finish_answers
from diptych.lru import Hashed, LRUCache
from diptych.model.roles import Viewer
from diptych.model.view import View
from diptych.steps import Bound, Deed, Done, ReadyWrite, joined, moved, steps, take

T = TypeVar("T")


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
            return await self.write_apart(lambda session: session.drive(lambda: self._locked(bound)), finish, kept)
        found = deeds[0].ready.plan.found if len(deeds) == 1 and kept is None else None
        if found is not None:
            row = await self._change_alone(bound[0], found)
            if row is not None:
                return finish((Done(bound[0].id, unicode(row[1])),))
            # nothing changed: the script asks why

        def script() -> Script[T]:
            before = None if kept is None else (yield from self._claim(kept))
            if before is not None:
                return before
            result = finish((yield from self._changes(bound)))
            if kept is not None:
                yield from self._keep(kept, result)
            return result

        return await self.engine.store.write(script, self._opening(bound))

    @staticmethod
    def _opening(bound: Sequence[Bound]) -> str:
        """The statement that takes the locks of all changes; "" if they need none."""
        if len(bound) == 1:
            return bound[0].deed.ready.plan.opening
        return taking(each.deed.ready.plan.locks for each in bound)

    def _locked(self, bound: Sequence[Bound]) -> Script[list[Done]]:
        yield from take(self._opening(bound))
        return (yield from self._changes(bound))

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
        session = await self.engine.store.session()
        try:
            if kept is not None:
                before = await session.drive(lambda: self._claim(kept))
                if before is not None:
                    return before
            result = finish(await self._finished(await work(session)))
            if kept is not None:
                await session.drive(lambda: self._keep(kept, result))
            await session.commit()
            return result
        finally:
            await session.end()

    def _claim(self, kept: Keeping[T]) -> Script[T | None]:
        """The answer that the request had; or the key is claimed, if its caller may keep more answers."""
        before = yield from kept.claim.take(self.engine.store.dialect)
        if before is not None:
            return kept.unpack(before)
        self.engine.quota.check(kept.claim.caller)
        return None

    def _keep(self, kept: Keeping[T], result: T) -> Script[None]:
        """Keep an answer with the change; one that is too large undoes it."""
        answer = kept.pack(result)
        self.engine.quota.take(kept.claim.caller, len(answer.head) + len(answer.body))
        yield from kept.claim.keep(answer, self.engine.store.dialect)

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
