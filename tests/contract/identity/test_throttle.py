"""How often someone may try: a few failures are free, then each doubles the time to wait."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from diptych.identity import devices, throttle
from diptych.identity.devices import Devices
from diptych.identity.records import ATTEMPTS, Account, unix_time
from diptych.identity.throttle import Throttled
from tests.contract.identity.desk import ANN, BEN, HOME, PASSWORD, WRONG, Desk, NewDesk

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
    monkeypatch.setattr(throttle, "unix_time", found)
    return found


@pytest.fixture(autouse=True)
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt but the first removes old counts."""
    monkeypatch.setattr(throttle, "_counted", itertools.count(1))


def places() -> Iterator[str]:
    """An address that nobody had before."""
    return (f"10.0.{number // 250}.{number % 250}" for number in itertools.count())


def test_each_failure_of_an_account_from_an_address_doubles_the_time_to_wait(one: Desk, clock: Clock) -> None:
    for number, seconds in enumerate(WAITS, 1):
        assert one.sign_in(ANN, WRONG) is None, number
        if seconds:
            clock.at += seconds
            assert one.sign_in(ANN, WRONG) == Throttled(1), number
            clock.at += 1  # moments are whole seconds, and nobody waits less than is said
    assert len(one.hasher.verified) == len(WAITS)


def test_it_is_told_how_long_to_wait(one: Desk, clock: Clock) -> None:
    for _ in range(5):
        assert one.sign_in(ANN, WRONG) is None
    assert one.sign_in(ANN, WRONG) == Throttled(2)
    clock.at += 2
    for seconds in (3, 5, 9):
        assert one.sign_in(ANN, WRONG) is None
        assert one.sign_in(ANN, WRONG) == Throttled(seconds)
        clock.at += seconds


# nobody keeps anyone else signed out


def test_failures_from_elsewhere_do_not_keep_the_owner_out(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    address = places()
    for _ in range(8):
        one.sign_in(ANN, WRONG, "203.0.113.9")
    for _ in range(80):
        assert one.sign_in(ANN, WRONG, next(address)) is None
    assert isinstance(one.sign_in(), Account)


def test_guesses_from_very_many_addresses_are_few_and_the_owner_comes_in_from_a_known_place(
    one: Desk, clock: Clock
) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    assert isinstance(one.sign_in(), Account)
    address = places()
    assert isinstance(one.sign_in(ANN, PASSWORD, "198.51.100.1"), Account)
    one.hasher.verified.clear()
    found = [one.sign_in(ANN, WRONG, next(address)) for _ in range(300)]
    assert (found.count(None), found.count(Throttled(2))) == (100, 200)
    assert len(one.hasher.verified) == 100
    assert one.sign_in(ANN, PASSWORD, "203.0.113.1") == Throttled(2), "an unknown place waits"
    assert isinstance(one.sign_in(), Account), "a known address does not"
    browser = one.run(one.accounts.authenticate(ANN, PASSWORD, "203.0.113.1", "a browser"))
    assert isinstance(browser, Account), "and neither does a known browser, wherever it is"
    assert one.sign_in(ANN, WRONG, next(address)) == Throttled(2), "who comes in ends nothing for those who guess"
    clock.at += 31 * 86_400
    for _ in range(101):
        one.sign_in(ANN, WRONG, next(address))
    assert one.sign_in() == Throttled(2), "an address is known for 30 days"


def test_a_known_browser_has_a_count_of_its_own(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    for number in range(20):
        one.sign_in(f"{number}@example.org", WRONG)
    assert one.sign_in() == Throttled(2), "its address must wait"

    def by_browser(password: str, name: str = "a browser") -> Any:
        return one.run(one.accounts.authenticate(ANN, password, HOME, name))

    for _ in range(5):
        assert by_browser(WRONG) is None
    assert by_browser(PASSWORD) == Throttled(2)
    assert isinstance(by_browser(PASSWORD, "another"), Account)
    clock.at += 2
    assert isinstance(by_browser(PASSWORD), Account)
    assert by_browser(WRONG) is None
    assert isinstance(by_browser(PASSWORD), Account)


def test_the_mark_of_a_browser_is_of_one_account_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Devices(b"secret")
    cookie = one.renewed("", ANN)
    name = one.name(cookie, ANN.upper() + " ")
    assert name and one.name(one.renewed(cookie, ANN), ANN) == name, "it keeps its name"
    assert one.name(cookie, BEN) == Devices(b"other").name(cookie, ANN) == one.name("", ANN) == ""
    for odd in (
        "x",
        "..",
        "-",
        name,
        f"{name}.",
        f"{name}.zz.",
        cookie[:-1],
        f"{name}.{'f' * 9}.{cookie[-32:]}",
        "\xff.\xff.\xff",
    ):
        assert one.name(odd, ANN) == ""
    both = one.renewed(cookie, BEN)
    assert one.name(both, ANN) == name and one.name(both, BEN)
    for number in range(5):
        both = one.renewed(both, f"{number}@example.org")
    assert one.name(both, ANN) == "" and len(both) < 200
    monkeypatch.setattr(devices, "unix_time", lambda: unix_time() + devices.LASTS + 1)
    assert one.name(cookie, ANN) == ""


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


def test_success_ends_the_count_of_its_place_and_takes_itself_out_of_the_address(one: Desk, clock: Clock) -> None:
    one.run(one.accounts.add(ANN, PASSWORD))
    for _ in range(4):
        for _ in range(4):
            assert one.sign_in(ANN, WRONG) is None
        assert isinstance(one.sign_in(), Account)
    for _ in range(50):
        assert isinstance(one.sign_in(), Account)
    counts = {each.who.partition(":")[0]: each.failures for each in one.run(ATTEMPTS.all(one.store, "who"))}
    assert counts == {"account": 4, "address": 16, "known": 0}, "the place is known since the first success"
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
    crowd = [each.accounts.authenticate(ANN, WRONG, HOME) for each in (one, other) for _ in range(30)]
    found = one.gather(*crowd)
    assert (found.count(None), found.count(Throttled(2))) == (5, 55)
    assert len(one.hasher.verified) + len(other.hasher.verified) == 5


def test_of_many_attempts_from_one_address_only_the_free_ones_get_through(new_desk: NewDesk, clock: Clock) -> None:
    one, other = new_desk(), new_desk()
    crowd = [
        each.accounts.authenticate(f"{number}@example.org", WRONG, HOME)
        for number in range(30)
        for each in (one, other)
    ]
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


def test_counts_that_are_forgotten_are_removed(one: Desk, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    one.sign_in(ANN, WRONG, "10.0.0.1")
    clock.at += 86_401
    one.sign_in(BEN, WRONG, "10.0.0.2")
    assert len(one.run(ATTEMPTS.all(one.store, "who"))) == 6
    monkeypatch.setattr(throttle, "_counted", itertools.count())
    one.sign_in(BEN, WRONG, "10.0.0.2")
    assert [each.failures for each in one.run(ATTEMPTS.all(one.store, "who"))] == [2, 2, 2]


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
    assert kept.count("Attempts(") == 3
    assert "secret" not in kept and HOME not in kept
