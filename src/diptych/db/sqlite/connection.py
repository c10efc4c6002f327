"""SQLite connections that read, in the loop or in a worker, and the SQL functions that statements call."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, cast

import apsw

from diptych.ask.cursor import key_digest, row_version, sign
from diptych.compile.plan import MAX_ANSWER, Plan, raise_long_sum
from diptych.db.sqlite.errors import raise_guard_failed
from diptych.db.sqlite.unicode import has_no_half, unicode
from diptych.db.sqlite.watchdog import SHORTEST, StatementDeadline, Watchdog
from diptych.model.folding import fold

BytesRow = tuple[bytes | None, ...] | list[bytes | None]
_TICK = 2_000
"""Steps of SQLite's virtual machine between two calls of the progress handler."""
_TICK_SECONDS = 100e-6
"""Processor time of a tick, at most, as long as no long texts are read."""
_BYTES_A_SECOND = 100e6
"""How fast long texts are read and put into a response, at least."""
_UNLIMITED = 1 << 60
INLINE_DEADLINE = SHORTEST
"""Deadline of a read in the loop, in seconds, however few steps it takes."""
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "mmap_size=0", "cache_size=-65536", "foreign_keys=ON")
_MAPPED = 8 << 30
"""Bytes of the file that are mapped into memory while nobody writes. They are those of the operating system's cache,
and the loop waits 4 ms for each GiB of them when the first one writes.

SQLite maps the file anew at the first read after each commit. That doubles the time of this read, and waits for a lock
of the whole process while other threads allocate memory. Without commits, a mapping saves up to a third of a read from
a large file.
"""
_QUIET = 1.0
"""Seconds without a write after which the file is mapped."""
_FEW, _UNSHARED = 4, 50
"""After a snapshot that fewer than 4 reads shared, the next 50 reads have one each."""


class SqliteConnection:
    """A connection of one thread, whose statements are interrupted at their deadline."""

    def __init__(self, path: str, dog: Watchdog, *, write: bool = False, inline: bool = False) -> None:
        self.db = apsw.Connection(path, flags=_FLAGS, statementcachesize=512)
        self.db.set_busy_timeout(5_000)
        for pragma in _PRAGMAS:
            self.db.execute(f"PRAGMA {pragma}").fetchall()
        self.db.create_scalar_function("diptych_seal", cast(Any, _seal), 2, deterministic=True)
        self.db.create_scalar_function("diptych_digest", cast(Any, key_digest), 1, deterministic=True)
        self.db.create_scalar_function("diptych_version", cast(Any, row_version), 1, deterministic=True)
        self.db.create_scalar_function("diptych_contains", cast(Any, self._contains), 2, deterministic=True)
        self.db.create_scalar_function("diptych_fold", cast(Any, self._fold), 1, deterministic=True)
        self.db.create_scalar_function("diptych_has_no_half", cast(Any, has_no_half), 1, deterministic=True)
        self.db.create_scalar_function("diptych_same_json", cast(Any, _same_json), 2, deterministic=True)
        self.db.create_scalar_function("diptych_long_sum", cast(Any, raise_long_sum), 1)
        self.db.create_scalar_function("diptych_refuse", cast(Any, raise_guard_failed), 0)
        self.guard = dog.guard(self.db)
        self._dog = dog
        self._execute = self.db.cursor().execute
        self._ticks = _UNLIMITED
        self._map_at = math.inf
        """When the file is to be mapped."""
        self._is_mapped = False
        self._shares = False
        """Do reads share a snapshot at the moment?"""
        self._reads = 0
        """Those that share it."""
        self._unshared = 0
        """Reads that have one of their own before the next is shared."""
        if write:  # else a statement that looks for two rows is prepared anew whenever their ids are bound
            self.db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        else:
            self.only_read(inline=inline)

    def only_read(self, *, inline: bool) -> None:
        """Write no more; with `inline`, for reads in the loop."""
        self.db.execute("PRAGMA query_only=1").fetchall()
        self.db.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_ANSWER)
        if inline:
            self.db.set_busy_timeout(0)  # nothing may block the loop, least of all on what needs the loop
            self.db.set_progress_handler(self._tick, _TICK)

    def _tick(self) -> bool:
        self._ticks -= 1
        return self._ticks < 0

    def _contains(self, text: Any, part: Any) -> bool | None:
        """Is one text in another? In linear time, unlike SQLite's instr(). Both come as the bytes of their UTF-8.

        A row may be searched many times, and SQLite obeys an interrupt only at the next row.
        """
        if self.guard.is_over:
            raise apsw.InterruptError("interrupted")
        return None if text is None or part is None else part in text

    def _fold(self, text: Any) -> str | None:
        """A text without differences of case and accents. It comes as bytes, which may be no UTF-8."""
        if self.guard.is_over:
            raise apsw.InterruptError("interrupted")
        return None if text is None else fold(text.decode(errors="replace"))

    def run_inline(self, plan: Plan, parameters: Sequence[Any], steps: int, now: float) -> BytesRow:
        """The one row of a plan, in the loop; apsw.InterruptError if it takes more steps, or too long from `now` on.

        `get` reads all rows of the statement, so that its snapshot ends.
        """
        if now >= self._map_at:
            self._map(_MAPPED)
        if self._shares:
            self._reads += 1
        elif self._is_mapped:
            self._share()
        self._ticks = steps // _TICK
        guard, dog = self.guard, self._dog
        guard.until = now + INLINE_DEADLINE
        dog.used = True
        if dog.asleep:
            dog.wake()
        try:
            row = self._execute(plan.sql, parameters).get
        except apsw.SQLError as error:
            _raise_if_interrupted(error)
            raise
        finally:
            guard.until = math.inf  # without its lock: a read that is interrupted by mistake runs again in a worker
        return _row(plan, row)

    def _share(self) -> None:
        """Let the reads of this iteration of the loop share a snapshot, unless that was of little use lately.

        The file is locked and unlocked once then, and not for each read, which is an eighth of a short one. Nobody can
        tell: the snapshot ends before any callback that is scheduled later, so before anybody hears of a later commit.
        Only a file that nobody writes to is read so; else readers would keep the log from being emptied.
        """
        if self._unshared:
            self._unshared -= 1
            return
        asyncio.get_running_loop().call_soon(self._end_shared)
        self._execute("BEGIN")
        self._shares, self._reads = True, 1

    def _end_shared(self) -> None:
        if not self._shares:
            return
        self._shares = False
        if self.db.in_transaction:  # else an error has ended it
            self._execute("COMMIT")
        if self._reads < _FEW:
            self._unshared = _UNSHARED

    def map_later(self) -> None:
        """Map the file once nobody has written for a while: to be called before and after each write, in the loop."""
        self._map_at = time.perf_counter() + _QUIET
        self._end_shared()
        if self._is_mapped:
            self._map(0)

    def _map(self, size: int) -> None:
        self.db.execute(f"PRAGMA mmap_size={size}").fetchall()
        self._is_mapped = size > 0
        if self._is_mapped:
            self._map_at = math.inf

    def estimate(self, steps: int, row: Sequence[Any]) -> float:
        """Processor time that the last read took in the loop, at most: by its steps and its size.

        Clocks would count what other processes took as well, and that of the thread costs as much as a short read.
        """
        size = sum(len(column) for column in row if isinstance(column, bytes | str))  # the feed has numbers, too
        return (steps // _TICK - self._ticks + 1) * _TICK_SECONDS + size / _BYTES_A_SECOND

    @property
    def is_out_of_steps(self) -> bool:
        """Was the last read in the loop interrupted because of its steps?"""
        return self._ticks < 0

    def run(self, plan: Plan, parameters: Sequence[Any]) -> BytesRow:
        """The one row of a plan, in a thread, under a deadline that was set before."""
        try:
            return _row(plan, self._execute(plan.sql, parameters).get)
        except apsw.SQLError as error:
            _raise_if_interrupted(error)
            raise

    def close(self) -> None:
        self._dog.release(self.guard)
        self.db.close()


class ReadTask:
    """A read that a worker runs; it can be cancelled at any moment."""

    __slots__ = ("_cancelled", "_guard", "_lock", "_parameters", "_plan")

    def __init__(self, plan: Plan, parameters: Sequence[Any]) -> None:
        self._plan = plan
        self._parameters = parameters
        self._lock = threading.Lock()
        self._cancelled = False
        self._guard: StatementDeadline | None = None
        """The guard of the connection on which it runs."""

    def run(self, connection: SqliteConnection, seconds: float) -> BytesRow:
        """Run it, in the worker."""
        guard = connection.guard
        guard.begin(seconds)
        try:
            self._runs_under(guard)
            return connection.run(self._plan, self._parameters)
        finally:
            self._runs_under(None)
            guard.end()

    def _runs_under(self, guard: StatementDeadline | None) -> None:
        with self._lock:
            self._guard = guard
            if self._cancelled and guard is not None:
                guard.cancel()

    def cancel(self) -> None:
        """Cancel it, in the loop."""
        with self._lock:
            self._cancelled = True
            if self._guard is not None:
                self._guard.cancel()


def _raise_if_interrupted(error: apsw.SQLError) -> None:
    """Raise an InterruptError for that of json_each, which was interrupted while the statement was prepared."""
    if "vtable constructor failed" in str(error):
        raise apsw.InterruptError("interrupted") from error


def _row(plan: Plan, row: Any) -> BytesRow:
    if plan.columns == 1:
        return (unicode(row),)
    if not row:
        return cast(BytesRow, row)
    repaired = [*map(unicode, row)]
    if plan.page is not None and not plan.page.labels:
        repaired[1] = row[1]  # sort keys: one that was repaired would lead to another place
    return repaired


def _seal(key: Any, payload: Any) -> str | None:
    """The signed cursor of a row; an empty page has none."""
    return None if payload is None else sign(key, payload)


def _same_json(one: Any, other: Any) -> bool | None:
    """Are two JSON texts the same value, whatever the order of their keys? (As jsonb has it: 1.0 is 1.)"""
    return None if one is None or other is None else _canonical(one) == _canonical(other)


def _canonical(text: str) -> str:
    """The same text for equal values; what is not JSON stays as it is."""
    try:
        return json.dumps(json.loads(text, parse_float=_number), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() else number
