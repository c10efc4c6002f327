"""When a job is tried again."""

from __future__ import annotations

from diptych.jobs.backoff import FIRST, delay


def test_it_grows_within_its_jitter_up_to_a_bound() -> None:
    for attempts in range(1, 40):
        plain = min(900.0, FIRST * 4.0 ** (attempts - 1))
        assert all(0.69 * plain < delay(attempts) < 1.31 * plain for _ in range(20))


def test_a_function_can_say_when() -> None:
    assert (delay(3, 30), delay(3, 0), delay(3, -5)) == (30, 0, 0)
