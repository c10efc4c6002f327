"""How often someone may try: a few failures are free, then each doubles the time to wait."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from diptych.identity import throttle
from diptych.identity.records import ATTEMPTS, Account
from diptych.identity.throttle import Throttled
from tests.identity.desk import ANN, BEN, HOME, PASSWORD, WRONG, Desk, NewDesk

WAITS = [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
"""Seconds to wait after each failure of an account."""


@dataclass
class Clock:
    at: int = 1_800_000_000

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that stands still until it is moved."""
    found = Clock()
    monkeypatch.setattr(throttle, "now", found)
    return found


@pytest.fixture(autouse=True)
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt but the first removes old counts."""
    monkeypatch.setattr(throttle, "_counted", itertools.count(1))


def places() -> Iterator[str]:
    """An address that nobody had before."""
    return (f"10.0.{number // 250}.{number % 250}" for number in itertools.count())


def test_each_failure_of_an_account_doubles_the_time_to_wait(one: Desk, clock: Clock) -> None:
    address = places()
    for number, seconds in enumerate(WAITS, 1):
        assert one.sign_in(ANN, WRONG, next(address)) is None, number
        if seconds:
            clock.at += seconds
            assert one.sign_in(ANN, WRONG, next(address)) == Throttled(1), number
            clock.at += 1  # moments are whole seconds, and nobody waits less than is said
    assert len(one.hasher.verified) == len(WAITS)


def test_it_is_told_how_long_to_wait(one: Desk, clock: Clock) -> None:
    address = places()
    for _ in range(5):
        assert one.sign_in(ANN, WRONG, next(address)) is None
    assert one.sign_in(ANN, WRONG, next(address)) == Throttled(2)
    clock.at += 2
    for seconds in (3, 5, 9):
        assert one.sign_in(ANN, WRONG, next(address)) is None
        assert one.sign_in(ANN, WRONG, next(address)) == Throttled(seconds)
        clock.at += seconds


def test_an_attempt_that_must_wait_costs_no_hash_and_counts_nowhere(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    for _ in range(5):
        one.sign_in(ANN, WRONG)
    counts = one.run(ATTEMPTS.all(one.store, "who"))
    one.hasher.verified.clear()
    for password in (WRONG, PASSWORD) * 20:
        assert one.sign_in(ANN, password) == Throttled(2)
    assert one.hasher.verified == []
    assert one.run(ATTEMPTS.all(one.store, "who")) == counts
    clock.at += 2
    assert isinstance(one.sign_in(), Account)


def test_an_address_may_fail_20_times_at_whatever_account(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    for number in range(20):
        assert one.sign_in(f"{number}@example.org", WRONG) is None
    assert one.sign_in() == Throttled(2)
    assert isinstance(one.sign_in(address="192.0.2.2"), Account)
    clock.at += 2
    assert one.sign_in("another@example.org", WRONG) is None
    assert one.sign_in() == Throttled(3)


def test_success_resets_the_account_and_takes_itself_out_of_the_address(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    for _ in range(4):
        for _ in range(4):
            assert one.sign_in(ANN, WRONG) is None
        assert isinstance(one.sign_in(), Account)
    for _ in range(50):
        assert isinstance(one.sign_in(), Account)
    (count,) = one.run(ATTEMPTS.all(one.store, "who"))
    assert (count.who.partition(":")[0], count.failures) == ("address", 16)
    for _ in range(4):
        assert one.sign_in(BEN, WRONG) is None
    assert one.sign_in() == Throttled(2)


def test_success_after_a_wait_brings_no_further_wait_to_the_address(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    for number in range(20):
        one.sign_in(f"{number}@example.org", WRONG)
    clock.at += 2
    for _ in range(3):
        assert isinstance(one.sign_in(), Account)
    assert one.sign_in(BEN, WRONG) is None
    assert one.sign_in() == Throttled(3)


def test_success_leaves_the_wait_of_an_attempt_that_came_later(one: Desk, clock: Clock) -> None:
    def attempt(who: str) -> Any:
        return one.run(one.store.write(lambda: throttle.count(one.store, who, HOME)))

    for number in range(19):
        attempt(f"{number}@example.org")
    first = attempt(ANN)
    clock.at += 2
    attempt(BEN)
    one.run(one.store.write(lambda: throttle.forgive(one.store, first)))
    assert attempt("another@example.org") == Throttled(3)


def test_of_many_attempts_at_once_only_the_free_ones_get_through(new_desk: NewDesk, clock: Clock) -> None:
    one, other = new_desk(), new_desk()
    one.run(one.accounts.add(ANN, PASSWORD))
    address = places()
    crowd = [each.accounts.authenticate(ANN, WRONG, next(address)) for each in (one, other) for _ in range(30)]
    found = one.gather(*crowd)
    assert (found.count(None), found.count(Throttled(2))) == (5, 55)
    assert len(one.hasher.verified) + len(other.hasher.verified) == 5


def test_of_many_attempts_from_one_address_only_the_free_ones_get_through(new_desk: NewDesk, clock: Clock) -> None:
    one, other = new_desk(), new_desk()
    crowd = [each.accounts.authenticate(f"{number}@example.org", WRONG, HOME)
             for number in range(30) for each in (one, other)]  # fmt: skip
    found = one.gather(*crowd)
    assert (found.count(None), found.count(Throttled(2))) == (20, 40)


def test_a_restart_begins_nothing_anew(new_desk: NewDesk, clock: Clock) -> None:
    for _ in range(5):
        assert new_desk().sign_in(ANN, WRONG) is None
    assert new_desk().sign_in() == Throttled(2)


def test_failures_are_forgotten_after_a_day_without_one(one: Desk, clock: Clock) -> None:
    for _ in range(5):
        one.sign_in(ANN, WRONG)
    clock.at += 86_000
    assert one.sign_in(ANN, WRONG) is None
    assert one.sign_in(ANN, WRONG) == Throttled(3)
    clock.at += 86_500
    for _ in range(5):
        assert one.sign_in(ANN, WRONG) is None
    assert one.sign_in(ANN, WRONG) == Throttled(2)


def test_counts_that_are_forgotten_are_removed(
    one: Desk, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.sign_in(ANN, WRONG, "10.0.0.1")
    clock.at += 86_401
    one.sign_in(BEN, WRONG, "10.0.0.2")
    assert len(one.run(ATTEMPTS.all(one.store, "who"))) == 4
    monkeypatch.setattr(throttle, "_counted", itertools.count())
    one.sign_in(BEN, WRONG, "10.0.0.2")
    assert [each.failures for each in one.run(ATTEMPTS.all(one.store, "who"))] == [2, 2]


NETWORKS = [
    ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
    ("2001:db8::1", "2001:0db8:0:0:ffff::2", "2001:db8:0:1::1"),
    ("", "", "127.0.0.1"),
    ("unix:", "unix:", "other:"),
]


def test_addresses_of_one_network_count_together(one: Desk, clock: Clock) -> None:
    for address, same, other in NETWORKS:
        for number in range(20):
            assert one.sign_in(f"{number}@{other}.example", WRONG, address) is None
        assert one.sign_in(address, WRONG, same) == Throttled(2)
        assert one.sign_in(address, WRONG, other) is None


def test_nothing_that_was_typed_is_kept(one: Desk) -> None:
    one.sign_in("my secret password", WRONG, HOME)
    kept = repr(one.run(ATTEMPTS.all(one.store, "who")))
    assert kept.count("Attempts(") == 2
    assert "secret" not in kept and HOME not in kept
