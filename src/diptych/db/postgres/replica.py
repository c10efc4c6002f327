"""A standby of PostgreSQL: its pool, and a probe that tells whether it answers and how far it has replayed.

One that fails is left out at once, and used again when a probe succeeds. A probe that gets no answer ends all that runs
there, so a server that hangs holds nobody up for longer than the probe waits.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from diptych.db.postgres.link import Link
from diptych.db.postgres.pool import Pool
from diptych.db.postgres.sessions import Connector, PostgresConnection
from diptych.db.postgres.writer import BROKEN
from diptych.db.store import ReplicaState
from diptych.errors import Refusal

log = logging.getLogger("diptych")
_EVERY = 0.25
"""Seconds between two probes."""
_PATIENCE = 1.0
"""Seconds after which a standby that does not answer is left out."""
_LEARNED = 0.005
"""Seconds after which a standby may have replayed more than it is known to."""
_PROBE = """
SELECT pg_is_in_recovery(),
  (SELECT position FROM diptych_feed WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1),
  CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
    ELSE coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) END::float8
"""


class Replica:
    """One standby."""

    def __init__(self, url: str, connector: Connector, size: int, wait: float, waiting: int) -> None:
        self.name = name_of(url)
        self.is_up = False
        self.reads = 0
        """How many reads it has answered."""
        self._position = 0
        self._learned = 0.0
        self._lag = 0.0
        self._connector = connector
        self._pool = Pool(connector.connect, size, wait, waiting, connector.set_up)
        self._busy: set[Link] = set()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._watch())
        self._is_known_lost = False

    @property
    def state(self) -> ReplicaState:
        return ReplicaState(self.name, self.is_up, self._lag, self._position, self.reads)

    def may_have(self, position: int, now: float) -> bool:
        """Has the replica replayed this position of the feed, or may it have by now?

        No while others wait for its connections.
        """
        if self._pool.semaphore.waiting:
            return False
        return self._position >= position or now - self._learned > _LEARNED

    def learn(self, position: int) -> None:
        """Note the newest position that it has."""
        self._position, self._learned = position, self._loop.time()

    async def read(self, sql: str, parameters: Sequence[Any]) -> Any:
        """The one row of a statement. An error of the connection leaves the standby out."""
        try:
            link = self._pool.take_nowait() or await self._pool.take()
        except (*BROKEN, TimeoutError, Refusal) as error:
            if self._pool.is_unreachable:
                self._fail(error)
            raise
        self._busy.add(link)
        try:
            return await link.row(sql, parameters)
        except asyncpg.QueryCanceledError:
            raise
        except BROKEN as error:
            link.connection.terminate()
            self._fail(error)
            raise
        finally:
            self._busy.discard(link)
            self._pool.give(link)

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._pool.close()

    async def _watch(self) -> None:
        """Probe it, for ever."""
        while True:
            connection: PostgresConnection | None = None
            try:
                async with asyncio.timeout(_PATIENCE):
                    connection = await self._connector.connect()
                while True:
                    async with asyncio.timeout(_PATIENCE):
                        ((is_standby, position, lag),) = await connection.fetch(_PROBE)
                    if not is_standby:
                        raise _NoStandby("it is no standby")
                    self._rise(position or 0, lag)
                    await asyncio.sleep(_EVERY)
            except (*BROKEN, asyncpg.PostgresError, TimeoutError, ValueError) as error:
                self._fail(error)
                self._end_all()
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(random.uniform(_EVERY, 2 * _EVERY))

    def _rise(self, position: int, lag: float) -> None:
        self.learn(position)
        self._lag = lag
        if self._is_known_lost:
            log.warning("the replica %s is back", self.name)
        self.is_up, self._is_known_lost = True, False

    def _fail(self, error: BaseException) -> None:
        self.is_up = False
        if not self._is_known_lost:
            self._is_known_lost = True
            log.warning("the replica %s is left out: %s", self.name, str(error) or type(error).__name__)

    def _end_all(self) -> None:
        """End what runs there: it would wait for a server that does not answer."""
        for link in self._busy:
            link.connection.terminate()
        self._pool.terminate_free()


class _NoStandby(ValueError):
    """The server follows no other one."""


def name_of(url: str) -> str:
    """The hosts of an address, for metrics and the log: no user and no password."""
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2]
    return hosts or ",".join(parse_qs(parts.query).get("host", ["?"]))
