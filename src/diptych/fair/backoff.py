"""Exponential backoff with jitter: how long to wait before something that failed is tried again.

    Backoff(first=1.0, factor=4.0, longest=900.0)      about 1 s, 4 s, 16 s, 1 min, 4 min, and every 15 min after that

Each delay is within 30 % either way, so that what failed together is not tried again together.
"""

from __future__ import annotations

import random

from msgspec import Struct

_JITTER = 0.3
_STEPS = 20
"""Attempts after which the delay grows no more, whatever its bound."""


class Backoff(Struct):
    """The delays between attempts, in seconds."""

    first: float
    factor: float
    longest: float

    def delay(self, attempts: int) -> float:
        """Seconds until the next attempt, after this many."""
        exponential = min(self.longest, self.first * self.factor ** min(attempts - 1, _STEPS))
        return exponential * random.uniform(1 - _JITTER, 1 + _JITTER)
