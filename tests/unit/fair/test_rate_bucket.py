"""A bucket admits what exact arithmetic admits; several processes that share one stay within the documented bound."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil

import pytest

from diptych.fair.rate_bucket import SLACK, RateBucket, Unshared
from tests.support.effort import scaled

MICRO = 1_000_000


def bucket_of(amount: int, seconds: float, share: float = 0.1) -> tuple[RateBucket, Unshared]:
    unshared = Unshared()
    return RateBucket("rate", "ann", amount, seconds, share, unshared), unshared


class Oracle:
    """A token bucket by the book, in fractions."""

    def __init__(self, amount: int, seconds: int) -> None:
        self.capacity = self.tokens = Fraction(amount)
        self.rate = Fraction(amount, seconds)
        self.at = Fraction(0)

    def fill(self, now: Fraction) -> None:
        self.tokens = min(self.capacity, self.tokens + (now - self.at) * self.rate)
        self.at = now


@pytest.mark.parametrize("seed", range(scaled(40)))
def test_a_bucket_admits_what_an_oracle_admits(seed: int) -> None:
    draw = random.Random(seed)
    amount, seconds = draw.choice([1, 5, 60, 600, 10_000, 7_777]), draw.choice([1, 60, 3_600, 86_400])
    bucket, _ = bucket_of(amount, seconds)
    oracle, now = Oracle(amount, seconds), Fraction(draw.randrange(10**6))
    oracle.at = now
    for _ in range(500):
        now += Fraction(draw.choice([0, 0, 1, 5, 50, 500]) * draw.randrange(1 << 16), 1 << 20)
        price = draw.randint(1, max(1, amount // draw.choice([1, 10, 100])))
        oracle.fill(now)
        missing = (price - oracle.tokens) / oracle.rate
        wait = bucket.wait(price, float(now))
        if abs(missing) > 3 * SLACK:
            assert (wait == 0.0) == (missing <= 0)
        assert wait == pytest.approx(max(0.0, float(missing)), abs=4 * SLACK)
        assert abs(bucket.left(float(now)) - int(oracle.tokens)) <= 1
        if wait == 0.0:
            bucket.spend(price, float(now))
            oracle.tokens -= price


def test_what_costs_more_than_the_whole_bucket_never_fits() -> None:
    bucket, _ = bucket_of(10, 60)
    assert bucket.wait(11, 0.0) == float("inf") and bucket.wait(10, 0.0) == 0.0


class Row:
    """The row of a bucket in the database, as `db/rates.py` changes it."""

    def __init__(self) -> None:
        self.full_at: int | None = None

    def add(self, seconds: float, debt: float, now: float) -> tuple[int, int | None, float]:
        previous, moment = self.full_at, int(now * MICRO)
        self.full_at = max((previous or 0) + ceil(seconds * MICRO), moment + ceil(debt * MICRO))
        return self.full_at, previous, (self.full_at - moment) / MICRO


class Process:
    """A process that shares a bucket as `engine/rate_sharing.py` does, with a delay."""

    def __init__(self, amount: int, seconds: float, *, learns: bool = True) -> None:
        self.bucket, self.unshared = bucket_of(amount, seconds)
        self.under_way: tuple[float, int, tuple[int, int | None, float]] | None = None
        self.learns = learns

    def share(self, row: Row, now: float, delay: float) -> None:
        if self.under_way is None:
            units = self.bucket.unshared
            self.under_way = now + delay, units, row.add(*self.bucket.spent(now), now + delay / 2)

    def learn(self, now: float) -> None:
        if self.under_way is not None and now >= self.under_way[0]:
            _, units, (mark, previous, debt) = self.under_way
            self.under_way = None
            self.bucket.shared(units, 0, previous if self.learns else None, mark, debt, now)

    def spend(self, price: int, now: float) -> bool:
        if self.bucket in self.unshared.urgent or self.bucket.wait(price, now) > 0:
            return False
        self.bucket.spend(price, now)
        return True


def admitted(processes: int, draw: random.Random, *, learns: bool = True) -> tuple[float, float]:
    """The most that is admitted in any time beyond the rate, and the documented bound of it."""
    amount, seconds, largest = draw.choice([20, 600, 10_000]), 60.0, 1
    largest = draw.choice([1, amount // 20])
    row, now = Row(), 1_000.0
    nodes = [Process(amount, seconds, learns=learns) for _ in range(processes)]
    over = most = 0.0
    rate, last = amount / seconds, now
    for _ in range(4_000):
        now += draw.expovariate(20.0)
        over = max(0.0, over - (now - last) * rate)  # the debt of a bucket that all of it was spent from
        last = now
        node = draw.choice(nodes)
        price = draw.randint(1, largest)
        for each in nodes:
            each.learn(now)
        if node.spend(price, now):
            over += price
            most = max(most, over)
        if node.bucket.threshold > 0.25 * node.bucket.slice or draw.random() < 0.01:
            node.share(row, now, draw.choice([0.001, 0.05]))
    return most - amount, (processes - 1) * (0.1 * amount + largest)


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_processes_that_share_a_bucket_stay_within_the_bound(seed: int) -> None:
    draw = random.Random(seed)
    for processes in (1, 2, 3, 8):
        over, bound = admitted(processes, draw)
        assert over <= bound + 1e-3, (processes, over, bound)


def test_processes_that_learn_nothing_exceed_the_bound() -> None:
    """The control: a bound that nothing can exceed would prove nothing."""
    over, bound = admitted(3, random.Random(1), learns=False)
    assert over > bound
