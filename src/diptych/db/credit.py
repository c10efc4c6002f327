"""How much of the event loop's own time each caller may use.

What runs right in the loop makes everybody wait. A short statement is worth that; of longer ones, a caller may have so
many that they take a quarter of the time, a little in advance. Whoever is beyond that has its statements done by a
thread, where it waits in line, until enough time has passed.

    if credit.has(who): …                    nothing to look up as long as nobody runs anything long
    credit.spend(who, seconds)               only for what took longer than NOTED
"""

from __future__ import annotations

import time

from diptych.lru import LRUCache

NOTED = 0.002
"""Seconds that are worth a note."""
_SHARE = 4
"""It takes so many times as long to earn it back."""
_ADVANCE = 0.2
"""Seconds of earning that are granted in advance: a caller may use a quarter of them at once."""
_CALLERS, _BYTES = 1_000, 1_024


class Credit:
    """By when each caller will have earned what it used. Nobody, "", is the service itself, and has all of it."""

    __slots__ = ("earned",)

    def __init__(self) -> None:
        self.earned: LRUCache[float] = LRUCache("loop time of callers", _CALLERS, _CALLERS * _BYTES)
        """Nobody is in it as long as nobody used any."""

    def has(self, who: str) -> bool:
        """May it use the loop?"""
        earned = self.earned.get(who)
        return earned is None or not who or earned - time.monotonic() < _ADVANCE

    def spend(self, who: str, seconds: float) -> None:
        """It used so much."""
        now = time.monotonic()
        self.earned.put(who, max(self.earned.get(who) or now, now) + seconds * _SHARE, _BYTES // 2)
