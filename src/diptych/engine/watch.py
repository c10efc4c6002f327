"""The subscription pipeline: a Watch is joined with the rules, compiled, and run over each range of the feed.

    api → Watch → policy → compile → (positions) → db → changes

A Watch with its values and its viewer is a BoundWatch. Its key is the statement with all its parameters: subscribers
with equal keys receive the same changes, so these are evaluated once for all of them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from diptych.ask.change_cursor import EventIds, FeedPosition
from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Read, Watch
from diptych.ask.python_fields import PythonFields, extract_watch
from diptych.ask.wish import WatchWish
from diptych.compile.plan import NowBind, Plan, SlotBind
from diptych.compile.watch import BOUNDS, compile_watch
from diptych.engine.plan_cache import PlanCache
from diptych.engine.python_fields import finish
from diptych.engine.read import FINISH, Engine, Paged, known_sizes, without_viewer
from diptych.errors import Code
from diptych.lru import footprint
from diptych.model.declare.roles import NOBODY, Viewer
from diptych.model.rules.expr import And, Col, Compare, Slot
from diptych.model.scalars import BIGINT
from diptych.model.view import View
from diptych.nesting import decode
from diptych.policy.access import narrow_watch
from diptych.policy.cost import Cost, cost_of_watch
from diptych.policy.deprecations import Uses
from diptych.policy.values import Binder

log = logging.getLogger("diptych")
_SEGMENT = 5_000
"""Feed positions that one statement covers."""
_STATEMENT = 10
"""An estimate of the bytes of a plan for each character of its statement."""
_feed_rows = msgspec.json.Decoder(tuple[int, list[list[msgspec.Raw]]])


class WatchPlan(Struct, frozen=True, eq=False):
    """The plan of a Watch, and the Python fields of its rows."""

    plan: Plan
    finish: tuple[PythonFields | None, ...]

    @property
    def size(self) -> int:
        return self.plan.size + FINISH * sum(python_fields is not None for python_fields in self.finish)


class PreparedWatch(Struct, frozen=True, eq=False):
    """A prepared Watch: its plan and the binder of its values."""

    ask: Watch
    planned: WatchPlan
    cost: Cost
    """The cost of one change; `filtering` is the cost of finding them, once for a range."""
    filtering: int
    pages: tuple[Paged, ...]
    binder: Binder
    measures: RequestMeasures | None
    uses: Uses | None = None
    """The deprecated parts of the API that it uses."""

    @property
    def size(self) -> int:
        return self.planned.size + self.binder.size

    def price(self, values: Sequence[Any], many: int = 1) -> int:
        """The price of `many` changes at a time."""
        return self.filtering + many * self.cost.price(values)


class Change(NamedTuple):
    """A change as one viewer sees it: its feed position, and its JSON, split where the cursor is inserted."""

    feed_position: FeedPosition
    pieces: tuple[bytes, ...]
    kind: bytes
    """What happened, the id of the row, and when, each as JSON."""
    row_id: bytes
    at: bytes

    def body(self, cursor: str) -> bytes:
        """The JSON with its cursor."""
        return cursor.encode().join(self.pieces)


class ChangeBatch(NamedTuple):
    """The changes in a range of the feed, the oldest position retained, and where the range ends."""

    oldest: int
    changes: list[Change]
    upto: int


class WatchMemory(NamedTuple):
    """The memory of a BoundWatch: a statement, shared by equal ones, and its parameters."""

    statement: str
    statement_size: int
    size: int


class WatchEngine:
    """Prepares and binds the Watches of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.event_ids = EventIds(engine.secret)
        self._plans: PlanCache[WatchPlan] = engine.plans("plans of what follows changes")

    def prepare(
        self, wish: WatchWish, view: View, code: Code, measures: RequestMeasures | None = None
    ) -> PreparedWatch:
        """policy → compile, once for a shape of requests; `code` is the error code of an invalid value."""
        ask = wish.ask
        self.engine.checks.shape(measures, (Read(ask.resource, "one", (), ask.where), *ask.rows))
        binder = Binder(wish.slots, wish.sources, self.engine.limits, code)
        planned = self._prepare(ask, len(wish.slots), view, known_sizes(ask.rows, binder))
        cost, filtering = cost_of_watch(ask, self.engine.model.resources)
        pages = tuple(self.engine.pages(ask.rows))
        kept, uses = without_viewer(measures), self.engine.uses_of(wish)
        return PreparedWatch(ask, planned, cost, filtering, pages, binder, kept, uses)

    def _prepare(self, ask: Watch, slots: int, view: View, sizes: Mapping[int, int]) -> WatchPlan:
        store, model = self.engine.store, self.engine.model

        def compile() -> WatchPlan:
            whole, todo = extract_watch(ask, model.resources)
            narrowed = narrow_watch(whole, view)
            plan = compile_watch(
                narrowed.watch, narrowed.seen, narrowed.deleted, narrowed.readable, slots, model, store.dialect, sizes
            )
            return WatchPlan(plan, todo)

        return self._plans.get((ask, slots), view, sizes, compile)

    def follow(self, prepared: PreparedWatch, inputs: Mapping[str, Any], viewer: Viewer, many: int = 1) -> BoundWatch:
        """Bind a Watch to the values and the viewer of a request; priced for `many` changes at a time."""
        values = prepared.binder(inputs)
        price = prepared.price(values, many)
        self.engine.checks.price(prepared.measures, viewer, price)
        if self.engine.rates is not None and prepared.measures is not None:
            self.engine.charge(price, prepared.measures.resources)
        keys = self.engine.cursor_keys(prepared.pages, prepared.binder, values, viewer)
        return BoundWatch(self.engine, self.event_ids, prepared, values, viewer, keys)


class BoundWatch:
    """A Watch with its values, for one viewer."""

    def __init__(
        self,
        engine: Engine,
        event_ids: EventIds,
        prepared: PreparedWatch,
        values: list[Any],
        viewer: Viewer,
        keys: Mapping[int, bytes],
    ) -> None:
        self.prepared = prepared
        self._event_ids = event_ids
        self.after: str | None = values[prepared.ask.after.index] if prepared.ask.after else None
        """The cursor to resume from."""
        self.resource = engine.model.resources[prepared.ask.resource]
        self.price = prepared.price(values)
        """The price of one change."""
        self._engine = engine
        self._plan = prepared.planned.plan
        self._finish = prepared.planned.finish if any(prepared.planned.finish) else None
        self._parameters = self._plan.parameters([*values, *[None] * len(BOUNDS)], viewer, keys)
        self._clocks = [
            (at, self._plan.getters[at]) for at, bind in enumerate(self._plan.binds) if isinstance(bind, NowBind)
        ]
        for at, _ in self._clocks:  # read anew by every evaluation, and so no part of the key
            self._parameters[at] = None
        self._bounds = [self._plan.binds.index(SlotBind(len(values) + at, BIGINT)) for at in range(len(BOUNDS))]
        parts = tuple((part.what, part.label) for part in prepared.ask.parts)
        computed = prepared.ask.parts if self._finish else ()  # what Python computes is not in the statement
        values_digest = hashlib.blake2b(repr(self._parameters).encode(), digest_size=32).digest()
        self.key = (self._plan.sql, values_digest, parts, computed)
        """Equal for all subscribers that receive the same changes."""
        self.held = WatchMemory(self._plan.sql, _STATEMENT * len(self._plan.sql), footprint(self._parameters))
        """The memory it takes while anyone is subscribed."""
        self.only = self._id(values)
        """The id of the row, if the subscription is to a single one."""

    def _id(self, values: Sequence[Any]) -> str | None:
        where = self.prepared.ask.where
        for part in where.of if isinstance(where, And) else (where,):
            match part:
                case Compare("eq", Col(("id",)), Slot(index)):
                    return str(values[index])
        return None

    async def changes(self, after: int, upto: int, most: int) -> ChangeBatch:
        """The first `most` changes between two positions; at most one segment of the feed is searched."""
        upto = min(upto, after + _SEGMENT)
        parameters = self._parameters.copy()
        for at, value in zip(self._bounds, (after, upto, most), strict=True):
            parameters[at] = value
        for at, clock in self._clocks:
            parameters[at] = clock((), NOBODY, {})
        (answer,) = await self._engine.store.run(self._plan, parameters)
        oldest, rows = decode(_feed_rows, answer or b"[0,[]]")
        shown = [row[5:] for row in rows]
        if self._finish is not None:
            shown = await self._finished(shown)
        changes = [self._change(row, picked) for row, picked in zip(rows, shown, strict=True)]
        return ChangeBatch(oldest, changes, changes[-1].feed_position.position if len(changes) == most else upto)

    async def _finished(self, shown: Sequence[Sequence[msgspec.Raw]]) -> list[list[Any]]:
        """The rows with their Python fields computed. If one row fails, that row alone becomes null."""
        try:
            return await self._computed(shown)
        except Exception:
            if len(shown) == 1:
                log.exception("a Python field failed: a change of %s is sent without its row", self.resource.name)
                return [[b"null"] * len(shown[0])]
        return [(await self._finished([row]))[0] for row in shown]

    async def _computed(self, shown: Sequence[Sequence[msgspec.Raw]]) -> list[list[Any]]:
        assert self._finish is not None
        todo = [python_fields for _ in shown for python_fields in self._finish]
        answers = [bytes(value) for row in shown for value in row]
        done = await finish(todo, answers, self._engine.model.resources)
        width = len(self._finish)
        return [list(done[start : start + width]) for start in range(0, len(done), width)]

    def _change(self, row: Sequence[msgspec.Raw], shown: Sequence[Any]) -> Change:
        position = FeedPosition(int(bytes(row[0])), int(bytes(row[1])))
        kind, id, at = (bytes(value) for value in row[2:5])
        members = {"kind": kind, "rowId": id, "at": at}
        rows = iter(shown)
        pieces: list[bytes] = []
        text = b"{"
        for index, part in enumerate(self.prepared.ask.parts):
            text += b"," * (index > 0) + b'"' + part.label.encode() + b'":'
            if part.what == "cursor":
                pieces.append(text + b'"')
                text = b'"'
            elif part.what == "eventId":
                text += b'"' + self._event_ids.of(position).encode() + b'"'
            elif part.what == "row":
                text += bytes(next(rows))
            elif part.what == "__typename":
                text += b'"' + self.resource.name.encode() + b'Change"'
            else:
                text += members[part.what]
        return Change(position, (*pieces, text + b"}"), kind, id, at)
