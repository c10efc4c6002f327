"""A token bucket for each caller: it fills at a rate, up to a burst, and what a caller takes is spent from it.

    buckets = TokenBuckets("planning time of callers", rate=0.2, burst=2.0)
    if not buckets.has_tokens(caller): …                the bucket is empty
    buckets.spend(caller, seconds)

A bucket may go below empty, since what something costs is known after it was done. It is stored as one number, the
moment at which it is full again; a full bucket is not stored. The service itself, "", is never limited.
"""

from __future__ import annotations

import time

from diptych.lru import LRUCache

_ENTRY = 1_024
"""Bytes that a bucket takes, at most."""


class TokenBuckets:
    """Token buckets by caller, in seconds or in bytes; the least recently used are forgotten."""

    __slots__ = ("_full_at", "burst", "rate")

    def __init__(self, name: str, rate: float, burst: float, callers: int = 10_000) -> None:
        self.rate = rate
        self.burst = burst
        self._full_at: LRUCache[float] = LRUCache(name, callers, callers * _ENTRY)

    def __len__(self) -> int:
        return len(self._full_at)

    @property
    def in_use(self) -> bool:
        """Has any caller spent anything?"""
        return self._full_at.used > 0

    def debt(self, caller: str) -> float:
        """What is missing until the bucket of a caller is full."""
        full_at = self._full_at.get(caller)
        if full_at is None or not caller:
            return 0.0
        debt = (full_at - time.monotonic()) * self.rate
        if debt <= 0.0:
            self._full_at.drop(caller)
            return 0.0
        return debt

    def has_tokens(self, caller: str) -> bool:
        """Are there tokens in the bucket of a caller?"""
        return self.debt(caller) <= self.burst

    def wait(self, caller: str) -> float:
        """Seconds until the bucket of a caller has tokens again."""
        return max(0.0, self.debt(caller) - self.burst) / self.rate

    def spend(self, caller: str, amount: float) -> None:
        """Take tokens from the bucket of a caller, even if it goes below empty."""
        now = time.monotonic()
        self._full_at.put(caller, max(self._full_at.get(caller) or now, now) + amount / self.rate, _ENTRY // 2)
