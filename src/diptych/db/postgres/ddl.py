"""Transactions with DDL on PostgreSQL: short waits for locks, and retries.

DDL that waits for the lock of a table holds up everyone who comes after it, readers too. So an attempt waits for a
tenth of a second, gives way, and tries again when no transaction is old any more: behind a long one, others go on.
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
"""Seconds for which an attempt waits for a lock, and one of the last attempts, when half of the patience is over."""
_LOOK_EVERY, _LOOKS = 0.05, 20
"""Seconds between two looks for old transactions, and how many there are before an attempt is made anyway."""
_OLD = """
    SELECT EXISTS (SELECT FROM pg_stat_activity AS a
      WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
        AND a.xact_start < clock_timestamp() - interval '30 ms'
        AND EXISTS (SELECT FROM pg_locks AS l
          WHERE l.pid = a.pid AND l.granted AND l.locktype = 'relation' AND l.relation >= 16384))
"""
"""Does someone hold a lock of a table for longer than a request takes? (Of other roles, only a monitor may see it.)"""
PATIENCE = 60.0
"""Seconds after which the lock is given up."""


async def patiently(
    connection: asyncpg.Connection,
    work: Callable[[], Awaitable[T]],
    patience: float = PATIENCE,
    *,
    alone: bool = False,
    gently: bool = False,
) -> T:
    """Run work in a transaction, again and again until it gets its locks. It must have no effects but its statements.

    With `alone`, it runs without a transaction, as `CREATE INDEX CONCURRENTLY` must; nobody waits behind that, so it
    waits for as long as there is patience. With `gently`, old transactions are waited for before the first attempt too.
    """
    end, wait = time.monotonic() + patience, _SHORTEST
    if gently and not alone:
        await _let_pass(connection)
    while True:
        try:
            if alone:
                left = max(1, int((end - time.monotonic()) * 1000))
                await connection.execute(f"SET statement_timeout = 0; SET lock_timeout = {left}")
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
        await _let_pass(connection)
        if time.monotonic() > end - patience / 2:
            wait = min(_LONGEST, wait * 1.5)


async def _let_pass(connection: asyncpg.Connection) -> None:
    """Wait for transactions that are old already, for a second at most."""
    for _ in range(_LOOKS):
        if not await connection.fetchval(_OLD):
            return
        await asyncio.sleep(_LOOK_EVERY)
