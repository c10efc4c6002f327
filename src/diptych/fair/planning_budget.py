"""Rate limit of planning: the time that each caller may take to have new requests parsed, checked and compiled.

    with meter.planning():
        …

A request that is in the plan cache costs next to nothing to plan; a new one takes milliseconds, in which nobody else
is served. So each caller has a token bucket of time. It fills at the rate of `share` seconds in a second, up to ten
seconds' worth. A caller whose bucket is empty is refused new requests until it fills again; cached ones go on as ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.fair.token_bucket import TokenBuckets

_SECONDS = 10.0
"""Seconds in which an empty bucket fills."""
_WAIT = 1.0
"""The least `Retry-After`, in seconds."""


class PlanningBudget:
    """The token buckets of all callers; with a share of 0, planning is not limited."""

    def __init__(self, share: float = 0.0) -> None:
        self.share = share
        self.buckets = TokenBuckets("planning time of callers", share or 1.0, share * _SECONDS)

    @contextmanager
    def planning(self, *, goes_on: bool = False) -> Iterator[None]:
        """Charge the time that is spent inside to the caller; a Refusal if its bucket is empty.

        With `goes_on`, it is for a request that was admitted already, and is charged without a refusal.
        """
        caller = CALLER.get() if self.share else ""
        if not caller:
            yield
            return
        if not goes_on and not self.buckets.has_tokens(caller):
            seconds = math.ceil(max(_WAIT, self.buckets.wait(caller)))
            cause = "Too many requests of yours were new, and took too long to understand."
            raise Refusal(Code.RATE_LIMITED, cause, more={"retryAfter": seconds})
        begun = time.thread_time()
        try:
            yield
        finally:
            self.buckets.spend(caller, time.thread_time() - begun)

    def charge(self, seconds: float) -> None:
        """Charge time that was spent elsewhere to the caller."""
        caller = CALLER.get() if self.share else ""
        if caller:
            self.buckets.spend(caller, seconds)
