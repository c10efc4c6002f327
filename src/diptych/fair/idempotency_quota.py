"""A quota of bytes for each caller: how much of the database its stored replies may fill (`Idempotency-Key`).

Each caller has a token bucket of bytes, which fills within a day. A reply that is stored takes as many bytes as it has.
A caller whose bucket is empty is refused before anything is done; replies that were stored are replayed as ever.
"""

from __future__ import annotations

import math
import threading

from diptych.errors import Code, Refusal
from diptych.fair.token_bucket import TokenBuckets

_DAY = 86_400.0
_KEY = 512
"""Bytes that a key takes in the database besides the reply."""


class IdempotencyQuota:
    """The token buckets of all callers, `share` bytes each; `largest` is the largest reply that is stored."""

    def __init__(self, largest: int = 1 << 20, share: int = 256 << 20) -> None:
        self.largest = largest
        self._lock = threading.Lock()  # a writer may have a thread of its own
        self._buckets = TokenBuckets("kept answers of callers", share / _DAY, share)

    def check(self, caller: str) -> None:
        """Refuse a caller whose bucket is empty."""
        with self._lock:
            over = self._buckets.debt(caller) - self._buckets.burst
        if over >= 0:
            seconds = math.ceil((over + _KEY) / self._buckets.rate)
            cause = "Too many answers are kept for your Idempotency-Keys."
            raise Refusal(Code.RATE_LIMITED, cause, more={"retryAfter": seconds})

    def take(self, caller: str, size: int) -> None:
        """Spend the bytes of a reply; a Refusal if it is too large to be stored."""
        if size > self.largest:
            cause = f"An answer kept for an Idempotency-Key may have {self.largest} bytes, compressed: ask for less."
            raise Refusal(Code.TOO_COMPLEX, cause)
        with self._lock:
            self._buckets.spend(caller, size + _KEY)
