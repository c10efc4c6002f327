"""Connections that read SQLite, in the loop or in a worker, and the functions of ours that statements call."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from typing import Any, cast

import apsw

from diptych.ask.cursor import digest, sign
from diptych.compile.plan import MAX_ANSWER, Plan
from diptych.db.unicode import has_no_half, unicode
from diptych.db.watchdog import Guard, Watchdog

Row = Sequence[bytes | None]
_TICK = 2_000
"""Steps of SQLite's machine between two calls of the progress handler."""
_UNLIMITED = 1 << 60
LONG = 0.05
"""Seconds that a read has in the loop, however few steps it takes."""
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "mmap_size=268435456", "cache_size=-65536", "foreign_keys=ON")


class Connection:
    """One connection of one thread, whose statements end when their time is over."""

    def __init__(self, path: str, dog: Watchdog, *, write: bool = False, inline: bool = False) -> None:
        self.db = apsw.Connection(path, flags=_FLAGS, statementcachesize=512)
        self.db.set_busy_timeout(5_000)
        for pragma in _PRAGMAS:
            self.db.execute(f"PRAGMA {pragma}").fetchall()
        if not write:
            self.db.execute("PRAGMA query_only=1").fetchall()
            self.db.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_ANSWER)
        self.db.create_scalar_function("diptych_seal", cast(Any, _seal), 2, deterministic=True)
        self.db.create_scalar_function("diptych_digest", cast(Any, digest), 1, deterministic=True)
        self.db.create_scalar_function("diptych_contains", cast(Any, self._contains), 2, deterministic=True)
        self.db.create_scalar_function("diptych_has_no_half", cast(Any, has_no_half), 1, deterministic=True)
        self.db.create_scalar_function("diptych_same_json", cast(Any, _same_json), 2, deterministic=True)
        if inline:
            self.db.set_busy_timeout(0)  # in the loop nothing waits, least of all for what needs the loop
            self.db.set_progress_handler(self._tick, _TICK)
        self.guard = dog.guard(self.db)
        self._dog = dog
        self._execute = self.db.cursor().execute
        self._ticks = _UNLIMITED

    def _tick(self) -> bool:
        self._ticks -= 1
        return self._ticks < 0

    def _contains(self, text: Any, part: Any) -> bool | None:
        """Is one text in another? In linear time, unlike SQLite's instr(). Both come as the bytes of their UTF-8.

        A row may be searched for many things, and SQLite heeds no interrupt before the next row.
        """
        if self.guard.is_over:
            raise apsw.InterruptError("interrupted")
        return None if text is None or part is None else part in text

    def run_inline(self, plan: Plan, parameters: Sequence[Any], steps: int, now: float) -> Row:
        """The one row of a plan, in the loop; apsw.InterruptError if it takes more steps, or too long from `now` on.

        `get` reads all that the statement gives, so that it ends, and with it the snapshot that it reads.
        """
        self._ticks = steps // _TICK
        guard, dog = self.guard, self._dog
        guard.until = now + LONG
        dog.used = True
        if dog.asleep:
            dog.wake()
        try:
            found: Any = self._execute(plan.sql, parameters).get
        finally:
            guard.until = math.inf  # without its lock: what is interrupted for nothing is run again by a worker
        return _row(plan, found)

    def run(self, plan: Plan, parameters: Sequence[Any]) -> Row:
        """The same in a thread, where the guard was told before how long it may take."""
        found: Any = self._execute(plan.sql, parameters).get
        return _row(plan, found)

    def close(self) -> None:
        self._dog.release(self.guard)
        self.db.close()


class Task:
    """A read on its way through a worker; whoever waits for it may leave at any moment."""

    __slots__ = ("_gone", "_guard", "_lock", "_parameters", "_plan")

    def __init__(self, plan: Plan, parameters: Sequence[Any]) -> None:
        self._plan = plan
        self._parameters = parameters
        self._lock = threading.Lock()
        self._gone = False
        self._guard: Guard | None = None
        """That of the connection on which it runs."""

    def run(self, connection: Connection, seconds: float) -> Row:
        """In the worker."""
        guard = connection.guard
        guard.begin(seconds)
        try:
            self._runs_under(guard)
            return connection.run(self._plan, self._parameters)
        finally:
            self._runs_under(None)
            guard.end()

    def _runs_under(self, guard: Guard | None) -> None:
        with self._lock:
            self._guard = guard
            if self._gone and guard is not None:
                guard.cancel()

    def cancel(self) -> None:
        """In the loop: nobody waits for it any more."""
        with self._lock:
            self._gone = True
            if self._guard is not None:
                self._guard.cancel()


def _row(plan: Plan, found: Any) -> Row:
    return (unicode(found),) if plan.columns == 1 else cast(Row, found and [*map(unicode, found)])


def _seal(key: Any, payload: Any) -> str | None:
    """The signed cursor of a row; an empty page has none."""
    return None if payload is None else sign(key, payload)


def _same_json(one: Any, other: Any) -> bool | None:
    """Are two JSON texts the same value, whatever the order of their keys? (As jsonb has it: 1.0 is 1.)"""
    return None if one is None or other is None else _canonical(one) == _canonical(other)


def _canonical(text: str) -> str:
    """The same for equal values; text that is no JSON equals itself alone."""
    try:
        return json.dumps(json.loads(text, parse_float=_number), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _number(text: str) -> float | int:
    found = float(text)
    return int(found) if found.is_integer() else found
