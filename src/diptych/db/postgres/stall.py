"""Finds a primary that hangs: its connections stay open, and nothing is answered.

A kernel acknowledges packets for a process that was stopped, so neither TCP nor the driver ever reports an error. When
callers wait and nothing has been answered for a moment, a probe is sent on the connection that listens, which is idle.
If it is not answered either, the pool refuses reads under way, and all that come, until a new connection succeeds. That
may lead to another server, after a failover. Changes under way are left alone: they may be done as soon as the server
goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

from diptych.db.postgres.pool import Pool
from diptych.db.postgres.sessions import PostgresConnection
from diptych.db.postgres.writer import BROKEN
from diptych.errors import Refusal
from diptych.fair.background import Background

log = logging.getLogger("diptych")
_EVERY = 0.2
"""Seconds without an answer, while callers wait, after which a probe is sent."""
_PATIENCE = 0.5
"""Seconds after which a probe without an answer shows that the server hangs. With twice the time above: within one."""
_POLLS = 8
"""Iterations of the loop that a probe has after its time, to read an answer that is there."""
_PAUSE = 0.2
"""Seconds between two attempts to connect to a server that hangs."""


class StallWatch:
    """Watches the pool of one primary."""

    def __init__(
        self,
        pool: Pool,
        probe: Callable[[], Awaitable[None]],
        connect: Callable[[], Awaitable[PostgresConnection]],
        moved: Callable[[str], None],
    ) -> None:
        self._pool = pool
        self._probe = probe
        self._connect = connect
        self._moved = moved
        """What is called with the run of the server that answers again."""
        self._loop = asyncio.get_running_loop()
        self._background = Background()
        self._background.start(self._watch())

    async def close(self) -> None:
        await self._background.stop()

    async def _watch(self) -> None:
        """Watch, for ever."""
        while True:
            before = self._pool.answered
            await asyncio.sleep(_EVERY)
            if self._is_silent_since(before) and await self._hangs(before):
                await self._wait_out()

    def _is_silent_since(self, before: float) -> bool:
        """Do callers wait, and was none of them answered?"""
        return self._pool.is_busy and self._pool.answered == before

    async def _hangs(self, before: float) -> bool:
        """Does the server answer nothing at all? Not if this process has had no time to hear it."""
        begun = self._loop.time()
        probe = asyncio.ensure_future(self._probe())
        try:
            await asyncio.wait({probe}, timeout=_PATIENCE)
            for _ in range(_POLLS):
                await asyncio.sleep(0)
            if not probe.done():
                return self._is_silent_since(before) and self._loop.time() - begun < 2 * _PATIENCE
            with suppress(Refusal):  # the connection is broken, and the users of the others get that error
                probe.result()
            return False
        finally:
            probe.cancel()

    async def _wait_out(self) -> None:
        """Refuse requests until a connection succeeds."""
        log.warning("The database cannot answer now: it keeps its connections, and answers nothing")
        self._pool.stall()
        try:
            connection = await self._connected()
            self._moved(connection.run_of_server)
            self._pool.go_on(connection.run_of_server)
            connection.terminate()
        finally:
            self._pool.go_on("")

    async def _connected(self) -> PostgresConnection:
        while True:
            try:
                return await self._connect()
            except (*BROKEN, asyncpg.PostgresError, TimeoutError):
                await asyncio.sleep(_PAUSE)
