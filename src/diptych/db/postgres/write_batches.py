"""Batches of creations: each is a change by itself, and they share a commit, as those of SQLite do.

A row in the answer is that of the step with its id. A step without one changed nothing: it runs by itself, which finds
out why. If one of them fails, PostgreSQL rolls back all, and each runs by itself. If the connection breaks, the outcome
of each is found by looking for its row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
from msgspec import Struct

from diptych.db.postgres.batches import Statement, StatementBatches
from diptych.db.postgres.link import Link
from diptych.db.postgres.pool import Pool
from diptych.db.postgres.sessions import PostgresConnection
from diptych.db.script import Step


class Lost(Struct, frozen=True, eq=False):
    """The answer to a step whose outcome is not known: the connection that broke."""

    connection: PostgresConnection


class WriteBatches(StatementBatches[Step]):
    """The creations of one pool."""

    __slots__ = ()
    fast = 0.05
    budget = 0.4

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, "runs of creations")

    async def _answers(self, statement: Statement[Step], link: Link, work: Sequence[Step]) -> Sequence[Any]:
        try:
            rows = await link.read_many(statement.sql, [step.parameters for step in work])
        except asyncpg.InvalidCachedStatementError:  # a table was altered: what was prepared is void
            link.statements.clear()
            raise
        except (asyncpg.PostgresError, asyncpg.DataError) as error:
            if not link.protocol.is_connected() or isinstance(error, asyncpg.PostgresConnectionError):
                return self._lost(link, work)
            raise  # all of it was rolled back
        except (Exception, asyncio.CancelledError):
            return self._lost(link, work)
        made = {str(row[0]): row for row in rows}
        return [made.get(step.makes) for step in work]

    @staticmethod
    def _lost(link: Link, work: Sequence[Step]) -> Sequence[Any]:
        link.connection.terminate()
        return [Lost(link.connection)] * len(work)
