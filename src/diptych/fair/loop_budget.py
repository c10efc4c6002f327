"""Token buckets of event-loop time: each caller may run statements in the loop for a quarter of the time.

A statement that runs in the loop blocks all other requests; for a short one that is cheaper than a thread. A caller
whose bucket is empty has its statements run by a thread, behind a fair queue, until the bucket has filled again.

    if loop_budget.has_tokens(caller): …            no lookup as long as nobody runs anything long
    loop_budget.spend(caller, seconds)              only for what took longer than NOTED
"""

from __future__ import annotations

from diptych.fair.token_bucket import TokenBuckets

NOTED = 0.002
"""Seconds from which on a statement is charged."""
_RATE, _BURST = 0.25, 0.05


def loop_budget() -> TokenBuckets:
    """The token buckets of all callers, in seconds."""
    return TokenBuckets("loop time of statements", _RATE, _BURST, 1_000)
