"""The Tx of a call: what model code does with rows, as the Reads and Writes that a client could send.

Everything is held against the view of whoever asks; `trusted` is the same transaction in a view that no rule
narrows. What it writes is checked like any request, so an unknown name or a wrong value is refused the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from diptych.api.draft import Draft
from diptych.ask.nodes import Change, Field, Order, Page, Pick, Read, Write
from diptych.ask.slots import SIZE, Given
from diptych.check.values import Binder
from diptych.db.script import Script, Step
from diptych.db.store import Session
from diptych.db.unicode import unicode
from diptych.errors import Code, Refusal
from diptych.model import rows
from diptych.model.defs import ResourceDef
from diptych.model.expr import TRUE, Col, Compare
from diptych.model.resource import Resource
from diptych.model.roles import Viewer
from diptych.model.scalars import as_json
from diptych.model.transfer import input_of, row_of, values_of
from diptych.model.tx import Tx
from diptych.model.view import ResourceView, View, not_yours
from diptych.steps import Deed, Done, locked_steps
from diptych.transact import Transactor

R = TypeVar("R", bound=Resource)


class ModelTx(Tx):
    """One transaction on behalf of one viewer, seen through one view."""

    def __init__(self, transactor: Transactor, session: Session, viewer: Viewer, view: View) -> None:
        self._transactor = transactor
        self._engine = transactor.engine
        self._session = session
        self._viewer = viewer
        self._view = view

    @property
    def viewer(self) -> Viewer:
        return self._viewer

    @property
    def trusted(self) -> Tx:
        view = self._engine.model.trusted(self._viewer.id is not None)
        return ModelTx(self._transactor, self._session, self._viewer, view)

    # reading

    async def get(self, cls: type[R], id: str | int) -> R | None:
        each = self._visible(cls)
        if each is None:
            return None
        draft = Draft(self._view)
        key = draft.slots.take(each.resource.key, Given(id, ("id",), fixed=True))
        read = Read(each.resource.name, "one", _all(each), Compare("eq", Col(("id",)), key))
        answer = await self._read(read, draft)
        return None if answer is None else self._load(cls, msgspec.json.decode(answer))

    async def select(
        self, cls: type[R], *, where: Mapping[str, Any] | None = None, order: str | Sequence[str] = (), first: int = 100
    ) -> list[R]:
        each = self._visible(cls)
        if each is None:
            return []
        draft = Draft(self._view)
        filtered = draft.where(Given(_wire(where), ("where",), fixed=True), each) if where else TRUE
        keys = [self._order(key, draft, each) for key in ([order] if isinstance(order, str) else order)]
        size = draft.slots.take(SIZE, Given(first, ("first",), fixed=True))
        read = Read(each.resource.name, "list", _all(each), filtered, tuple(keys), Page(size))
        found = msgspec.json.decode(await self._read(read, draft) or b"[]")
        return [self._load(cls, row) for row in found]

    @staticmethod
    def _order(key: str, draft: Draft, each: ResourceView) -> Order:
        found = draft.sort_key(key.removeprefix("-"), key.startswith("-"), ("order",), each)
        if found is None:
            raise ValueError(f"{each.resource.name} has no field '{key.removeprefix('-')}' to sort by")
        return found

    async def _read(self, read: Read, draft: Draft) -> bytes | None:
        draft.done(Code.BAD_USER_INPUT, "Some values are not valid.")
        values = Binder(draft.slots.slots, draft.slots.sources, self._engine.limits, Code.BAD_USER_INPUT)({})
        plan = self._engine.prepare((read,), self._view, {}).plan
        step = Step(plan.sql, plan.parameters(values, self._viewer, {}))

        def script() -> Script[bytes | None]:
            row = yield step
            return None if row is None else unicode(row[0])

        return await self._session.drive(script)

    # writing

    async def save(self, row: R) -> R:
        verb: Change = "create" if rows.is_new(row) else "update"
        found = self._resource(type(row))
        given = input_of(found, row)
        if verb == "create" or given:
            done = await self._write(verb, row, given)
            saved = values_of(self._engine.model.resources, found.name, msgspec.json.decode(done.answer or b"{}"))
            rows.refresh(row, saved)
        return row

    async def delete(self, row: Resource) -> None:
        await self._write("delete", row, {})

    async def _write(self, verb: Change, row: Resource, given: Mapping[str, Any]) -> Done:
        each = self._visible(type(row))
        if each is None or not each.may("update" if verb == "replace" else verb):
            raise not_yours(self._view)
        draft = Draft(self._view)
        known = vars(row)
        key = draft.row_id(each, None if verb == "create" else Given(row.id, ("id",), fixed=True))
        body = Given(dict(given), (each.resource.one,), fixed=True)
        values = draft.values(verb, each, body) if verb != "delete" else ()
        version = draft.version(Given(known.get("version"), ("version",), fixed=True))
        picks = _all(each) if verb != "delete" else ()
        wish = draft.write(Write(verb, each.resource.name, key, values, version, picks), (each.resource.one,))
        ready = self._transactor.ready(wish, {}, self._view)
        (bound,) = self._transactor.bind([Deed(ready, {})], self._viewer)
        try:
            return await self._session.drive(lambda: locked_steps(bound, self._engine.store.dialect))
        except Refusal as refusal:
            if refusal.code is Code.PRECONDITION_FAILED:  # nobody asked for a version
                raise Refusal(Code.CONFLICT, "Others changed this meanwhile; try again.") from None
            raise

    async def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        return await self._session.rows(text, values)

    # resources

    def _resource(self, cls: type[Resource]) -> ResourceDef:
        found = self._engine.model.resources.get(cls.__name__)
        if found is None or found.cls is not cls:
            raise TypeError(f"{cls.__name__} is no resource of this model")
        return found

    def _visible(self, cls: type[Resource]) -> ResourceView | None:
        return self._view.resources.get(self._resource(cls).name)

    def _load(self, cls: type[R], given: Mapping[str, Any]) -> R:
        fields = self._resource(cls).fields
        shown = {name: value for name, value in given.items() if value is not None or fields[name].nullable}
        row = row_of(self._engine.model.resources, cls.__name__, shown)
        assert isinstance(row, cls)
        return row


def _all(each: ResourceView) -> tuple[Pick, ...]:
    """Every field that the database answers."""
    return tuple(Field(name, name) for name, view in each.fields.items() if view.field.python is None)


def _wire(value: Any) -> Any:
    """A tree of Python values as it would stand on the wire."""
    if isinstance(value, Mapping):
        return {key: _wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_wire(item) for item in value]
    return as_json(value)
