"""The pipeline of a Watch: rules are joined to it, it is compiled, and then run again and again over parts of the feed.

    api → Watch → check → compile → (positions) → db → changes

A Watch that is bound to its values and its viewer is a Following. Its key is the statement with all that is bound to
it: followers with equal keys are told the same, so what is evaluated for one is evaluated for all of them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from diptych.ask.asked import Asked
from diptych.ask.bookmark import Place
from diptych.ask.nodes import Read, Watch
from diptych.ask.split import Finish, split_watch
from diptych.ask.wish import WatchWish
from diptych.check.access import narrow_watch
from diptych.check.cost import Cost, cost_of_watch
from diptych.check.values import Binder
from diptych.compile.plan import Plan, SlotBind
from diptych.compile.watch import BOUNDS, compile_watch
from diptych.engine import FINISH, Engine, Paged, known_sizes, without_viewer
from diptych.errors import Code
from diptych.finish import finish
from diptych.lru import Hashed, LRUCache, footprint
from diptych.model.expr import And, Col, Compare, Slot
from diptych.model.roles import Viewer
from diptych.model.scalars import BIGINT
from diptych.model.view import View
from diptych.nesting import decode

log = logging.getLogger("diptych")
_SEGMENT = 5_000
"""Positions that one statement looks at."""
_STATEMENT = 10
"""Bytes that a plan takes for each character of its statement, with all that belongs to it."""
_told = msgspec.json.Decoder(tuple[int, list[list[msgspec.Raw]]])


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The plan of a Watch, and what Python does with each of its rows."""

    plan: Plan
    finish: tuple[Finish | None, ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.plan.size + FINISH * sum(each is not None for each in self.finish)


@dataclass(frozen=True, slots=True, eq=False)
class ReadyWatch:
    """A Watch of a known shape: its plan, and how its values are got."""

    ask: Watch
    prepared: Prepared
    cost: Cost
    """What a change costs; `filtering` is what all of them do together."""
    filtering: int
    pages: tuple[Paged, ...]
    binder: Binder
    asked: Asked | None

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.prepared.size + self.binder.size

    def price(self, values: Sequence[Any], many: int = 1) -> int:
        """What so many changes at a time cost."""
        return self.filtering + many * self.cost.price(values)


class Change(NamedTuple):
    """A change as one viewer sees it: where it stands, and its JSON without a cursor, cut where the cursor goes."""

    place: Place
    pieces: tuple[bytes, ...]

    def body(self, cursor: str) -> bytes:
        """The whole JSON."""
        return cursor.encode().join(self.pieces)


class Found(NamedTuple):
    """What a part of the feed tells: the oldest position that is kept, the changes, and up to where these are all."""

    oldest: int
    changes: list[Change]
    upto: int


class Held(NamedTuple):
    """What a Following keeps in memory: a statement, which equal ones share, and the values that are bound to it."""

    statement: str
    statement_size: int
    size: int


class Watcher:
    """Makes Watches of one engine ready."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.plans: LRUCache[Prepared] = engine.cache("plans of what follows changes")

    def ready(self, wish: WatchWish, view: View, code: Code, asked: Asked | None = None) -> ReadyWatch:
        """check → compile, once for a shape of requests; `code` is what a fault in a value is called."""
        ask = wish.ask
        self.engine.checks.shape(asked, (Read(ask.resource, "one", (), ask.where), *ask.rows))
        binder = Binder(wish.slots, wish.sources, self.engine.limits, code)
        prepared = self._prepare(ask, len(wish.slots), view, known_sizes(ask.rows, binder))
        cost, filtering = cost_of_watch(ask, self.engine.model.resources)
        pages = tuple(self.engine.pages(ask.rows))
        return ReadyWatch(ask, prepared, cost, filtering, pages, binder, without_viewer(asked))

    def _prepare(self, ask: Watch, slots: int, view: View, sizes: Mapping[int, int]) -> Prepared:
        store, model = self.engine.store, self.engine.model
        key = Hashed((ask, slots, view.signature, tuple(sizes.items()) if store.dialect.sees_limits else ()))
        found = self.plans.get(key)
        if found is None:
            whole, todo = split_watch(ask, model.resources)
            narrowed = narrow_watch(whole, view)
            plan = compile_watch(
                narrowed.watch, narrowed.seen, narrowed.gone, narrowed.readable, slots, model, store.dialect, sizes
            )
            found = Prepared(plan, todo)
            self.plans.put(key, found, found.size)
        return found

    def follow(self, ready: ReadyWatch, inputs: Mapping[str, Any], viewer: Viewer, many: int = 1) -> Following:
        """Bind a Watch to the values of a request and to its viewer; priced for so many changes at a time."""
        values = ready.binder(inputs)
        self.engine.checks.price(ready.asked, viewer, ready.price(values, many))
        keys = self.engine.cursor_keys(ready.pages, ready.binder, values, viewer)
        return Following(self.engine, ready, values, viewer, keys)


class Following:
    """A Watch with its values, for one viewer."""

    def __init__(
        self, engine: Engine, ready: ReadyWatch, values: list[Any], viewer: Viewer, keys: Mapping[int, bytes]
    ) -> None:
        self.ready = ready
        self.after: str | None = values[ready.ask.after.index] if ready.ask.after else None
        """The cursor that was given."""
        self.resource = engine.model.resources[ready.ask.resource]
        self._engine = engine
        self._plan = ready.prepared.plan
        self._finish = ready.prepared.finish if any(ready.prepared.finish) else None
        self._parameters = self._plan.parameters([*values, *[None] * len(BOUNDS)], viewer, keys)
        self._bounds = [self._plan.binds.index(SlotBind(len(values) + at, BIGINT)) for at in range(len(BOUNDS))]
        parts = tuple((part.what, part.label) for part in ready.ask.parts)
        computed = ready.ask.parts if self._finish else ()  # what Python computes is not in the statement
        values_digest = hashlib.blake2b(repr(self._parameters).encode(), digest_size=32).digest()
        self.key = (self._plan.sql, values_digest, parts, computed)
        """Equal for all who are told the same."""
        self.held = Held(self._plan.sql, _STATEMENT * len(self._plan.sql), footprint(self._parameters))
        """What is kept as long as it is followed."""
        self.only = self._id(values)
        """The id of the one row that is followed, if that is known beforehand."""

    def _id(self, values: Sequence[Any]) -> str | None:
        where = self.ready.ask.where
        for part in where.of if isinstance(where, And) else (where,):
            match part:
                case Compare("eq", Col(("id",)), Slot(index)):
                    return str(values[index])
        return None

    async def changes(self, after: int, upto: int, most: int) -> Found:
        """The changes between two positions, or the first so many of them; of a long part of the feed, those at its
        beginning."""
        upto = min(upto, after + _SEGMENT)
        parameters = self._parameters.copy()
        for at, value in zip(self._bounds, (after, upto, most), strict=True):
            parameters[at] = value
        (answer,) = await self._engine.store.run(self._plan, parameters)
        oldest, rows = decode(_told, answer or b"[0,[]]")
        shown = [row[5:] for row in rows]
        if self._finish is not None:
            shown = await self._finished(shown)
        found = [self._change(row, picked) for row, picked in zip(rows, shown, strict=True)]
        return Found(oldest, found, found[-1].place.position if len(found) == most else upto)

    async def _finished(self, shown: Sequence[Sequence[msgspec.Raw]]) -> list[list[Any]]:
        """The rows, with what Python computes in them. One that cannot be computed is told as null, not the others."""
        try:
            return await self._computed(shown)
        except Exception:
            if len(shown) == 1:
                log.exception("a change of %s is told without its row", self.resource.name)
                return [[b"null"] * len(shown[0])]
        return [(await self._finished([each]))[0] for each in shown]

    async def _computed(self, shown: Sequence[Sequence[msgspec.Raw]]) -> list[list[Any]]:
        assert self._finish is not None
        todo = [each for _ in shown for each in self._finish]
        answers = [bytes(each) for row in shown for each in row]
        done = await finish(todo, answers, self._engine.model.resources)
        width = len(self._finish)
        return [list(done[start : start + width]) for start in range(0, len(done), width)]

    def _change(self, row: Sequence[msgspec.Raw], shown: Sequence[Any]) -> Change:
        kind, id, at = row[2:5]
        told = {"kind": bytes(kind), "id": bytes(id), "at": bytes(at)}
        rows = iter(shown)
        pieces: list[bytes] = []
        text = b"{"
        for index, part in enumerate(self.ready.ask.parts):
            text += b"," * (index > 0) + b'"' + part.label.encode() + b'":'
            if part.what == "cursor":
                pieces.append(text + b'"')
                text = b'"'
            elif part.what == "row":
                text += bytes(next(rows))
            elif part.what == "__typename":
                text += b'"' + self.resource.name.encode() + b'Change"'
            else:
                text += told[part.what]
        return Change(Place(int(bytes(row[0])), int(bytes(row[1]))), (*pieces, text + b"}"))
