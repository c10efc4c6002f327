"""The subscription pipeline: a Watch is joined with the rules, compiled, and run over each range of the feed.

    api → Watch → policy → compile → (positions) → db → changes

A Watch with its values and its viewer is a BoundWatch. Its key is the statement with all its parameters: subscribers
with equal keys receive the same changes, so these are evaluated once for all of them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from diptych.ask.change_cursor import ChangeCursors, EventIds, FeedPosition
from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Read, Watch
from diptych.ask.python_fields import PythonFields, extract_watch
from diptych.ask.wish import WatchWish
from diptych.compile.dialect import Dialect
from diptych.compile.plan import NowBind, Plan, SlotBind
from diptych.compile.watch import BOUNDS, compile_watch
from diptych.compile.watch_batch import BatchPlan, compile_watch_batch, is_exact, varying
from diptych.engine.page_sizes import known_sizes
from diptych.engine.plan_cache import PlanCache
from diptych.engine.python_fields import finish
from diptych.engine.read import Engine
from diptych.engine.read_plan import FINISH, Paged, without_viewer
from diptych.errors import Code
from diptych.lru import footprint
from diptych.model.declare.roles import NOBODY, Viewer
from diptych.model.model import Model
from diptych.model.rules.expr import And, Col, Compare, Slot
from diptych.model.scalars import BIGINT
from diptych.model.view import View
from diptych.nesting import decode
from diptych.policy.access import Watched, narrow_watch
from diptych.policy.cost import Cost, cost_of_watch
from diptych.policy.deprecations import Uses
from diptych.policy.values import Binder

log = logging.getLogger("diptych")
_SEGMENT = 5_000
"""Feed positions that one statement covers."""
_STATEMENT = 10
"""An estimate of the bytes of a plan for each character of its statement."""
_feed_rows = msgspec.json.Decoder(tuple[int, list[list[msgspec.Raw]]])


class LazyBatch:
    """The plan of a batch, compiled when there is a first one; `numbers` are the values that differ in it."""

    __slots__ = ("_compile", "_plan", "numbers")

    def __init__(self, numbers: tuple[int, ...], compile: Callable[[tuple[int, ...]], BatchPlan]) -> None:
        self.numbers = numbers
        self._compile = compile
        self._plan: BatchPlan | None = None

    def plan(self) -> BatchPlan:
        if self._plan is None:
            self._plan = self._compile(self.numbers)
        return self._plan


class WatchPlan(Struct, frozen=True, eq=False):
    """The plan of a Watch, that of a batch of groups, and the Python fields of its rows."""

    plan: Plan
    finish: tuple[PythonFields | None, ...]
    batch: LazyBatch

    @property
    def size(self) -> int:
        return 2 * self.plan.size + FINISH * sum(python_fields is not None for python_fields in self.finish)


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


class Change(Struct, eq=False):
    """A change as one viewer sees it: its feed position, and its JSON, split where the cursor is inserted."""

    feed_position: FeedPosition
    pieces: tuple[bytes, ...]
    kind: bytes
    """What happened, the id of the row, and when, each as JSON."""
    row_id: bytes
    at: bytes
    _sealed: tuple[ChangeCursors, str, bytes] | None = None

    def body(self, cursor: str) -> bytes:
        """The JSON with its cursor."""
        return cursor.encode().join(self.pieces)

    def sealed(self, change_cursors: ChangeCursors) -> tuple[str, bytes]:
        """Its cursor and its JSON with that, which are the same for all who receive this change."""
        if self._sealed is None or self._sealed[0] is not change_cursors:
            cursor = change_cursors.seal(self.feed_position)
            self._sealed = change_cursors, cursor, self.body(cursor)
        return self._sealed[1:]


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
            numbers = varying(plan, slots)
            batch = LazyBatch(numbers, partial(_compile_batch, narrowed, slots, model, store.dialect, sizes, plan))
            return WatchPlan(plan, todo, batch)

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


def _compile_batch(
    narrowed: Watched,
    slots: int,
    model: Model,
    dialect: Dialect,
    sizes: Mapping[int, int],
    single: Plan,
    numbers: tuple[int, ...],
) -> BatchPlan:
    watch, seen, deleted, readable = narrowed.watch, narrowed.seen, narrowed.deleted, narrowed.readable
    return compile_watch_batch(watch, seen, deleted, readable, slots, model, dialect, sizes, single, numbers)


def segment_end(after: int, upto: int) -> int:
    """Where a statement for a range of positions ends."""
    return min(upto, after + _SEGMENT)


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
        self.store = engine.store
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
        self.batch_key = self._batch_key(parts, computed)
        """Equal for all that can be evaluated by one statement; None for one that is evaluated alone."""
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

    def _batch_key(self, parts: Hashable, computed: Hashable) -> Hashable | None:
        plan, numbers = self._plan, self.prepared.planned.batch.numbers
        alone = plan.searches or not numbers
        if alone or not is_exact(self._engine.store.dialect, plan.binds, self._parameters, numbers):
            return None
        shared = [value for at, value in enumerate(self._parameters) if at not in numbers]
        digest = hashlib.blake2b(repr(shared).encode(), digest_size=32).digest()
        return (plan.sql, plan.binds, digest, parts, computed)

    def parameters(self, after: int, upto: int, most: int) -> list[Any]:
        """The bound values for a range of positions, now."""
        parameters = self._parameters.copy()
        for at, value in zip(self._bounds, (after, upto, most), strict=True):
            parameters[at] = value
        for at, clock in self._clocks:
            parameters[at] = clock((), NOBODY, {})
        return parameters

    async def changes(self, after: int, upto: int, most: int) -> ChangeBatch:
        """The first `most` changes between two positions; at most one segment of the feed is searched."""
        upto = segment_end(after, upto)
        (answer,) = await self._engine.store.run(self._plan, self.parameters(after, upto, most))
        oldest, rows = decode(_feed_rows, answer or b"[0,[]]")
        changes = await self.finished(rows)
        return ChangeBatch(oldest, changes, changes[-1].feed_position.position if len(changes) == most else upto)

    async def finished(self, rows: Sequence[Sequence[msgspec.Raw]]) -> list[Change]:
        """The changes from the rows of an answer."""
        shown: Sequence[Sequence[Any]] = [row[5:] for row in rows]
        if self._finish is not None:
            shown = await self._finished(shown)
        return [self._change(row, picked) for row, picked in zip(rows, shown, strict=True)]

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
