"""Turns in which frames of WebSockets are parsed: whoever sends very many of them keeps nobody else waiting.

A frame of six bytes takes as long to parse as one of six thousand, so what one read gives can take half a second. A
socket parses for a moment at once; what is left then waits here, by caller, and is parsed a moment at a time, one
caller after the other, in at most a quarter of the loop's time. Until then, nothing more is read from that socket.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from diptych.db.line import Line

MOMENT = 0.0005
"""Seconds for which one socket parses at a time."""
_REST = 3
"""So many times as long as was parsed, nothing is parsed."""


class Parsing(Protocol):
    """A socket that has received more than it has parsed."""

    def __hash__(self) -> int: ...

    def proceed(self) -> None:
        """Parse for a moment, and come back if something is left."""
        ...


class FrameTurns:
    """All sockets of a process that wait for their turn; `most` is how many there can be."""

    def __init__(self, most: int) -> None:
        self._line: Line[Parsing] = Line(2 * most + 2)  # nobody fills more than half of it
        self._timer: asyncio.Handle | None = None
        self._spent = 0.0

    def wait(self, who: str, socket: Parsing) -> None:
        """Let a socket of this caller proceed when it is its turn."""
        self._line.remove(who, socket)
        self._line.put(who, socket)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_soon(self._run)

    def leave(self, who: str, socket: Parsing) -> None:
        """It no longer waits, if it did."""
        self._line.remove(who, socket)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        begun = time.perf_counter()
        found = self._line.pop()
        if found is not None:
            found[1].proceed()
        self._spent += time.perf_counter() - begun
        loop = asyncio.get_running_loop()
        if not len(self._line):
            self._timer = None
        elif self._spent < MOMENT:
            self._timer = loop.call_soon(self._run)
        else:
            self._timer = loop.call_later(self._spent * _REST, self._run)
            self._spent = 0.0
