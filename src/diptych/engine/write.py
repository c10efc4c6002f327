"""The write pipeline on one page.

    wire → api → ask → policy → compile → a script → db: committed → bytes → wire

`prepare` is the cold half: rules become guards, and the Write is compiled. `write` is the hot half: the values of all
Writes of a request are bound, and the store runs their statements as a script in one transaction: all or none. If no
row changed, the script queries the reason, which becomes a Refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Field, Pick, Read, Write
from diptych.ask.python_fields import extract
from diptych.ask.wish import CallWish, WriteWish
from diptych.compile.locks import taking
from diptych.compile.plan import Plan
from diptych.compile.write import WritePlan, compile_write
from diptych.db.idempotency import IdempotencyClaim, StoredReply
from diptych.db.script import ResultRow, Script
from diptych.db.sqlite.unicode import unicode
from diptych.db.store import Session
from diptych.engine.plan_cache import PlanCache
from diptych.engine.python_fields import finish as finish_answers
from diptych.engine.read import Engine, known_sizes, without_viewer
from diptych.engine.references import check_references
from diptych.engine.write_op import BoundWrite, PreparedWrite, WriteOp, WriteResult, joined, moved, steps, take
from diptych.errors import Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.view import View
from diptych.policy.cost import cost_of_write
from diptych.policy.guards import add_guards
from diptych.policy.values import Binder

T = TypeVar("T")


class WriteEngine:
    """Runs the writes of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._plans: PlanCache[WritePlan] = engine.plans("plans of changes")

    def prepare(
        self, wish: WriteWish, inputs: Mapping[str, Any], view: View, measures: RequestMeasures | None = None
    ) -> PreparedWrite:
        """policy → compile, once for a shape of requests. Faults of shape and values are reported together."""
        write = wish.ask
        binder = self.binder(wish, inputs)
        answer = Read(write.resource, "one", write.pick)
        self.engine.checks.shape(measures, (answer,))
        sizes = known_sizes((answer,), binder)
        whole, rest = extract(answer, self.engine.model.resources)
        plan = self._plan(replace(write, pick=cast("tuple[Pick, ...]", whole.pick)), view, sizes)
        pages = tuple(self.engine.pages((answer,)))
        cost = cost_of_write(write, self.engine.model.resources)
        versioned = Field("version", "version") in write.pick
        kept = without_viewer(measures)
        return PreparedWrite(write, plan, cost, pages, binder, view.name, wish.path, kept, rest, versioned)

    def binder(self, wish: WriteWish | CallWish, inputs: Mapping[str, Any]) -> Binder:
        """The binder of a wish's values; one Refusal reports all faults of its shape and of these values."""
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
        model, dialect = self.engine.model, self.engine.store.dialect
        return self._plans.get(
            write, view, sizes, lambda: compile_write(add_guards(write, view), model, dialect, sizes)
        )

    async def write(
        self,
        ops: Sequence[WriteOp],
        viewer: Viewer,
        finish: Callable[[Sequence[WriteResult]], T],
        kept: IdempotentReply[T] | None = None,
    ) -> T:
        """Run all writes in one transaction. `finish` makes the reply of the results; `kept` stores it for retries."""
        bound = self.bind(ops, viewer)
        self.engine.checks.price(ops[0].prepared.measures, viewer, sum([write.price for write in bound]))
        if any([op.prepared.finish for op in ops]):
            return await self.write_apart(lambda session: session.drive(lambda: self._locked(bound)), finish, kept)
        found_plan = ops[0].prepared.plan.lookup if len(ops) == 1 and kept is None else None
        if found_plan is not None:
            row = await self._change_alone(bound[0], found_plan)
            if row is not None:
                return finish((WriteResult(bound[0].id, unicode(row[1])),))
            # nothing changed: the script queries the reason

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
    def _opening(bound: Sequence[BoundWrite]) -> str:
        """The statement that takes the locks of all writes; "" if they need none."""
        if len(bound) == 1:
            return bound[0].op.prepared.plan.opening
        return taking(write.op.prepared.plan.locks for write in bound)

    def _locked(self, bound: Sequence[BoundWrite]) -> Script[list[WriteResult]]:
        yield from take(self._opening(bound))
        return (yield from self._changes(bound))

    def _change_alone(self, bound: BoundWrite, found_plan: Plan) -> Awaitable[ResultRow]:
        """Run a write that is a single statement."""
        step = bound.step(bound.op.prepared.plan.change, self.engine.store.dialect.marks)
        return self.engine.store.change(step, partial(bound.step, found_plan))

    def _changes(self, bound: Sequence[BoundWrite]) -> Script[list[WriteResult]]:
        done: list[WriteResult] = []
        ids: dict[str, Any] = {}
        for write in bound:
            try:
                done.append((yield from steps(write.resolved(ids), self.engine.store.dialect)))
                ids[write.op.step] = done[-1].id
            except Refusal as refusal:
                refusal.path = write.op.path
                raise
        return done

    async def write_apart(
        self,
        work: Callable[[Session], Awaitable[Sequence[WriteResult]]],
        finish: Callable[[Sequence[WriteResult]], T],
        kept: IdempotentReply[T] | None,
    ) -> T:
        """Run writes that involve Python code of the model, in a session: an exception rolls them back."""
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

    def _claim(self, kept: IdempotentReply[T]) -> Script[T | None]:
        """The stored reply of an earlier attempt; None if the key is now claimed, within the caller's quota."""
        before = yield from kept.claim.take(self.engine.store.dialect)
        if before is not None:
            return kept.unpack(before)
        self.engine.quota.check(kept.claim.caller)
        return None

    def _keep(self, kept: IdempotentReply[T], result: T) -> Script[None]:
        """Store the reply in the same transaction; one that is too large rolls it back."""
        answer = kept.pack(result)
        self.engine.quota.take(kept.claim.caller, len(answer.head) + len(answer.body))
        yield from kept.claim.keep(answer, self.engine.store.dialect)

    async def _finished(self, done: Sequence[WriteResult]) -> Sequence[WriteResult]:
        """The results with their Python fields computed."""
        todo = [result.finish for result in done]
        if not any(todo):
            return done
        answers = await finish_answers(todo, [result.answer for result in done], self.engine.model.resources)
        return [WriteResult(result.id, answer) for result, answer in zip(done, answers, strict=True)]

    async def replay(self, kept: IdempotentReply[T]) -> T | None:
        """The stored reply, if there is one. The key is not claimed."""
        dialect = self.engine.store.dialect

        def script() -> Script[T | None]:
            before = yield from kept.claim.look(dialect)
            return None if before is None else kept.unpack(before)

        return await self.engine.store.write(script)

    def bind(
        self, ops: Sequence[WriteOp], viewer: Viewer, earlier: Mapping[str, str] | None = None
    ) -> list[BoundWrite]:
        """Bind the values of all writes; one Refusal reports the faults of all of them. `earlier` are the steps before
        them, each with the resource that it writes."""
        bound: list[BoundWrite] = []
        refusals: list[Refusal] = []
        steps = dict(earlier or {})
        alone = earlier is None and len(ops) == 1
        for op in ops:
            prepared = op.prepared
            try:
                values = prepared.binder(op.inputs)
                keys = self.engine.cursor_keys(prepared.pages, prepared.binder, values, viewer)
                refers = check_references(values, prepared.binder, steps, alone=alone)
                bound.append(BoundWrite(op, values, keys, viewer, refers))
            except Refusal as refusal:
                refusals.append(moved(refusal, op.prefix))
            if op.step:
                steps[op.step] = prepared.write.resource
        if refusals:
            raise joined(refusals)
        return bound


@dataclass(frozen=True, slots=True, eq=False)
class IdempotentReply(Generic[T]):
    """A reply that is stored under an idempotency key, and how it is serialised."""

    claim: IdempotencyClaim
    pack: Callable[[T], StoredReply]
    unpack: Callable[[StoredReply], T]
