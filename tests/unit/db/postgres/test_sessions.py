"""Addresses with several hosts, and the first of them that is fit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from diptych.db.postgres.sessions import PostgresConnection, first_of, hosts_of
from tests.support.cases import cases

HOSTS = {
    "postgresql://app@a/tasks": [{"host": "a"}],
    "postgresql://app:pw@a:1,b:2/tasks?target_session_attrs=read-write": [
        {"host": "a", "port": 1},
        {"host": "b", "port": 2},
    ],
    "postgresql://app@[::1]:5433/tasks": [{"host": "::1", "port": 5433}],
    "postgresql://app@/tasks?host=a,::1&port=5432,5433": [{"host": "a", "port": 5432}, {"host": "::1", "port": 5433}],
    "postgresql:///tasks?host=/one,/two&port=1,2": [{"host": "/one", "port": 1}, {"host": "/two", "port": 2}],
    "postgresql:///tasks?host=/one,/two": [{"host": "/one"}, {"host": "/two"}],
    "postgresql:///tasks": [],
}


@cases("url", list(HOSTS))
def test_the_hosts_of_an_address(url: str) -> None:
    assert hosts_of(url) == HOSTS[url]


class Fake:
    """A connection that knows whether it was closed."""

    def __init__(self) -> None:
        self.is_terminated = False

    def terminate(self) -> None:
        self.is_terminated = True


def attempt(after: float, result: Any) -> Callable[[], Awaitable[PostgresConnection]]:
    async def work() -> PostgresConnection:
        await asyncio.sleep(after)
        if isinstance(result, Exception):
            raise result
        return cast(PostgresConnection, result)

    return work


def test_a_host_that_does_not_answer_delays_the_next_for_a_moment_only() -> None:
    fit, late = Fake(), Fake()
    begun = time.monotonic()
    assert asyncio.run(first_of([attempt(60, late), attempt(0, fit)])) is cast(Any, fit)
    assert time.monotonic() - begun < 5


def test_the_next_host_is_tried_at_once_after_one_that_refuses() -> None:
    fit = Fake()
    assert asyncio.run(first_of([attempt(0, OSError("refused")), attempt(0, fit)])) is cast(Any, fit)
    with pytest.raises(ValueError, match="b"):
        asyncio.run(first_of([attempt(0, OSError("a")), attempt(0, ValueError("b"))]))


def test_a_connection_that_comes_second_is_closed() -> None:
    async def work() -> None:
        first, second = Fake(), Fake()

        async def stubborn() -> PostgresConnection:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return cast(PostgresConnection, second)
            raise AssertionError

        assert await first_of([stubborn, attempt(0, first)]) is cast(Any, first)
        await asyncio.sleep(0.01)
        assert (first.is_terminated, second.is_terminated) == (False, True)

    asyncio.run(work())
