"""A connection to PostgreSQL with its prepared statements, the least recently used of which are closed."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

from diptych.db.postgres.sessions import PostgresConnection
from diptych.lru import LRUCache

_STATEMENTS, _STATEMENT_BYTES = 512, 2 << 20
"""Prepared statements of a connection, at most, and bytes of their SQL."""

FORGET = "RESET SESSION AUTHORIZATION; DISCARD TEMP; DISCARD SEQUENCES;"
"""What asyncpg's reset leaves behind of a session: another role, temporary tables, and the last values of sequences."""


class Link:
    """A connection with its prepared statements, and who uses it."""

    __slots__ = ("caller", "connection", "foreign", "protocol", "reads", "settings", "since", "statements", "used")

    def __init__(self, connection: PostgresConnection, settings: str | None) -> None:
        self.connection = connection
        self.protocol: Any = connection._protocol  # type: ignore[attr-defined]  # not in the stubs
        """What asyncpg runs its statements with. It stays when the connection is closed."""
        self.settings = settings
        """The statements that set up its session; None if a pooler shares sessions, which must be left as they were."""
        self.statements: LRUCache[PreparedStatement] = LRUCache("prepared statements", _STATEMENTS, _STATEMENT_BYTES)
        self.used = False
        """Was it in the pool before? Then it may have broken while it was idle."""
        self.caller = ""
        """The caller that holds its permit."""
        self.since = 0.0
        """Since when it is held, by the loop's clock."""
        self.foreign = False
        """Did it run SQL of model code, which may have changed its settings?"""
        self.reads = False
        """Is it used for a read, which can be given up at any time?"""

    async def row(self, sql: str, parameters: Sequence[Any]) -> Any:
        """The one row of a statement, or None."""
        try:
            rows = await self.read(sql, parameters)
        except asyncpg.InvalidCachedStatementError:  # a table was altered: what was prepared is void
            self.statements.clear()
            rows = await self.read(sql, parameters)
        except asyncpg.OutdatedSchemaCacheError:
            connection: Any = self.connection
            await connection.reload_schema_state()
            self.statements.clear()
            raise
        return rows[0] if rows else None

    def read(self, sql: str, parameters: Sequence[Any]) -> Awaitable[Any]:
        """The rows of a statement, one at most; an error if it is void.

        It calls the protocol of asyncpg as `PreparedStatement.fetchrow` does, without four coroutines around it.
        """
        statement: Any = self.statements.get(sql)
        if statement is None:
            return self._prepare_and_read(sql, parameters)
        rows: Awaitable[Any] = self.protocol.bind_execute(statement._state, parameters, "", 1, False, None)
        return rows

    async def _prepare_and_read(self, sql: str, parameters: Sequence[Any]) -> Any:
        statement: Any = await self._prepare(sql)
        return await self.protocol.bind_execute(statement._state, parameters, "", 1, False, None)

    async def read_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> Any:
        """All rows of a statement that runs several times, sent in one go; an error if it is void."""
        statement: Any = self.statements.get(sql) or await self._prepare(sql)
        return await self.protocol.bind_execute_many(statement._state, parameters, "", None, True)

    async def rows(self, sql: str, parameters: Sequence[Sequence[Any]]) -> Any:
        """Run a statement that changes something once for each set of parameters; return its rows."""
        statement = self.statements.get(sql)
        if statement is None:
            statement = await self._prepare(sql)
        try:
            return await statement.fetchmany(parameters)
        except asyncpg.InvalidCachedStatementError:
            self.statements.clear()
            statement = await self._prepare(sql)
            return await statement.fetchmany(parameters)

    async def _prepare(self, sql: str) -> PreparedStatement:
        statement = await self.connection.prepare(sql)
        self.statements.put(sql, statement, len(sql))
        return statement

    async def clean(self) -> None:
        """Reset it: end what is under way, roll back, and restore the settings."""
        connection: Any = self.connection
        await self.protocol._wait_for_cancellation()
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")
        if self.foreign and self.settings is not None:
            await connection.reset()
            await connection.execute(FORGET + self.settings)
        self.foreign = False
