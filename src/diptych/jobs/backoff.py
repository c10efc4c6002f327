"""When a job is tried again: exponential backoff with jitter.

About 1 s, 4 s, 16 s, 1 min, 4 min, and every 15 min after that, each within 30 % either way.
"""

from __future__ import annotations

import random

FIRST = 1.0
_FACTOR = 4.0
_LONGEST = 900.0
_JITTER = 0.3


def delay(attempts: int, after: float | None = None) -> float:
    """Seconds until the next attempt, after this many; `after` if the function asked for that."""
    if after is not None:
        return max(0.0, after)
    exponential = min(_LONGEST, FIRST * _FACTOR ** min(attempts - 1, 20))
    return exponential * random.uniform(1 - _JITTER, 1 + _JITTER)
