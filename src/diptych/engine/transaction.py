"""The transaction handle of model code, which turns its calls into the Reads and Writes that a client could send.

Access rules of the viewer apply; `trusted` is the same transaction without them. Writes are validated like those of
any request: an unknown name or an invalid value is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from diptych.api.ask_builder import AskBuilder
from diptych.ask.nodes import Field, OrderBy, Page, Pick, Read, Write, WriteVerb
from diptych.ask.slots import SIZE, RawValue
from diptych.ask.webhook_secret import secret_of, secret_text, webhook_id
from diptych.db.job_queue import QUEUE
from diptych.db.script import Script, Step
from diptych.db.sqlite.unicode import unicode
from diptych.db.store import Session
from diptych.engine.acts import check_reason
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import WriteOp, WriteResult
from diptych.engine.write_steps import locked_steps
from diptych.errors import Code, Refusal
from diptych.model.declare import rows
from diptych.model.declare.job_resource import ENDED, JobResource, JobState
from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import Viewer
from diptych.model.declare.tx import Tx
from diptych.model.defs import ResourceDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Col, Compare
from diptych.model.scalar_values import as_json
from diptych.model.transfer import input_of, row_of, values_of
from diptych.model.view import View, not_yours
from diptych.policy.values import Binder

R = TypeVar("R", bound=Resource)
T = TypeVar("T")


class Overtaken(Refusal):
    """Others changed a row since model code has read it: a job is tried again."""


class ModelTx(Tx):
    """A transaction on behalf of one viewer, through one view of the model."""

    def __init__(self, write_engine: WriteEngine, session: Session, viewer: Viewer, view: View) -> None:
        self._write_engine = write_engine
        self._engine = write_engine.engine
        self._session = session
        self._viewer = viewer
        self._view = view

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        """Run a script in this transaction, without rules."""
        return await self._session.drive(script)

    @property
    def viewer(self) -> Viewer:
        return self._viewer

    @property
    def trusted(self) -> Tx:
        model = self._engine.model
        knows = model.signature(self._viewer).knows if model.viewer_values else frozenset[str]()
        view = model.trusted(self._viewer.id is not None, knows)
        return ModelTx(self._write_engine, self._session, self._viewer, view)

    # reading

    async def get(self, cls: type[R], id: str | int) -> R | None:
        resource_view = self._visible(cls)
        if resource_view is None:
            return None
        builder = AskBuilder(self._view)
        key = builder.slots.take(resource_view.resource.key, RawValue(id, ("id",), fixed=True))
        read = Read(resource_view.resource.name, "one", _all(resource_view), Compare("eq", Col(("id",)), key))
        answer = await self._read(read, builder)
        return None if answer is None else self._load(cls, msgspec.json.decode(answer))

    async def select(
        self, cls: type[R], *, where: Mapping[str, Any] | None = None, order: str | Sequence[str] = (), first: int = 100
    ) -> list[R]:
        resource_view = self._visible(cls)
        if resource_view is None:
            return []
        builder = AskBuilder(self._view)
        filtered = builder.where(RawValue(_wire(where), ("where",), fixed=True), resource_view) if where else TRUE
        keys = [self._order(key, builder, resource_view) for key in ([order] if isinstance(order, str) else order)]
        size = builder.slots.take(SIZE, RawValue(first, ("first",), fixed=True))
        read = Read(resource_view.resource.name, "list", _all(resource_view), filtered, tuple(keys), Page(size))
        listed = msgspec.json.decode(await self._read(read, builder) or b"[]")
        return [self._load(cls, row) for row in listed]

    @staticmethod
    def _order(key: str, builder: AskBuilder, resource_view: ResourceView) -> OrderBy:
        sort_key = builder.sort_key(key.removeprefix("-"), key.startswith("-"), ("order",), resource_view)
        if sort_key is None:
            raise ValueError(f"{resource_view.resource.name} has no field '{key.removeprefix('-')}' to sort by")
        return sort_key

    async def _read(self, read: Read, builder: AskBuilder) -> bytes | None:
        builder.done(Code.BAD_USER_INPUT, "Some values are not valid.")
        values = Binder(builder.slots.slots, builder.slots.sources, self._engine.limits, Code.BAD_USER_INPUT)({})
        plan = self._engine.plan_reads((read,), self._view, {}).plan
        step = Step(plan.sql, plan.parameters(values, self._viewer, {}))

        def script() -> Script[bytes | None]:
            row = yield step
            return None if row is None else unicode(row[0])

        return await self._session.drive(script)

    # writing

    async def save(self, row: R) -> R:
        verb: WriteVerb = "create" if rows.is_new(row) else "update"
        resource = self._resource(type(row))
        changed = input_of(resource, row)
        if verb == "create" or changed:
            done = await self._write(verb, row, changed)
            saved = values_of(self._engine.model.resources, resource.name, msgspec.json.decode(done.answer or b"{}"))
            rows.refresh(row, saved)
        return row

    async def delete(self, row: Resource) -> None:
        await self._write("delete", row, {})

    async def _write(self, verb: WriteVerb, row: Resource, changed: Mapping[str, Any]) -> WriteResult:
        resource_view = self._visible(type(row))
        if resource_view is None or not resource_view.may("update" if verb == "replace" else verb):
            raise not_yours(self._view)
        check_reason(self._engine.model, (resource_view.resource.name,))
        builder = AskBuilder(self._view)
        known = vars(row)
        key = builder.row_id(resource_view, None if verb == "create" else RawValue(row.id, ("id",), fixed=True))
        body = RawValue(dict(changed), (resource_view.resource.one,), fixed=True)
        values = builder.values(verb, resource_view, body, merge=False)
        version = builder.version(RawValue(known.get("version"), ("version",), fixed=True))
        picks = _all(resource_view) if verb != "delete" else ()
        wish = builder.write(
            Write(verb, resource_view.resource.name, key, values, version, picks), (resource_view.resource.one,)
        )
        prepared = self._write_engine.prepare(wish, {}, self._view)
        (bound,) = self._write_engine.bind([WriteOp(prepared, {})], self._viewer)
        try:
            return await self._session.drive(lambda: locked_steps(bound, self._engine.store.dialect))
        except Refusal as refusal:
            if refusal.code is Code.PRECONDITION_FAILED:  # the client sent no version
                raise Overtaken(Code.CONFLICT, "Others changed this meanwhile; try again.") from None
            raise

    def webhook_secret(self, row: Resource) -> str:
        secret = secret_of(self._engine.secret, webhook_id(str(row.id)), vars(row)["generation"])
        return secret_text(secret)

    async def cancel_job(self, row: R) -> R:
        assert isinstance(row, JobResource)
        if row.state in ENDED:
            raise Refusal(Code.CONFLICT, f"The job has ended already: it has {row.state.value}.")
        await self._session.drive(lambda: QUEUE.remove(self._engine.store.dialect, id=str(row.id)))
        row.state, row.finished_at = JobState.cancelled, datetime.now(UTC)
        return await self.trusted.save(row)

    async def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        return await self._session.rows(text, values)

    # resources

    def _resource(self, cls: type[Resource]) -> ResourceDef:
        resource = self._engine.model.resources.get(cls.__name__)
        if resource is None or resource.cls is not cls:
            raise TypeError(f"{cls.__name__} is not a resource of this model")
        return resource

    def _visible(self, cls: type[Resource]) -> ResourceView | None:
        return self._view.resources.get(self._resource(cls).name)

    def _load(self, cls: type[R], values: Mapping[str, Any]) -> R:
        fields = self._resource(cls).fields
        shown = {name: value for name, value in values.items() if value is not None or fields[name].nullable}
        row = row_of(self._engine.model.resources, cls.__name__, shown)
        assert isinstance(row, cls)
        return row


def _all(resource_view: ResourceView) -> tuple[Pick, ...]:
    """Every field that is computed by the database."""
    return tuple(Field(name, name) for name, view in resource_view.fields.items() if view.field.python is None)


def _wire(value: Any) -> Any:
    """A tree of Python values as JSON values."""
    if isinstance(value, Mapping):
        return {key: _wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_wire(item) for item in value]
    return as_json(value)
