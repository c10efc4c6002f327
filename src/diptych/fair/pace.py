"""Time slices for long work in the event loop: while the loop is busy, the work sleeps for longer than it ran.

pace = Pace()
for item in very_many:
    …
    if pace.is_over():
        await pace.rest()
"""

from __future__ import annotations

import asyncio
import time

_SLICE = 0.0005
"""Seconds of a slice."""
_REST = 3
"""While the loop is busy, the work sleeps this many times as long as it ran."""
_BUSY = 0.001
"""Seconds that others take of an iteration of the loop, from which on it counts as busy."""


class Pace:
    """The time slices of one task."""

    __slots__ = ("_begun", "_iteration", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begin()

    def _begin(self) -> None:
        self._begun = time.monotonic()
        self._iteration = self._loop.time()

    def is_over(self) -> bool:
        """Has the slice been used up?"""
        return time.monotonic() - self._begun > _SLICE

    async def rest(self) -> None:
        """Yield the loop. Its clock does not advance within an iteration, so it shows how long the last one took."""
        ran = time.monotonic() - self._begun
        await asyncio.sleep(0)
        if self._loop.time() - self._iteration > ran + _BUSY:
            await asyncio.sleep(ran * _REST)
        self._begin()
