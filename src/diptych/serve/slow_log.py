"""The slow log: a line for each request that took longer than the setting `slow_query`, with what it ran.

    WARNING diptych.slow GET /posts 7c1…: 1840.2 ms: operation listPosts, price 111, price of 1 + 10 posts × …; SELECT …

It has the operation, the price and how that is computed (as `diptych explain` shows it), and the statement with
placeholders: no value of a request. A service without the setting pays nothing; with it, the engine notes what each
request reads (`console/notes.py`). At most ten lines a second are written, and the rest is counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from diptych.engine.read import Engine
from diptych.serve.console.notes import Note, RecordingEngine
from diptych.serve.http.request import Request

log = logging.getLogger("diptych.slow")
LogAccess = Callable[[Request, int, int], None]
_MOST = 10
"""Lines in a second."""
_STATEMENT = 4_000
"""The most characters of a statement in the log."""


def slow_log(seconds: float, log_access: LogAccess) -> tuple[LogAccess, type[Engine]]:
    """The access log with the slow log after it, and the engine that notes what is read."""
    return SlowLog(seconds).around(log_access), RecordingEngine


class SlowLog:
    """Logs slow requests; a stream, whose request lasts as long as it does, is not one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._second = 0
        self._lines = self._left_out = 0

    def around(self, log_access: LogAccess) -> LogAccess:
        """The access log, which also logs slow requests."""
        limit, clock = self._seconds, time.perf_counter

        def note(request: Request, status: int, size: int) -> None:
            log_access(request, status, size)
            took = clock() - request.begun
            if took > limit and request.headers:
                self._log(request, status, took)

        return note

    def _log(self, request: Request, status: int, took: float) -> None:
        now = int(time.monotonic())
        if now != self._second:
            if self._left_out:
                log.warning("%d more requests were slow", self._left_out)
            self._second, self._lines, self._left_out = now, 0, 0
        if self._lines >= _MOST:
            self._left_out += 1
            return
        self._lines += 1
        fields: dict[str, Any] = {"status": status, "milliseconds": round(took * 1_000, 1)}
        if isinstance(request.note, Note):
            fields |= described(request.note)
        text = ", ".join(
            f"{name} {value}" for name, value in fields.items() if name not in ("milliseconds", "statement")
        )
        statement = fields.get("statement", "")
        log.warning("%s ms: %s; %s", fields["milliseconds"], text, statement, extra={"fields": fields})


def described(note: Note) -> dict[str, Any]:
    """What a request ran, without its values."""
    fields: dict[str, Any] = {}
    if note.operation:
        fields["operation"] = note.operation
    if note.price is not None:
        fields["price"] = note.price
    if note.prepared is not None:
        formula = note.prepared.cost.price
        if formula.steps:
            fields["price of"] = formula.describe(note.sizes)
    if note.statement:
        fields["statement"] = " ".join(note.statement.split())[:_STATEMENT]
    return fields
