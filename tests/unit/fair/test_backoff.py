"""How long to wait before the next attempt."""

from __future__ import annotations

from diptych.fair.backoff import Backoff


def test_it_grows_within_its_jitter_up_to_a_bound() -> None:
    backoff = Backoff(first=1.0, factor=4.0, longest=900.0)
    for attempts in range(1, 40):
        plain = min(900.0, 4.0 ** (attempts - 1))
        assert all(0.69 * plain < backoff.delay(attempts) < 1.31 * plain for _ in range(20))
    assert len({backoff.delay(1) for _ in range(20)}) > 1, "what failed together is not tried again together"
