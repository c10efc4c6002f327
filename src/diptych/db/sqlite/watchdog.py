"""Deadlines of SQLite statements, enforced by a watchdog thread.

SQLite's progress handler counts steps of its virtual machine, and one step can take long: it searches a long text, or
sorts long values. And it takes the GIL from the loop wherever it runs. So a thread checks the clock instead, and
interrupts a connection whose deadline is past: SQLite obeys at the next row, in whichever thread it runs.

    guard.begin(seconds)                      statements of this connection have so long
    try: …                                    apsw.InterruptError after that
    finally: guard.end()

The thread sleeps while nothing runs; else until the next deadline, or until that of a statement which begins meanwhile
can be past. It checks no more often, since for each check it takes the GIL from the loop.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress

import apsw

SHORTEST = 0.05
"""The shortest deadline in seconds, and the time between two checks, at most."""
_AGAIN = 0.01
"""Seconds between two checks, at least: a statement that was interrupted is interrupted again until it has ended."""
_QUIET = 1
"""Checks without a running statement, after which the thread sleeps."""


class StatementDeadline:
    """The deadline of one connection."""

    __slots__ = ("_db", "_dog", "_lock", "until")

    def __init__(self, dog: Watchdog, db: apsw.Connection) -> None:
        self._dog = dog
        self._db = db
        self._lock = threading.Lock()
        self.until = math.inf
        """The deadline, by time.perf_counter()."""

    def begin(self, seconds: float) -> None:
        """Start the deadline of the next statements."""
        self.until = time.perf_counter() + seconds
        self._dog.used = True
        if self._dog.asleep:
            self._dog.wake()

    @property
    def is_over(self) -> bool:
        return time.perf_counter() > self.until

    def end(self) -> None:
        """Clear the deadline. After this, no later statement is interrupted for an earlier one."""
        with self._lock:
            self.until = math.inf

    def cancel(self) -> None:
        """Interrupt the running statement, unless it has ended."""
        with self._lock:
            if self.until != math.inf:
                self.until = 0.0
                with suppress(apsw.Error):  # it is closed
                    self._db.interrupt()

    def enforce(self, now: float) -> None:
        """Interrupt the connection if its deadline is past; again at each check, until the statement has ended."""
        if self.until < now:
            with self._lock:
                if self.until < now:
                    with suppress(apsw.Error):  # it is closed
                        self._db.interrupt()


class Watchdog:
    """The thread that enforces the deadlines of all connections of a store."""

    def __init__(self) -> None:
        self._guards: list[StatementDeadline] = []
        self.used = False
        """Did a statement begin since the last check?"""
        self.asleep = True
        self._closed = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def guard(self, db: apsw.Connection) -> StatementDeadline:
        """Start watching a connection."""
        guard = StatementDeadline(self, db)
        self._guards.append(guard)
        return guard

    def release(self, guard: StatementDeadline) -> None:
        """Stop watching a connection that is about to be closed."""
        guard.end()
        with suppress(ValueError):
            self._guards.remove(guard)

    def wake(self) -> None:
        """Wake the thread: a statement begins."""
        self.asleep = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="diptych-watchdog", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        quiet = 0
        while not self._closed.wait(self._due()):
            now = time.perf_counter()
            for guard in tuple(self._guards):
                guard.enforce(now)
            quiet = 0 if self.used or self._is_running() else quiet + 1
            self.used = False
            if quiet > _QUIET:
                self._sleep()
                quiet = 0

    def _due(self) -> float:
        """Seconds until the next check."""
        first = min([guard.until for guard in tuple(self._guards)], default=math.inf)
        return min(SHORTEST, max(_AGAIN, first - time.perf_counter()))

    def _is_running(self) -> bool:
        """Does a statement have a deadline?"""
        return any(guard.until != math.inf for guard in tuple(self._guards))

    def _sleep(self) -> None:
        """Sleep until a statement begins. None is missed, since `begin` sets its deadline before it reads `asleep`."""
        self._wake.clear()
        self.asleep = True
        if self._is_running() or self._closed.is_set():
            self.asleep = False
        else:
            self._wake.wait()
