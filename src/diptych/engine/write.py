"""The write pipeline on one page.

    wire → api → ask → policy → compile → a script → db: committed → bytes → wire

`prepare` is the cold half: rules become guards, and the Write is compiled. `write` is the hot half: the values of all
Writes of a request are bound, and the store runs their statements as a script in one transaction: all or none. If no
row changed, the script queries the reason, which becomes a Refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.measures import RequestMeasures, too_many_writes
from diptych.ask.nodes import BulkPart, Field, Nodes, Pick, Read, TypeName, Write
from diptych.ask.python_fields import extract
from diptych.ask.wish import CallWish, Follows, WriteWish
from diptych.compile.find import Lock, compile_find, compile_rows, compile_there
from diptych.compile.locks import taking
from diptych.compile.plan import Plan
from diptych.compile.write import WritePlan, compile_write
from diptych.db.idempotency import IdempotencyClaim, StoredReply
from diptych.db.script import ResultRow, Script
from diptych.db.sqlite.unicode import unicode
from diptych.db.store import Session
from diptych.engine.acts import check_reason
from diptych.engine.bulk import Bulk
from diptych.engine.nest import nest_steps, nests
from diptych.engine.page_sizes import known_sizes
from diptych.engine.plan_cache import PlanCache
from diptych.engine.python_fields import finish as finish_answers
from diptych.engine.read import Engine
from diptych.engine.read_plan import without_viewer
from diptych.engine.references import NO_ROW, check_references
from diptych.engine.refusals import joined, moved
from diptych.engine.together import alike, create_together
from diptych.engine.upsert import LOCKS, CreateUnder, DeleteByKey, Upsert
from diptych.engine.write_op import BoundWrite, PreparedWrite, WriteOp, WriteResult
from diptych.engine.write_steps import steps, take
from diptych.errors import Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.rules.expr import TRUE, Col, Compare, Slot
from diptych.model.view import View
from diptych.policy.bulk import asked, each_of, reached, rows_of, shown_rows
from diptych.policy.cost import cost_of_write
from diptych.policy.guards import add_guards
from diptych.policy.upserts import as_create, as_update, key_of_upsert, without_key
from diptych.policy.values import Binder

T = TypeVar("T")
_NO_KEYS: Mapping[int, bytes] = {}


class WriteEngine:
    """Runs the writes of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._plans: PlanCache[WritePlan] = engine.plans("plans of changes")

    def prepare(
        self, wish: WriteWish, inputs: Mapping[str, Any], view: View, measures: RequestMeasures | None = None
    ) -> PreparedWrite:
        """policy → compile, once for a shape of requests. Faults of shape and values are reported together."""
        prepared = self._prepare(wish, inputs, view, measures)
        uses = self.engine.uses_of(wish)
        return prepared if uses is None else replace(prepared, uses=uses)

    def _prepare(
        self, wish: WriteWish, inputs: Mapping[str, Any], view: View, measures: RequestMeasures | None
    ) -> PreparedWrite:
        write = wish.ask
        binder = self.binder(wish, inputs)
        if write.rows is not None:
            return self._bulk(wish, binder, view, measures)
        answer = Read(write.resource, "one", write.pick)
        if measures is not None and wish.depth > measures.depth:
            measures.depth = wish.depth
        self.engine.checks.shape(measures, (answer,))
        sizes = known_sizes((answer,), binder)
        whole, rest = extract(answer, self.engine.model.resources)
        stored = replace(write, pick=cast("tuple[Pick, ...]", whole.pick))
        first = as_create(stored) if write.verb == "upsert" else without_key(stored)
        plan = self.plan(first, view, sizes, wish.follows)
        pages = tuple(self.engine.pages((answer,)))
        cost = cost_of_write(write, self.engine.model.resources, wish.depth)
        versioned = Field("version", "version") in write.pick
        kept = without_viewer(measures)
        waits = wish.follows is not None and (plan.after is not None or plan.answer is not None)
        prepared = PreparedWrite(write, plan, cost, pages, binder, view.name, wish.path, kept, rest, versioned, waits)
        if write.verb == "upsert":
            return self._upsert(prepared, stored, view, sizes)
        if write.verb == "delete" and write.key:
            key, engine = key_of_upsert(write, view), self.engine
            find = compile_find(key.resource, key.has, key.seen, engine.model, engine.store.dialect, "NO KEY UPDATE")
            return replace(prepared, composed=DeleteByKey(find, replace(prepared, write=without_key(write))))
        if write.verb == "create" and binder.sources[write.id.index].make is None:
            return self._own_id(prepared)
        return prepared

    def _bulk(self, wish: WriteWish, binder: Binder, view: View, measures: RequestMeasures | None) -> PreparedWrite:
        """A change of many rows: the plan that finds them, and that of the change of each."""
        engine, write = self.engine, wish.ask
        model, dialect = engine.model, engine.store.dialect
        page = asked(write)
        engine.checks.shape(measures, (page,))
        whole, rest = extract(page, model.resources)
        stored = replace(write, parts=cast("tuple[BulkPart | Nodes | TypeName, ...]", whole.pick))
        one = each_of(write)
        plan = replace(self.plan(one, view, {}), lookup=None)
        lists = shown_rows(stored, Slot(len(wish.slots), write.id.scalar, many=True))
        answer = engine.plan_reads(lists, view, {}) if lists else None
        single = PreparedWrite(
            one, plan, cost_of_write(one, model.resources), (), binder, view.name, wish.path, without_viewer(measures)
        )
        rows, lock = rows_of(write), "UPDATE" if write.verb == "delete" else "NO KEY UPDATE"
        find = compile_rows(write.resource, reached(write, view), rows.most, model, dialect, cast(Lock, lock))
        there = compile_there(write.resource, write.id, model, dialect)
        bulk = Bulk(stored, find, there, single, answer, engine.limits.page, self._around(write, view))
        pages, cost = tuple(engine.pages(lists)), cost_of_write(write, model.resources)
        return replace(single, write=write, cost=cost, pages=pages, finish=rest, composed=bulk)

    def _around(self, write: Write, view: View) -> Plan | None:
        """The statement that finds and locks the row whose links are written."""
        if write.within is None:
            return None
        has, name = Compare("eq", Col(("id",)), write.within.id), write.within.resource
        seen = view.resources[name].read
        return compile_find(name, has, seen, self.engine.model, self.engine.store.dialect, "NO KEY UPDATE")

    def _own_id(self, prepared: PreparedWrite) -> PreparedWrite:
        """A creation whose id the client makes: a row that has it was perhaps not made by this request."""
        alone = replace(prepared, plan=replace(prepared.plan, lookup=None))
        if not prepared.write.key:
            return alone
        engine, write = self.engine, prepared.write
        has = Compare("eq", Col(("id",)), write.id)
        find = compile_find(write.resource, has, TRUE, engine.model, engine.store.dialect)
        return replace(alone, composed=CreateUnder(find, alone))

    def _upsert(self, prepared: PreparedWrite, stored: Write, view: View, sizes: Mapping[int, int]) -> PreparedWrite:
        """An upsert of the plans of the creation and of the update that it may become."""
        engine, key = self.engine, key_of_upsert(stored, view)
        create = replace(prepared, write=as_create(stored))
        update, answer = None, None
        if stored.keep:
            where = Compare("eq", Col(("id",)), stored.id)
            answer = engine.plan_reads((Read(stored.resource, "one", stored.pick, where),), view, sizes).plan
        else:
            write = as_update(stored, key.fields)
            update = replace(prepared, write=write, plan=self.plan(write, view, sizes))
        find = compile_find(key.resource, key.has, key.seen, engine.model, engine.store.dialect, LOCKS[stored.keep])
        upsert = Upsert(key.columns, find, create, update, answer)
        locks = create.plan.locks if update is None else create.plan.locks | update.plan.locks
        plan = replace(prepared.plan, lookup=None, locks=locks, opening=taking([locks]))
        return replace(prepared, plan=plan, composed=upsert)

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

    def plan(self, write: Write, view: View, sizes: Mapping[int, int], follows: Follows | None = None) -> WritePlan:
        """policy → compile: the cached plan of a Write."""
        model, dialect = self.engine.model, self.engine.store.dialect
        key = write if follows is None else (write, follows)
        return self._plans.get(
            key, view, sizes, lambda: compile_write(add_guards(write, view), model, dialect, sizes, follows)
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
        self._admit(bound, viewer)
        prepared = ops[0].prepared
        if len(ops) == 1 and kept is None and prepared.plan.lookup is not None and prepared.finish is None:
            row = await self._change_alone(bound[0], prepared.plan.lookup)
            if row is not None:
                return finish((WriteResult(bound[0].id, unicode(row[1])),))
            # nothing changed: the script queries the reason
        if any([op.prepared.finish for op in ops]):
            return await self.write_apart(lambda session: session.drive(lambda: self._locked(bound)), finish, kept)
        return await self.engine.store.write(partial(self._script, bound, finish, kept), self._opening(bound))

    def _admit(self, bound: Sequence[BoundWrite], viewer: Viewer) -> None:
        """Check the limits of a request, and charge its price."""
        engine, first, price = self.engine, bound[0].op, bound[0].price
        if engine.model.audited:
            check_reason(engine.model, [write.op.prepared.write.resource for write in bound])
        if len(bound) > 1:
            if len(bound) > engine.limits.writes:
                raise too_many_writes(len(bound), engine.limits)
            first = next(write.op for write in bound if not write.op.part)
            price = sum([write.price for write in bound])
        engine.checks.price(first.prepared.measures, viewer, price)
        engine.note_price(price)
        if engine.rates is not None:
            ops = [write.op for write in bound]
            engine.charge(price, {op.prepared.write.resource for op in ops} | resources_of(ops))

    def _script(
        self,
        bound: Sequence[BoundWrite],
        finish: Callable[[Sequence[WriteResult]], T],
        kept: IdempotentReply[T] | None,
    ) -> Script[T]:
        """All that a request does in its transaction."""
        before = None if kept is None else (yield from self._claim(kept))
        if before is not None:
            return before
        result = finish((yield from self.changes(bound)))
        if kept is not None:
            yield from self._keep(kept, result)
        return result

    @staticmethod
    def _opening(bound: Sequence[BoundWrite]) -> str:
        """The statement that takes the locks of all writes; "" if they need none."""
        if len(bound) == 1:
            return bound[0].op.prepared.plan.opening
        return taking(write.op.prepared.plan.locks for write in bound)

    def _locked(self, bound: Sequence[BoundWrite]) -> Script[list[WriteResult]]:
        yield from take(self._opening(bound))
        return (yield from self.changes(bound))

    def _change_alone(self, bound: BoundWrite, found_plan: Plan) -> Awaitable[ResultRow]:
        """Run a write that is a single statement."""
        step = bound.step(bound.op.prepared.plan.change, self.engine.store.dialect.marks)
        return self.engine.store.change(step, partial(bound.step, found_plan))

    def changes(self, bound: Sequence[BoundWrite]) -> Script[list[WriteResult]]:
        """The statements of all writes of a request, in an open transaction with its locks."""
        done: list[WriteResult] = []
        ids: dict[str, Any] = {}
        if len(bound) > 1 and any([write.op.more for write in bound]):
            for nest in nests(bound):
                done.append((yield from nest_steps(nest, ids, self.engine.store.dialect)))
            return done
        while len(done) < len(bound):
            write = bound[len(done)]
            group = list(alike(bound, len(done))) if len(bound) > 1 else []
            if len(group) > 1:
                done += yield from create_together(group, ids, (), self.engine.store.dialect)
                ids |= {created.op.step: result.id for created, result in zip(group, done[-len(group) :], strict=True)}
                continue
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
        return [
            WriteResult(result.id, answer, created=result.created) for result, answer in zip(done, answers, strict=True)
        ]

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
        if len(ops) == 1 and earlier is None:
            try:
                return [self._bound(ops[0], viewer, {}, alone=True)]
            except Refusal as refusal:
                raise joined([moved(refusal, ops[0].prefix)]) from None
        bound: list[BoundWrite] = []
        refusals: list[Refusal] = []
        steps = dict(earlier or {})
        for op in ops:
            write = op.prepared.write
            try:
                bound.append(self._bound(op, viewer, steps))
            except Refusal as refusal:
                refusals.append(moved(refusal, op.prefix))
            if op.step:
                steps[op.step] = write.resource if write.rows is None else NO_ROW
        if refusals:
            raise joined(refusals)
        return bound

    def _bound(self, op: WriteOp, viewer: Viewer, earlier: Mapping[str, str], *, alone: bool = False) -> BoundWrite:
        prepared = op.prepared
        binder = prepared.binder
        values = binder(op.inputs)
        keys = self.engine.cursor_keys(prepared.pages, binder, values, viewer) if prepared.pages else _NO_KEYS
        refers = bool(binder.references) and check_references(values, binder, earlier, alone=alone)
        return BoundWrite(op, values, keys, viewer, refers)


def resources_of(ops: Iterable[WriteOp]) -> frozenset[str]:
    """All resources that the answers of some writes read."""
    return frozenset().union(*(op.prepared.measures.resources for op in ops if op.prepared.measures is not None))


class IdempotentReply(Struct, Generic[T], frozen=True, eq=False):
    """A reply that is stored under an idempotency key, and how it is serialised."""

    claim: IdempotencyClaim
    pack: Callable[[T], StoredReply]
    unpack: Callable[[StoredReply], T]
