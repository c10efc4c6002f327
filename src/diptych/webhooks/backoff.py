"""When a message that failed is tried again: exponential backoff with jitter, for three days.

About 5 s, 15 s, 45 s, 2 min, 7 min, 20 min, 1 h, 3 h, and every 6 h after that, each within 30 % either way.
"""

from __future__ import annotations

import random

RETRIED_FOR = 3 * 86_400
"""Seconds from the first try until a change is given up."""
FIRST = 5.0
_FACTOR = 3.0
_LONGEST = 21_600.0
_JITTER = 0.3


def delay(attempts: int, retry_after: int = 0) -> float:
    """Seconds until the next try, after this many."""
    exponential = min(_LONGEST, FIRST * _FACTOR ** min(attempts - 1, 20))
    return max(exponential * random.uniform(1 - _JITTER, 1 + _JITTER), float(retry_after))
