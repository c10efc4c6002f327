"""Runs the model's own functions, actions and queries, in a transaction.

    begin → load the row → await function(row, tx, **arguments) → read the result → commit

An exception rolls everything back, and the client learns nothing of it. The other writes of the same request run in
the same session, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from diptych.ask.measures import RequestMeasures, too_many_writes
from diptych.ask.nodes import Call, Field, Read
from diptych.ask.wish import CallWish
from diptych.compile.fragment import identifier, sql
from diptych.compile.locks import taking
from diptych.compile.own_row import own_row
from diptych.compile.plan import Plan
from diptych.compile.read import compile_reads
from diptych.compile.table_ref import BareRef
from diptych.db.script import Script, Step
from diptych.db.sqlite.unicode import unicode
from diptych.db.store import Session
from diptych.engine.acts import note_actions
from diptych.engine.background import arguments_of, enqueue
from diptych.engine.call_answer import answer_read, id_label, in_order
from diptych.engine.nest import nest_steps
from diptych.engine.python_fields import finish as finish_answers
from diptych.engine.read_plan import ReadPlan, without_viewer
from diptych.engine.references import NO_ROW, check_references, resolved
from diptych.engine.refusals import joined, moved
from diptych.engine.transaction import ModelTx
from diptych.engine.write import IdempotentReply, WriteEngine
from diptych.engine.write_op import BoundWrite, WriteOp, WriteResult
from diptych.engine.write_steps import locked_steps, take
from diptych.errors import Code, Fault, Path, Refusal
from diptych.identity.owner import owner_of
from diptych.model.call_defs import CallDef
from diptych.model.declare import rows
from diptych.model.declare.fault import Fault as ModelFault
from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import NOBODY, Viewer
from diptych.model.defs import ResourceDef
from diptych.model.rules.expr import TRUE, Col, Compare, Expr, Slot, and_
from diptych.model.scalar_values import from_json, to_json
from diptych.model.view import View, ViewName, not_yours
from diptych.policy.cache_age import max_age_of_call
from diptych.policy.cost import Cost, cost_of
from diptych.policy.deprecations import Uses
from diptych.policy.values import Binder

T = TypeVar("T")


class PreparedCall(Struct, frozen=True, eq=False):
    """A prepared call: the function, the binder of its arguments, and the plan that reads its result."""

    call: Call
    resource: ResourceDef
    definition: CallDef
    binder: Binder
    view: ViewName
    path: Path
    answer: ReadPlan | None
    cost: Cost
    """The cost of the call and of reading its result."""
    admits: Plan | None
    """Selects the row if the rules of the action hold on it; None if no rule depends on the row."""
    measures: RequestMeasures | None = None
    max_age: int = 0
    """Seconds for which a shared cache may keep the result of a query; 0 means never."""
    uses: Uses | None = None
    """The deprecated parts of the API that it uses."""

    @property
    def size(self) -> int:
        return self.binder.size + sum(plan.size for plan in (self.answer, self.admits) if plan is not None)

    def price(self, values: Sequence[Any], most: int) -> int:
        """The price of the call. The number of rows it will list is not known, so the page limit is assumed."""
        return self.cost.price([*values, None, most])

    def arguments(self, values: Sequence[Any]) -> dict[str, Any]:
        """The arguments of the function, as Python values."""
        sent = {assign.name: assign.value for assign in self.call.values}
        arguments: dict[str, Any] = {}
        for argument in self.definition.arguments:
            slot = sent.get(argument.name)
            value = values[slot.index] if slot is not None else None if argument.name in sent else argument.default
            arguments[argument.attr] = from_json(argument.scalar, value)
        return arguments


class CallOp(Struct, frozen=True, eq=False):
    """A call of a request, with its inputs; `path` is its path in the response, `prefix` in the request."""

    prepared: PreparedCall
    inputs: Mapping[str, Any]
    path: Path = ()
    prefix: Path = ()
    step: str = ""

    @property
    def prepared_inputs(self) -> tuple[PreparedCall, Mapping[str, Any]]:
        return self.prepared, self.inputs


class BoundCall(Struct, frozen=True, eq=False):
    """A CallOp with its values."""

    op: CallOp
    values: list[Any]

    def placed(self, fault: ModelFault) -> Refusal:
        """A fault that the code of the model found, with its path in the request and in the response."""
        prepared = self.op.prepared
        names = {argument.attr: argument.name for argument in prepared.definition.arguments}
        path = (*prepared.path, names.get(fault.field, fault.field))
        refusal = Refusal(prepared.binder.code, fault.message, [Fault(path, fault.reason)])
        placed = moved(refusal, self.op.prefix)
        placed.path = self.op.path
        return placed


class CallEngine:
    """Runs the actions and queries of one model."""

    def __init__(self, write_engine: WriteEngine) -> None:
        self.write_engine = write_engine
        self.engine = write_engine.engine

    def prepare(
        self,
        wish: CallWish,
        inputs: Mapping[str, Any],
        view: View,
        measures: RequestMeasures | None = None,
        definition: CallDef | None = None,
    ) -> PreparedCall:
        """policy → compile, once for each shape of a call; values are bound later. A job has a `definition` of its own,
        with the result of its function."""
        call = wish.ask
        binder = self.write_engine.binder(wish, inputs)
        resource = self.engine.model.resources[call.resource]
        is_job, definition = definition is not None, definition or resource.call(call.name)
        read = answer_read(call, definition, self.engine.model.resources, len(wish.slots))
        planned = None
        if read is not None:
            self.engine.checks.shape(measures, (read,))
            planned = self.engine.plan_reads((read,), view, {})
        cost = cost_of_call(call, len(wish.slots), self.engine.model.resources, definition)
        admits = self._admits(resource, view.call_rule(resource, definition))
        age = 0 if is_job else max_age_of_call(call, view).seconds
        return PreparedCall(
            call,
            resource,
            definition,
            binder,
            view.name,
            wish.path,
            planned,
            cost,
            admits,
            without_viewer(measures),
            age,
            None if is_job else self.engine.uses_of(wish),
        )

    def _admits(self, resource: ResourceDef, rule: Expr) -> Plan | None:
        if rule == TRUE:
            return None
        where = and_(Compare("eq", Col(("id",)), Slot(0, resource.key)), rule)
        read = Read(resource.name, "one", (Field("id", "id"),), where)
        return compile_reads([read], self.engine.model, self.engine.store.dialect)

    async def write(
        self,
        ops: Sequence[WriteOp | CallOp],
        viewer: Viewer,
        finish: Callable[[Sequence[WriteResult]], T],
        kept: IdempotentReply[T] | None = None,
    ) -> T:
        """Run the writes and calls of a request in one transaction: all or none."""
        bound = self._check(ops, viewer)
        if self.engine.model.audited:
            note_actions(self.engine.model, [op.prepared for op in ops])

        async def work(session: Session) -> list[WriteResult]:
            done: list[WriteResult] = []
            ids: dict[str, Any] = {}
            nest: list[BoundWrite] = []
            for op in bound:
                if isinstance(op, BoundWrite) and (nest or op.op.more):
                    nest.append(op)
                    if not op.op.more:
                        done.append(await self._nested(nest, session, ids))
                        nest = []
                    continue
                done.append(await self._do(op, viewer, session, ids))
                ids[op.op.step] = done[-1].id
            return done

        result = await self.write_engine.write_apart(work, finish, kept)
        if any(isinstance(op, CallOp) and op.prepared.definition.background for op in ops):
            self.engine.wake_jobs()
        return result

    async def read(self, op: CallOp, viewer: Viewer) -> bytes:
        """Run a query in a read-only session and return its result as JSON."""
        (bound,) = self._check([op], viewer)
        session = await self.engine.store.session(reading=True)
        try:
            return (await self._do(bound, viewer, session, {})).answer or b"null"
        finally:
            await session.end()

    def _check(self, ops: Sequence[WriteOp | CallOp], viewer: Viewer) -> list[BoundWrite | BoundCall]:
        """Refuse invalid values, and requests over the price limit, before anything runs."""
        bound: list[BoundWrite | BoundCall] = []
        refusals: list[Refusal] = []
        earlier: dict[str, str] = {}
        for op in ops:
            try:
                if isinstance(op, WriteOp):
                    bound += self.write_engine.bind([op], viewer, None if len(ops) == 1 else earlier)
                else:
                    values = op.prepared.binder(op.inputs)
                    check_references(values, op.prepared.binder, earlier, alone=len(ops) == 1)
                    bound.append(BoundCall(op, values))
            except Refusal as refusal:
                refusals.append(refusal if isinstance(op, WriteOp) else moved(refusal, op.prefix))
            if op.step:
                earlier[op.step] = op.prepared.write.resource if isinstance(op, WriteOp) else NO_ROW
        if refusals:
            raise joined(refusals)
        if len(ops) > self.engine.limits.writes:
            raise too_many_writes(len(ops), self.engine.limits)
        most = self.engine.limits.page
        price = sum(op.price if isinstance(op, BoundWrite) else op.op.prepared.price(op.values, most) for op in bound)
        first = next(op for op in ops if not (isinstance(op, WriteOp) and op.part))
        self.engine.checks.price(first.prepared.measures, viewer, price)
        if self.engine.rates is not None:
            self.engine.charge(price, _resources(ops))
        return bound

    async def _do(
        self, bound: BoundWrite | BoundCall, viewer: Viewer, session: Session, ids: Mapping[str, Any]
    ) -> WriteResult:
        try:
            if isinstance(bound, BoundWrite):
                write = bound.resolved(ids)
                return await session.drive(lambda: locked_steps(write, self.engine.store.dialect))
            prepared = bound.op.prepared
            return await self._call(prepared, resolved(bound.values, prepared.binder, ids), viewer, session)
        except ModelFault as fault:
            assert isinstance(bound, BoundCall)
            raise bound.placed(fault) from None
        except Refusal as refusal:
            refusal.path = bound.op.path
            raise

    async def _nested(self, nest: Sequence[BoundWrite], session: Session, ids: dict[str, Any]) -> WriteResult:
        await session.drive(lambda: take(taking(write.op.prepared.plan.locks for write in nest)))
        return await session.drive(lambda: nest_steps(nest, ids, self.engine.store.dialect))

    async def _call(self, prepared: PreparedCall, values: list[Any], viewer: Viewer, session: Session) -> WriteResult:
        tx = ModelTx(self.write_engine, session, viewer, self.engine.model.view(prepared.view.signature))
        target: Any = prepared.resource.cls
        if prepared.call.id is not None:
            key = values[prepared.call.id.index]
            await self.hold(prepared.resource, key, session)
            target = await tx.get(prepared.resource.cls, key) if key is not None else None
            if target is None:
                raise Refusal(Code.NOT_FOUND, "There is nothing here.")
            await self.admit(prepared, key, viewer, session)
        if prepared.definition.background is not None:
            result: Any = await self._enqueue(prepared, values, tx, session)
        else:
            result = await prepared.definition.function(target, tx, **prepared.arguments(values))
        shown = await self.answered(prepared, values, result, viewer, session)
        return WriteResult(result.id if prepared.definition.background else None, shown)

    async def _enqueue(self, prepared: PreparedCall, values: Sequence[Any], tx: ModelTx, session: Session) -> Any:
        """Queue the call; the result is its job."""
        model, definition, id = self.engine.model, prepared.definition, prepared.call.id
        arguments = arguments_of(definition, None if id is None else values[id.index], prepared.arguments(values))
        owner, dialect = owner_of(tx.viewer), self.engine.store.dialect
        return await enqueue(model, definition.root, arguments, owner, tx, session, dialect)

    async def admit(self, prepared: PreparedCall, key: Any, viewer: Viewer, session: Session) -> None:
        """Refuse the call if the rules of the action do not hold on the row."""
        if prepared.admits is not None:
            step = Step(prepared.admits.sql, prepared.admits.parameters([key], viewer, {}))
            if await session.drive(lambda: _one_step(step)) is None:
                raise not_yours(prepared.view)

    async def hold(self, resource: ResourceDef, key: Any, session: Session) -> None:
        """Lock the row until the transaction ends, where the database has row locks."""
        dialect = self.engine.store.dialect
        if dialect.lock:
            own = own_row(BareRef(resource, ""), Slot(0, resource.key), dialect)
            plan = dialect.plan(sql(dialect.lock, identifier(resource.table), own))
            await session.drive(lambda: _one_step(Step(plan.sql, plan.parameters([key], NOBODY, {}))))

    # the result

    async def answered(
        self, prepared: PreparedCall, values: Sequence[Any], result: Any, viewer: Viewer, session: Session
    ) -> bytes:
        """The result of a function as JSON, as the viewer may read it."""
        declared, name = prepared.definition.result, f"{prepared.resource.name}.{prepared.definition.attr}"
        if declared.kind == "none":
            return b"true"
        if result is None:
            if not declared.nullable:
                raise TypeError(f"{name} returned None, which its annotation does not allow")
            return b"null"
        if declared.scalar is not None:
            return msgspec.json.encode(to_json(declared.scalar, result))
        key = self.engine.model.resources[declared.resource].key
        if declared.kind == "one":
            shown = await self._read(prepared, [*values, key.parse(_id_of(result, name))], viewer, session)
            if shown is None and not declared.nullable:
                raise Refusal(Code.FORBIDDEN, "You may not read the result.")
            return shown or b"null"
        ids = [key.parse(_id_of(row, name)) for row in result]
        if len(ids) > self.engine.limits.page:
            raise ValueError(f"{name} returned {len(ids)} rows; the limit is {self.engine.limits.page}")
        listed = await self._read(prepared, [*values, list(dict.fromkeys(ids)), max(1, len(ids))], viewer, session)
        return in_order(listed or b"[]", ids, id_label(prepared.call))

    async def _read(self, prepared: PreparedCall, values: list[Any], viewer: Viewer, session: Session) -> bytes | None:
        assert prepared.answer is not None
        answer = prepared.answer
        keys = self.engine.cursor_keys(answer.pages, prepared.binder, values, viewer)
        step = Step(answer.plan.sql, answer.plan.parameters(values, viewer, keys))
        row = await session.drive(lambda: _one_step(step))
        if row is None or answer.finish is None:
            return None if row is None else unicode(row[0])
        (finished,) = await finish_answers(answer.finish, [unicode(row[0])], self.engine.model.resources)
        return finished


def cost_of_call(
    call: Call, slots: int, resources: Mapping[str, ResourceDef], definition: CallDef | None = None
) -> Cost:
    """The cost of a call with `slots` arguments, and of its result. The page size of a list is in slot `slots + 1`."""
    definition = definition or resources[call.resource].call(call.name)
    read = answer_read(call, definition, resources, slots)
    cost = cost_of((read,) if read else (), resources, definition.weight)
    return Cost(max(cost.depth, 1), cost.price)


def _resources(ops: Iterable[WriteOp | CallOp]) -> set[str]:
    """All resources that some writes and calls are about."""
    names: set[str] = set()
    for op in ops:
        names.add(op.prepared.write.resource if isinstance(op, WriteOp) else op.prepared.resource.name)
        names |= op.prepared.measures.resources if op.prepared.measures is not None else frozenset()
    return names


def _one_step(step: Step) -> Script[Any]:
    return (yield step)


def _id_of(row: object, name: str) -> str:
    if not isinstance(row, Resource) or rows.is_new(row):
        raise TypeError(f"{name} returned {row!r}, which is not a saved row")
    return row.id
