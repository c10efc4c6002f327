"""Transactions with DDL on PostgreSQL: short waits for locks, and retries.

DDL that waits for the lock of a table holds up everyone who comes after it, readers too. So an attempt waits for a
fraction of a second, gives way, and tries again: behind a long transaction, others go on in between.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

T = TypeVar("T")
_SHORTEST, _LONGEST = 0.1, 2.0
"""Seconds for which the first attempt waits for a lock, and the last ones."""
PATIENCE = 60.0
"""Seconds after which the lock is given up."""


async def patiently(
    connection: asyncpg.Connection, work: Callable[[], Awaitable[T]], patience: float = PATIENCE, *, alone: bool = False
) -> T:
    """Run work in a transaction, again and again until it gets its locks. It must have no effects but its statements.

    With `alone`, it runs without a transaction, as `CREATE INDEX CONCURRENTLY` must.
    """
    end, wait = time.monotonic() + patience, _SHORTEST
    while True:
        try:
            if alone:
                await connection.execute(f"SET statement_timeout = 0; SET lock_timeout = {int(wait * 1000)}")
                return await work()
            async with connection.transaction():
                await connection.execute(
                    f"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {int(wait * 1000)}"
                )
                return await work()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if time.monotonic() >= end:
                raise
        await asyncio.sleep(random.uniform(0.5, 1.5) * wait)
        wait = min(_LONGEST, wait * 1.5)
