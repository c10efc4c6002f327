"""Limits of two windows, a short and a long one: what the short one refuses does not count in the long one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from diptych.identity import second_factor
from diptych.identity.mail import limits
from diptych.identity.mail.limits import count_to
from diptych.identity.records import unix_time
from diptych.identity.second_factor import SecondFactor
from diptych.identity.throttle import Throttled
from diptych.identity.totp import PERIOD, code_at
from tests.contract.identity.desk import ANN, BEN, PASSWORD, Desk


@dataclass
class Clock:
    """The time of day, some seconds later."""

    later: int = 0

    def __call__(self) -> int:
        return unix_time() + self.later


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(limits, "unix_time", found)
    monkeypatch.setattr(second_factor, "unix_time", found)
    return found


def test_mails_that_are_not_sent_do_not_end_those_of_the_day(one: Desk, clock: Clock) -> None:
    def asked(email: str, times: int) -> int:
        """How many of these mails are sent."""
        return sum(one.run(one.store.write(lambda: count_to(one.store, email))) for _ in range(times))

    counts = []
    for _ in range(5):
        counts.append(asked(ANN, 12))
        clock.later += 901
    assert counts == [3, 3, 3, 1, 0] and asked(BEN, 1) == 1
    clock.later += 86_400
    assert asked(ANN, 12) == 3


def test_codes_that_nobody_looks_at_do_not_end_those_of_the_day(one: Desk, clock: Clock) -> None:
    factor, account = SecondFactor(one.store, b"secret"), one.run(one.accounts.add(ANN, PASSWORD))

    def tried(code: str) -> str:
        checked = one.run(factor.check(account, code))
        return "late" if isinstance(checked, Throttled) else "right" if checked else "wrong"

    key = one.run(factor.propose(account))
    assert key is not None and one.run(factor.confirm(account, code_at(key, clock() // PERIOD)))
    assert [tried("000000") for _ in range(60)] == ["wrong"] * 5 + ["late"] * 55
    clock.later += 301
    assert tried(code_at(key, clock() // PERIOD)) == "right"
    for _ in range(10):
        assert [tried("000000") for _ in range(6)] == ["wrong"] * 5 + ["late"]
        clock.later += 301
    assert tried(code_at(key, clock() // PERIOD)) == "late"
    clock.later += 86_400
    assert tried(code_at(key, clock() // PERIOD)) == "right"
