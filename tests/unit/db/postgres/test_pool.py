"""A caller does not wait long for a server that does not answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from diptych.db.postgres.pool import Pool
from diptych.db.postgres.sessions import PostgresConnection
from diptych.errors import Refusal


class Fake:
    """A connection that is never used, and its protocol."""

    @property
    def _protocol(self) -> Fake:
        return self

    def is_connected(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    async def close(self, timeout: float) -> None:
        """It was never open."""


@pytest.mark.slow
def test_callers_are_refused_at_once_while_the_attempt_goes_on() -> None:
    async def work() -> None:
        answers, tries = asyncio.Event(), 0

        async def connect() -> PostgresConnection:
            nonlocal tries
            tries += 1
            await answers.wait()
            return cast(PostgresConnection, Fake())

        pool = Pool(connect, 3, 5.0)
        begun = time.monotonic()
        taken = await asyncio.gather(*(asyncio.create_task(pool.take()) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(each, Refusal) for each in taken), taken
        assert time.monotonic() - begun < 4, "all wait for one attempt at most"
        begun = time.monotonic()
        with pytest.raises(Refusal):
            await asyncio.create_task(pool.take())
        assert time.monotonic() - begun < 0.5, "while one tries, others are refused at once"
        answers.set()
        await asyncio.sleep(0.05)
        before = tries
        link = await asyncio.create_task(pool.take())
        assert tries == before, "what was made meanwhile is used"
        assert isinstance(cast(Any, link.connection), Fake)
        await pool.close()

    asyncio.run(work())


def test_a_server_that_is_back_is_used_by_the_next_caller() -> None:
    async def work() -> None:
        is_there = False

        async def connect() -> PostgresConnection:
            if not is_there:
                raise OSError("refused")
            return cast(PostgresConnection, Fake())

        pool = Pool(connect, 3, 5.0)
        for _ in range(3):
            with pytest.raises(OSError, match="refused"):
                await asyncio.create_task(pool.take())
        is_there = True
        await asyncio.create_task(pool.take())
        await pool.close()

    asyncio.run(work())
