"""How much of the database each caller may fill with answers that are kept for it (`Idempotency-Key`).

A token bucket of bytes for each caller: it holds a day's worth, and fills within a day. An answer that is kept takes
as many bytes as it has. Whoever has none left is refused before anything is done; what was kept is replayed as ever.
"""

from __future__ import annotations

import math
import threading
import time

from diptych.errors import Code, Refusal
from diptych.lru import LRUCache

_DAY = 86_400.0
_CALLERS, _BYTES = 10_000, 1_024
_KEY = 512
"""Bytes that a key takes in the database besides the answer."""


class ReplayQuota:
    """The buckets of all callers, `share` bytes each; `largest` is the largest answer that is kept."""

    def __init__(self, largest: int = 1 << 20, share: int = 256 << 20) -> None:
        self.largest = largest
        self.share = share
        self._lock = threading.Lock()  # a writer may have a thread of its own
        self._taken: LRUCache[tuple[float, float]] = LRUCache("kept answers of callers", _CALLERS, _CALLERS * _BYTES)
        """The bytes that each caller has taken, and when that was."""

    def check(self, caller: str) -> None:
        """Refuse a caller whose bucket is empty."""
        with self._lock:
            over = self._now(caller) - self.share
        if over >= 0:
            seconds = math.ceil((over + _KEY) * _DAY / self.share)
            cause = "Too many answers are kept for your Idempotency-Keys."
            raise Refusal(Code.RATE_LIMITED, cause, more={"retryAfter": seconds})

    def take(self, caller: str, size: int) -> None:
        """Count an answer of this size; it must not be too large."""
        if size > self.largest:
            cause = f"An answer kept for an Idempotency-Key may have {self.largest} bytes, compressed: ask for less."
            raise Refusal(Code.TOO_COMPLEX, cause)
        with self._lock:
            self._taken.put(caller, (self._now(caller) + size + _KEY, time.monotonic()), _BYTES // 2)

    def _now(self, caller: str) -> float:
        taken, when = self._taken.get(caller) or (0.0, 0.0)
        return max(0.0, taken - self.share / _DAY * (time.monotonic() - when))
