"""Deadlines of SQLite statements that hold whatever a statement does, kept by a thread beside them.

SQLite's own progress handler counts steps of its machine, and one step can take long: it searches a long text, or sorts
long values. And wherever it runs, it takes the interpreter from the loop. So a thread looks at the clock instead, and
interrupts a connection whose time is over: SQLite heeds that at the next row, in whichever thread it is.

    guard.begin(seconds)                      a statement of this connection has so long
    try: …                                    apsw.InterruptError when that is over
    finally: guard.end()

While nothing runs the thread sleeps; while something does, it looks every few milliseconds.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress

import apsw

_EVERY = 0.01
"""Seconds between two looks."""
_QUIET = 100
"""Looks without anything to see, after which the thread sleeps."""


class Guard:
    """The deadline of one connection."""

    __slots__ = ("_db", "_dog", "_lock", "until")

    def __init__(self, dog: Watchdog, db: apsw.Connection) -> None:
        self._dog = dog
        self._db = db
        self._lock = threading.Lock()
        self.until = math.inf
        """The moment, by time.perf_counter(), from which on it is interrupted."""

    def begin(self, seconds: float) -> None:
        """From now on, statements have so long."""
        self.until = time.perf_counter() + seconds
        self._dog.used = True
        if self._dog.asleep:
            self._dog.wake()

    @property
    def is_over(self) -> bool:
        return time.perf_counter() > self.until

    def end(self) -> None:
        """No statement runs. After this, none that comes later is interrupted for one before it."""
        with self._lock:
            self.until = math.inf

    def cancel(self) -> None:
        """Interrupt whatever runs, unless it has ended."""
        with self._lock:
            if self.until != math.inf:
                self.until = 0.0

    def enforce(self, now: float) -> None:
        """Interrupt the connection if its time is over; again at each look, until it has ended."""
        if self.until < now:
            with self._lock:
                if self.until < now:
                    with suppress(apsw.Error):  # it is closed
                        self._db.interrupt()


class Watchdog:
    """The thread that looks at the clock, for all connections of a store."""

    def __init__(self) -> None:
        self._guards: list[Guard] = []
        self.used = False
        """Did anything begin since the last look? Whoever begins sets it, and then looks whether the thread sleeps."""
        self.asleep = True
        self._closed = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def guard(self, db: apsw.Connection) -> Guard:
        """Watch over a connection from now on."""
        guard = Guard(self, db)
        self._guards.append(guard)
        return guard

    def release(self, guard: Guard) -> None:
        """Leave a connection alone: it is about to be closed."""
        guard.end()
        with suppress(ValueError):
            self._guards.remove(guard)

    def wake(self) -> None:
        """Something begins while the thread sleeps."""
        self.asleep = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="diptych-watchdog", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        quiet = 0
        while not self._closed:
            time.sleep(_EVERY)
            now = time.perf_counter()
            for guard in tuple(self._guards):
                guard.enforce(now)
            quiet = 0 if self.used or any(guard.until != math.inf for guard in tuple(self._guards)) else quiet + 1
            self.used = False
            if quiet > _QUIET:
                self._sleep()
                quiet = 0

    def _sleep(self) -> None:
        """Wait until something begins; what began just now is seen, since it sets `used` before it looks."""
        self._wake.clear()
        self.asleep = True
        if self.used or self._closed:
            self.asleep = False
        else:
            self._wake.wait()
