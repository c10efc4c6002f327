"""Tests for rate limits: what the headers show is never more than is left, and is rendered once for each step."""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast

import pytest

from diptych.engine.rate_limiter import STEPS, RateLimiter, Spender, step_of
from diptych.errors import Refusal
from diptych.identity.viewer import Caller
from diptych.model.declare.roles import Viewer
from diptych.model.rates import RateDef


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def spender_with(amount: int, clock: Clock, unit: Any = "cost", seconds: int = 60) -> Spender:
    limiter = RateLimiter([RateDef("r", unit, amount, seconds)], cast(Any, None), clock=clock)
    cast(Any, limiter.sharing).start = lambda: None
    caller = Caller(Viewer(id="u"), cast(Any, None), fairness_key="user:u", sent=b"Bearer x")
    return limiter.spender(caller, None)


def shown(spender: Spender, clock: Clock) -> int:
    (policy, _), (name, value) = spender.headers(clock.now)
    assert (policy, name) == (b"ratelimit-policy", b"ratelimit")
    found = re.fullmatch(rb'"r";r=(\d+);t=\d+', value)
    assert found is not None
    return int(found[1])


@pytest.fixture(autouse=True)
def _loop() -> Any:
    with asyncio.Runner() as runner:
        runner.get_loop()
        yield


@pytest.mark.parametrize("amount", [60, 600, 1_000, 1_001, 10_000, 99_999, 1_000_000])
def test_what_is_shown_is_what_is_left_rounded_down_to_a_step(amount: int) -> None:
    clock = Clock()
    spender, left, step = spender_with(amount, clock), amount, step_of(amount)
    assert shown(spender, clock) == amount
    assert amount / step <= STEPS
    while left >= step:
        price = max(1, left // 7)
        spender.charge(price, ())
        left -= price
        assert left - step < shown(spender, clock) <= left + 1, (amount, left)
    spender.charge(left, ())
    assert shown(spender, clock) == 0
    with pytest.raises(Refusal):
        spender.charge(max(1, amount // 100_000), ())


@pytest.mark.parametrize("amount", [60, 600, 1_000])
def test_a_small_rate_is_shown_exactly(amount: int) -> None:
    clock = Clock()
    spender = spender_with(amount, clock, "requests")
    for left in reversed(range(amount)):
        spender.admit(clock.now)
        assert shown(spender, clock) == left


def test_what_is_left_is_shown_as_of_the_last_spending_or_later() -> None:
    clock = Clock()
    spender, received = spender_with(60, clock), clock.now
    clock.now += 5.0  # it waited for the database before its price was known
    spender.charge(10, ())
    assert b"r=50;" in spender.headers(received)[1][1]
    clock.now += 3.0
    assert shown(spender, clock) == 53
    clock.now += 60.0
    assert shown(spender, clock) == 60
