"""The time that each caller takes for requests that were never seen: to read, validate, translate and compile them.

    with meter.planning():
        …

A request that is known costs next to nothing to understand; a new one takes milliseconds, in which nobody else is
served. So each caller has an account of time. It fills at the rate of `share` seconds in a second, up to ten seconds'
worth, and whoever has used it up is refused until there is some again; known requests go on as ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from diptych.asking import ASKER
from diptych.errors import Code, Refusal
from diptych.lru import LRUCache

_SECONDS = 10.0
"""So many seconds' worth can be saved up."""
_CALLERS, _BYTES = 10_000, 1_024
_WAIT = 1.0
"""Seconds after which it is worth trying again, at least."""


class Meter:
    """The accounts of all callers; with a share of 0, nothing is counted."""

    def __init__(self, share: float = 0.0) -> None:
        self.share = share
        self._spent: LRUCache[tuple[float, float]] = LRUCache("planning time of callers", _CALLERS, _CALLERS * _BYTES)
        """What each caller owes, and when that was; who owes nothing is not in it."""

    @contextmanager
    def planning(self, *, goes_on: bool = False) -> Iterator[None]:
        """Count the time that is spent inside for whoever asks; a Refusal if it has none left, unless it is for a
        request that was let in already."""
        who = ASKER.get() if self.share else ""
        if not who:
            yield
            return
        owed = self._owed(who)
        if owed > self.share * _SECONDS and not goes_on:
            seconds = math.ceil(max(_WAIT, owed / self.share - _SECONDS))
            cause = "Too many requests of yours were new, and took too long to understand."
            raise Refusal(Code.RATE_LIMITED, cause, more={"retryAfter": seconds})
        begun = time.thread_time()
        try:
            yield
        finally:
            self._spent.put(who, (owed + time.thread_time() - begun, time.monotonic()), _BYTES // 2)

    def _owed(self, who: str) -> float:
        owed, when = self._spent.get(who) or (0.0, 0.0)
        return max(0.0, owed - self.share * (time.monotonic() - when))
