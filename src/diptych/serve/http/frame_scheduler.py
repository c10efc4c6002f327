"""A fair scheduler for parsing WebSocket frames: round-robin over callers, in at most a quarter of the loop's time.

A frame of six bytes takes as long to parse as one of six thousand, so the data of one read can take half a second. A
socket parses for one time slice at once. If data is left, the socket waits here, and reading from it is paused.
"""

from __future__ import annotations

import time
from typing import Protocol

from diptych.fair.expiring import Ticker
from diptych.fair.queue import FairQueue

TIME_SLICE = 0.0005
"""Seconds for which one socket parses at a time."""
_REST = 3
"""The pause after parsing, as a multiple of the time that was spent."""


class Parsing(Protocol):
    """A socket with received data that is not parsed yet."""

    def __hash__(self) -> int: ...

    def proceed(self) -> None:
        """Parse for one time slice, and wait again if data is left."""


class FrameScheduler(Ticker):
    """The sockets of a process that wait to parse; `most` is the largest number of connections."""

    def __init__(self, most: int) -> None:
        super().__init__(0.0)
        self._queue: FairQueue[Parsing] = FairQueue(2 * most + 2)  # one caller fills at most half of it
        self._spent = 0.0

    def wait(self, caller: str, socket: Parsing) -> None:
        """Queue a socket of this caller."""
        self._queue.remove(caller, socket)
        self._queue.put(caller, socket)
        self.start()

    def discard(self, caller: str, socket: Parsing) -> None:
        """Remove a socket from the queue, if it is in it."""
        self._queue.remove(caller, socket)

    def tick(self) -> bool:
        """Have the next socket parse; when a time slice has been used up, pause."""
        begun = time.perf_counter()
        entry = self._queue.pop()
        if entry is not None:
            entry[1].proceed()
        self._spent += time.perf_counter() - begun
        self.pause = 0.0
        if self._queue and self._spent >= TIME_SLICE:
            self.pause, self._spent = self._spent * _REST, 0.0
        return bool(self._queue)
