"""The feed of a PostgreSQL database: who gives positions, and who hears of it.

Changes are numbered when somebody wants to know the newest position, by whoever that is: `diptych_number()` is one
statement that commits itself, so there is nothing to clean up after a node that dies. All who ask at the same time in
one process share a round: one that has not begun when they ask sees all that was committed before.

A connection of its own listens for the notice that something was numbered; it says no more than that. It is a help and
not a need: whoever follows the feed also looks by itself now and then.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

import asyncpg

from diptych.asking import ASKER
from diptych.compile.plan import Plan
from diptych.db.feed import Head, Run, head_of
from diptych.db.postgres_writer import BROKEN
from diptych.errors import Code, Refusal

log = logging.getLogger("diptych")
CHANNEL = "diptych_feed"
_MOST = 2_000
"""Changes that are numbered by one statement."""
_PATIENCE = 2.0
"""Seconds after which a round is given up."""
_PAUSE = 0.005
"""Seconds until a round is tried again while another node is at it, at most."""
_HEAD = Plan("SELECT * FROM diptych_head($1::integer)", (), (), columns=5)
_TRIM = Plan("SELECT diptych_trim($1::timestamptz, $2::bigint, $3::integer)", (), ())


class Numbering:
    """Asks for the newest position of one feed."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._one = asyncio.Lock()
        self._next: asyncio.Task[Head] | None = None
        """The round that has not begun."""

    async def head(self) -> Head:
        """The newest position: what was committed before this is numbered."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._round())
            self._next.add_done_callback(_heard)
        return await asyncio.shield(self._next)  # others may wait for the same

    async def _round(self) -> Head:
        ASKER.set("")  # it is for all who wait, and for those who come meanwhile
        async with self._one:
            self._next = None  # who comes from now on may have committed something since
            loop = asyncio.get_running_loop()
            until = loop.time() + _PATIENCE
            while True:
                numbered, *head = await self._run(_HEAD, [_MOST])
                if 0 <= numbered < _MOST:
                    return head_of(head)
                if loop.time() > until:
                    raise Refusal(Code.UNAVAILABLE, "The changes are being numbered; try again.")
                if numbered < 0:
                    await asyncio.sleep(random.uniform(0, _PAUSE))


def _heard(round: asyncio.Task[Head]) -> None:
    """Its failure was heard of by all who waited; if all of them have gone, nobody needs to."""
    if not round.cancelled():
        round.exception()


async def trim(run: Run, before: datetime, rows: int, most: int) -> int:
    """Forget the oldest changes; gives how many."""
    (gone,) = await run(_TRIM, [before, rows, most])
    return int(gone)


class Listening:
    """A connection that hears when something was numbered, made anew when it breaks."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], wake: Callable[[], None]) -> None:
        self._connect = connect
        self._wake = wake
        self.connection: asyncpg.Connection | None = None
        """The one that listens now, if there is one; nothing else uses it."""
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _listen(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            connection: asyncpg.Connection | None = None
            try:
                connection = await self._connect()
                gone = asyncio.Event()
                connection.add_termination_listener(lambda _, gone=gone: gone.set())
                await connection.add_listener(CHANNEL, self._heard)
                self.connection = connection
                pause = _FIRST_PAUSE
                self._wake()  # something may have been numbered while nobody listened
                await gone.wait()
            except (*BROKEN, asyncpg.PostgresError, TimeoutError):
                log.debug("the connection that listens for changes is broken", exc_info=True)
            finally:
                self.connection = None
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LAST_PAUSE)

    def _heard(self, *_: object) -> None:
        self._wake()


_FIRST_PAUSE = 0.1
_LAST_PAUSE = 5.0
"""Seconds between two attempts to listen."""
