"""The feed of PostgreSQL: numbering of changes, and LISTEN for new ones.

Changes are numbered on demand, by the node that asks for the newest position: `diptych_number()` is one statement that
commits itself, so there is nothing to clean up after a node that dies. Concurrent calls in one process share a round:
one that has not begun when they come sees all that was committed before.

A dedicated connection listens for the notices of those who number (`db/notice.py`), unless a relay carries them
(`relay.py`). They only save time: readers of the feed poll it too, by a statement that takes no lock.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

import asyncpg

from diptych.compile.plan import Plan
from diptych.db.feed import Run, head_of
from diptych.db.postgres.sessions import PostgresConnection
from diptych.db.postgres.writer import BROKEN
from diptych.db.store import FeedHead, FeedPeek
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER

log = logging.getLogger("diptych")
CHANNEL = "diptych_feed"
_MOST = 2_000
"""Changes that are numbered by one statement."""
_PATIENCE = 2.0
"""The timeout of a round, in seconds."""
_PAUSE = 0.005
"""Seconds until a round is tried again while another node is at it, at most."""
_HEAD = Plan("SELECT * FROM diptych_head($1::integer)", columns=5)
_RELAYED_HEAD = Plan("SELECT * FROM diptych_relayed_head($1::integer)", columns=6)
_NOTIFY = Plan(f"SELECT 1 FROM pg_notify('{CHANNEL}', $1::text)")
_PEEK = Plan(
    "SELECT h.feed, f.position, f.mark, CASE WHEN f.position IS NOT NULL THEN h.oldest END, (SELECT w.id FROM "
    "diptych_feed w WHERE w.position IS NULL AND w.id > h.settled ORDER BY w.id LIMIT 1) IS NOT NULL "
    "FROM diptych_feed_head h LEFT JOIN LATERAL (SELECT n.position, n.mark FROM diptych_feed n "
    "WHERE n.position IS NOT NULL ORDER BY n.position DESC LIMIT 1) f ON true",
    columns=5,
)
_TRIM = Plan("SELECT diptych_trim($1::timestamptz, $2::bigint, $3::integer)")


class Carrier(Protocol):
    """What carries notices in the place of NOTIFY (`relay.py`)."""

    @property
    def is_up(self) -> bool: ...

    async def publish(self, feed: str, notice: str) -> bool: ...


class Numbering:
    """Numbers the changes of one feed, one round at a time; a relay carries its notices, while there is one."""

    def __init__(self, run: Run, relay: Callable[[], Carrier | None] = lambda: None) -> None:
        self._run = run
        self._relay = relay
        self._one = asyncio.Lock()
        self._next: asyncio.Task[FeedHead] | None = None
        """The round that has not begun."""
        self._rounds: set[asyncio.Task[FeedHead]] = set()
        """All that have not ended: a loop itself keeps no task alive."""

    async def head(self) -> FeedHead:
        """The newest position; all that was committed before the call is numbered."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._round())
            self._rounds.add(self._next)
            self._next.add_done_callback(self._end)
        round = self._next
        try:
            return await asyncio.shield(round)  # others may wait for the same
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if round.cancelled() and not (asking and asking.cancelling()):
                raise Refusal(Code.UNAVAILABLE, "The database is closed.") from None
            raise

    async def close(self) -> None:
        """Cancel the rounds and wait until they have ended; callers that wait for one are refused."""
        rounds = tuple(self._rounds)
        for each in rounds:
            each.cancel()
        await asyncio.gather(*rounds, return_exceptions=True)

    async def _round(self) -> FeedHead:
        CALLER.set("")  # it runs for all who wait
        async with self._one:
            self._next = None  # later calls may have committed something since
            loop = asyncio.get_running_loop()
            until = loop.time() + _PATIENCE
            while True:
                numbered, head = await self._number()
                if 0 <= numbered < _MOST:
                    return head
                if loop.time() > until:
                    raise Refusal(Code.UNAVAILABLE, "The changes are being numbered; try again.")
                if numbered < 0:
                    await asyncio.sleep(random.uniform(0, _PAUSE))

    async def _number(self) -> tuple[int, FeedHead]:
        """Number once: how many, -1 if another node is at it, and the head."""
        relay = self._relay()
        if relay is None or not relay.is_up:
            numbered, *row = await self._run(_HEAD, [_MOST])
            return numbered, head_of(row)
        numbered, *row, notice = await self._run(_RELAYED_HEAD, [_MOST])
        head = head_of(row)
        if notice and not await relay.publish(head.feed, notice):  # it broke meanwhile
            await self._run(_NOTIFY, [notice])
        return numbered, head

    def _end(self, round: asyncio.Task[FeedHead]) -> None:
        """Forget a round, and mark its exception as retrieved: all who waited got it, and there may be none."""
        self._rounds.discard(round)
        if self._next is round:  # cancelled before it began
            self._next = None
        if not round.cancelled():
            round.exception()


async def peek(run: Run) -> FeedPeek:
    """The newest position, and whether something waits to be numbered."""
    *head, is_waiting = await run(_PEEK, [])
    return FeedPeek(head_of(head), bool(is_waiting))


async def trim(run: Run, before: datetime, rows: int, most: int) -> int:
    """Delete the oldest changes, and return how many."""
    (deleted,) = await run(_TRIM, [before, rows, most])
    return int(deleted)


class Listening:
    """A connection that listens for notices of new positions, and reconnects when it breaks.

    While a relay carries them, it stays connected and does not listen.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection]],
        wake: Callable[[], None],
        hear: Callable[[str], None],
    ) -> None:
        self._connect = connect
        self._wake = wake
        self._hear = hear
        self._is_wanted = True
        self._stirred = asyncio.Event()
        self._using = asyncio.Lock()
        self._connection: asyncpg.Connection | None = None
        self._task = asyncio.get_running_loop().create_task(self._listen())

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def ask(self, sql: str, timeout: float) -> Any:
        """The first value of a statement that takes no time. The connection is idle but for this."""
        async with asyncio.timeout(timeout), self._using:
            if self._connection is None:
                raise asyncpg.InterfaceError("the connection is closed")
            return await self._connection.fetchval(sql)

    def want(self, wanted: bool) -> None:
        """Listen from now on, or stop."""
        self._is_wanted = wanted
        self._stirred.set()

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def leave(self, run_of_server: str) -> None:
        """Connect again, if the connection is to another run of the server than this one."""
        connection = self._connection
        if isinstance(connection, PostgresConnection) and connection.run_of_server != run_of_server:
            connection.terminate()

    async def _listen(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            connection: asyncpg.Connection | None = None
            try:
                connection = await self._connect()
                connection.add_termination_listener(lambda _: self._stirred.set())
                self._connection = connection
                await self._follow_wishes(connection)
                pause = _FIRST_PAUSE
            except (*BROKEN, asyncpg.PostgresError, TimeoutError):
                log.debug("the connection that listens for changes is broken", exc_info=True)
            finally:
                self._connection = None
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LAST_PAUSE)

    async def _follow_wishes(self, connection: asyncpg.Connection) -> None:
        """Listen while that is wanted, until the connection ends."""
        listens = False
        while not connection.is_closed():
            if listens != self._is_wanted:
                async with self._using:
                    if self._is_wanted:
                        await connection.add_listener(CHANNEL, self._heard)
                    else:
                        await connection.remove_listener(CHANNEL, self._heard)
                listens = not listens
                if listens:
                    self._wake()  # something may have been numbered while nobody listened
                continue
            await self._stirred.wait()
            self._stirred.clear()

    def _heard(self, _: object, pid: int, channel: str, payload: object) -> None:
        self._hear(str(payload))


_FIRST_PAUSE = 0.1
_LAST_PAUSE = 5.0
"""Seconds between two attempts to listen."""
