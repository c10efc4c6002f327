"""How long events wait for the event loop, measured from the events themselves.

The loop reads sockets and then runs callbacks, and all that becomes ready meanwhile waits. An iteration is taken to
begin with the first event that is noted in it, and to end when a callback that was scheduled then is called. An event
that comes late in an iteration, or right after a long one, has waited about that long.
"""

from __future__ import annotations

import asyncio
import time

_RECENT = 0.001
"""Seconds after which the length of the last iteration says nothing any more."""


class LoopLag:
    """The lag of the event loop of one process."""

    __slots__ = ("_begun", "_ended", "_last")

    def __init__(self) -> None:
        self._begun = 0.0
        """When this iteration began, or 0."""
        self._ended = 0.0
        self._last = 0.0
        """Seconds that the last iteration took."""

    def note(self, loop: asyncio.AbstractEventLoop) -> float:
        """Note an event; the seconds for which it has probably waited."""
        now = time.monotonic()
        if not self._begun:
            self._begun = now
            loop.call_soon(self._end)
            return self._last if now - self._ended < _RECENT else 0.0
        return now - self._begun

    def _end(self) -> None:
        self._ended = time.monotonic()
        self._last = self._ended - self._begun
        self._begun = 0.0
