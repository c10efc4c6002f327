"""What is noted about a request while it runs, for the page Activity: its operation, its price and its statement.

    note = current_note()      the note of the current request, made on first use
    note.price = 120

The engine and the checks of a service with a console are subclasses that note; others pay nothing. Of the values of
requests only whole numbers are kept, for their price. Of a GraphQL document the text is kept without its literals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Read
from diptych.ask.slots import SlotValues
from diptych.ask.wish import Wish
from diptych.engine.read import Engine
from diptych.engine.read_plan import PreparedRead, ReadPlan
from diptych.engine.write_op import PreparedWrite
from diptych.errors import Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.view import View
from diptych.policy.cost import Price
from diptych.policy.limits import Checks
from diptych.serve.logs import REQUEST


class Note(Struct, eq=False):
    """What is known about one request."""

    kind: str = ""
    """Of a GraphQL request: query, mutation or subscription."""
    fields: tuple[str, ...] = ()
    """The root fields of a GraphQL request."""
    text: tuple[Any, ...] = ()
    """Its document without values, as `skeleton_of` makes it."""
    statements: tuple[str, ...] = ()
    code: str = ""
    """The code of its first error."""
    measures: RequestMeasures | None = None
    priced: int | None = None
    prepared: PreparedRead | None = None
    sizes: tuple[int | None, ...] = ()
    """The whole numbers among the values of the read, by slot."""
    writes: tuple[PreparedWrite, ...] = ()
    """The changes of the request, where the slow log is on."""

    @property
    def operation(self) -> str:
        """The name of the operation, or the method and the kind of path: `GET /users/{id}`."""
        return self.measures.operation if self.measures is not None else ""

    @property
    def price(self) -> int | None:
        if self.priced is not None or self.prepared is None:
            return self.priced
        return self.prepared.cost.price(self.sizes)

    @property
    def statement(self) -> str | None:
        if self.prepared is not None:
            return self.prepared.planned.plan.sql
        return ";\n\n".join(self.statements or dict.fromkeys(write.plan.change.sql for write in self.writes)) or None


class NotedRead(PreparedRead, frozen=True, eq=False):
    """A prepared read that knows what was asked, and by which view."""

    asks: tuple[Read, ...] = ()
    view: View | None = None


def current_note() -> Note | None:
    """The note of the current request; None outside of one."""
    request = REQUEST.get()
    if request is None:
        return None
    note = request.note
    if not isinstance(note, Note):
        note = request.note = Note()
    return note


class RecordingChecks(Checks):
    """Checks that note the measures and the price of the current request, also of one that they refuse."""

    def __call__(self, measures: RequestMeasures) -> RequestMeasures:
        note = current_note()
        if note is None:
            return super().__call__(measures)
        note.measures = measures
        try:
            return super().__call__(measures)
        except Refusal as refusal:
            note.code = refusal.code.name
            note.priced = max(measures.price, measures.least) or note.priced
            raise

    def price(
        self,
        measures: RequestMeasures | None,
        viewer: Viewer,
        price: int,
        formula: Price | None = None,
        values: SlotValues = (),
    ) -> None:
        note = current_note() if measures is not None else None
        if note is not None:
            note.measures, note.priced = measures, max(note.priced or 0, price)
        super().price(measures, viewer, price, formula, values)


class RecordingEngine(Engine):
    """An engine that notes what the current request reads."""

    def __init__(self, model: Any, store: Any, checks: Checks, *more: Any) -> None:
        super().__init__(model, store, RecordingChecks(checks.limits, checks.more), *more)

    def prepare(self, wish: Wish, view: View, *arguments: Any, **named: Any) -> PreparedRead:
        prepared = super().prepare(wish, view, *arguments, **named)
        return NotedRead(**asdict(prepared), asks=wish.asks, view=view)

    def _run(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> tuple[ReadPlan, list[Any], Mapping[int, bytes], Awaitable[Sequence[bytes | None]]]:
        run = super()._run(prepared, inputs, viewer)
        note = current_note()
        if note is not None:
            note.prepared, note.measures = prepared, prepared.measures or note.measures
            note.sizes = tuple([value if value.__class__ is int else None for value in run[1]])
        return run
