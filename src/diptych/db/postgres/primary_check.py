"""The check that a primary answers: concurrent calls share it, so that frequent health checks cost nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from diptych.compile.plan import Plan
from diptych.db.postgres.channel import NoticeChannel
from diptych.db.postgres.writer import BROKEN
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER

_IS_STANDBY = Plan("SELECT CASE WHEN pg_is_in_recovery() THEN ''::bytea END")


class PrimaryCheck:
    """The health check of one store; its timeout is in seconds."""

    def __init__(
        self,
        run: Callable[[Plan, Sequence[Any]], Awaitable[Sequence[bytes | None]]],
        channel: NoticeChannel,
        timeout: float,
    ) -> None:
        self._run = run
        self._channel = channel
        self._timeout = timeout
        self._asking: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """A Refusal if it does not answer, or is a standby."""
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        await asyncio.shield(self._asking)

    async def check_if_listening(self) -> None:
        """Check the primary through the listening connection, if there is one: all others may be in use."""
        if self._channel.listening is not None and self._channel.listening.is_connected:
            await self.check()

    async def _ask(self) -> None:
        """Use the connection that listens, which is idle, so that a health check never waits for the pool."""
        CALLER.set("")
        idle = self._channel.listening
        if idle is None or not idle.is_connected:
            _refuse_standby((await self._run(_IS_STANDBY, ()))[0] is not None)
            return
        try:
            _refuse_standby(await idle.ask("SELECT pg_is_in_recovery()", self._timeout))
        except (*BROKEN, TimeoutError, asyncpg.PostgresError) as error:
            raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error

    def _asked(self, done: asyncio.Task[None]) -> None:
        self._asking = None
        if not done.cancelled():
            done.exception()  # mark it as retrieved


def _refuse_standby(is_standby: bool) -> None:
    """Refuse a server that only follows another one: after a fail-over, the address may lead to a standby."""
    if is_standby:
        raise Refusal(Code.UNAVAILABLE, "The database takes no changes: it is a standby.")
