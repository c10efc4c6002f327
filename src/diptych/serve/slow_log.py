"""The slow log: a line for each request that took longer than the setting `slow_query`, with what it ran.

    WARNING diptych.slow GET /posts 7c1…: 1840.2 ms: status 200, operation listPosts, price 20, price of 20 posts × 1,
    ask posts where title = ?, advice No index serves the filter of posts: declare one on Post.title.; SELECT …

It has the operation, the Ask in words, the price and how that is computed, the advice of `diptych explain`, and the
statement with placeholders: no value of a request. A service without the setting pays nothing; with it, the engine
notes what each request reads (`console/notes.py`). Lines are composed and written in a thread, at most ten a second,
and the rest is counted.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diptych.ask.nodes import Ask
from diptych.engine.read import Engine
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import BoundWrite, WriteOp
from diptych.explain.advice import advice
from diptych.explain.ask_text import ask_text
from diptych.model.declare.roles import Viewer
from diptych.model.defs import Resources
from diptych.serve.console.notes import Note, NotedRead, RecordingEngine, current_note
from diptych.serve.http.request import Request

log = logging.getLogger("diptych.slow")
LogAccess = Callable[[Request, int, int], None]
_MOST = 10
"""Lines in a second."""
_STATEMENT, _ASK = 4_000, 2_000
"""The most characters of a statement, and of an Ask, in the log."""
_ASKS = 5
"""The most Asks of a request that are put into words."""


def slow_log(seconds: float, resources: Resources, log_access: LogAccess) -> tuple[LogAccess, type[Engine]]:
    """The access log with the slow log after it, and the engine that notes what is read."""
    return SlowLog(seconds, resources).around(log_access), RecordingEngine


def note_writes(write_engine: WriteEngine) -> None:
    """Note the changes of each request."""
    parts: Any = write_engine
    bind = write_engine.bind

    def noted(ops: Sequence[WriteOp], viewer: Viewer, earlier: Mapping[str, str] | None = None) -> list[BoundWrite]:
        if (note := current_note()) is not None:
            note.writes += tuple([op.prepared for op in ops])
            note.measures = note.measures or ops[0].prepared.measures
        return bind(ops, viewer, earlier)

    parts.bind = noted


class SlowLog:
    """Logs slow requests; a stream, whose request lasts as long as it does, is not one."""

    def __init__(self, seconds: float, resources: Resources) -> None:
        self._seconds = seconds
        self._resources = resources
        self._second = 0
        self._lines = self._left_out = 0

    def around(self, log_access: LogAccess) -> LogAccess:
        """The access log, which also logs slow requests."""
        limit, clock = self._seconds, time.perf_counter

        def note(request: Request, status: int, size: int) -> None:
            log_access(request, status, size)
            took = clock() - request.begun
            if took > limit and request.headers:
                self._slow(request, status, took)

        return note

    def _slow(self, request: Request, status: int, took: float) -> None:
        """Have a line written by a thread, unless there were too many in this second."""
        now = int(time.monotonic())
        left_out = 0
        if now != self._second:
            left_out = self._left_out
            self._second, self._lines, self._left_out = now, 0, 0
        if self._lines >= _MOST:
            self._left_out += 1
            return
        self._lines += 1
        note = request.note if isinstance(request.note, Note) else None
        write = functools.partial(self._log, note, status, took, left_out)
        try:
            asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, write)
        except RuntimeError:  # it shuts down, and has no threads any more
            write()

    def _log(self, note: Note | None, status: int, took: float, left_out: int) -> None:
        try:
            if left_out:
                log.warning("%d more requests were slow", left_out)
            fields: dict[str, Any] = {"status": status, "milliseconds": round(took * 1_000, 1)}
            if note is not None:
                fields |= statement_text(note, self._resources)
            left = ("milliseconds", "statement")
            text = ", ".join(f"{name} {value}" for name, value in fields.items() if name not in left)
            log.warning(
                "%s ms: %s; %s", fields["milliseconds"], text, fields.get("statement", ""), extra={"fields": fields}
            )
        except Exception:
            log.exception("a slow request cannot be described")


def statement_text(note: Note, resources: Resources) -> dict[str, Any]:
    """What a request ran, without its values."""
    fields: dict[str, Any] = {}
    if note.operation:
        fields["operation"] = note.operation
    if note.price is not None:
        fields["price"] = note.price
    asks: list[Ask] = [write.write for write in note.writes]
    if note.prepared is not None:
        formula = note.prepared.cost.price
        if formula.steps:
            fields["price of"] = formula.describe(note.sizes)
        if isinstance(note.prepared, NotedRead):
            asks += note.prepared.asks
    if asks:
        fields["ask"] = "; ".join([ask_text(ask, resources) for ask in asks[:_ASKS]])[:_ASK]
    if isinstance(note.prepared, NotedRead) and note.prepared.view is not None:
        lines = advice(note.prepared.asks, resources, note.prepared.view)
        if lines:
            fields["advice"] = " ".join(lines)
    if note.statement:
        fields["statement"] = " ".join(note.statement.split())[:_STATEMENT]
    return fields
