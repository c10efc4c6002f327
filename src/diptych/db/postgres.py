"""PostgreSQL, by asyncpg.

Connections are held and handed out last in, first out, with no reset between two requests: a read leaves
nothing behind. Every connection has its own prepared statements. A broken connection is replaced by the next
request that needs one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, cast

import asyncpg

from diptych.compile.dialect import POSTGRES
from diptych.compile.fragment import identifier
from diptych.compile.plan import Plan
from diptych.compile.tables import Column, add_column, create, system_tables
from diptych.db.store import KeyRow, compare, insert_statement, insert_values, is_own
from diptych.errors import Code, Refusal, StartError
from diptych.model.defs import ResourceDef
from diptych.model.model import Model

_BROKEN = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError,
           asyncpg.OperatorInterventionError)  # fmt: skip
"""What is said on a connection that has gone, or is going. (A query that is cancelled is of this kind too.)"""
_LOCK = 7_361_220_471
"""The advisory lock under which one of several nodes makes the tables."""
_COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
      AND a.attnum > 0 AND NOT a.attisdropped
"""


class PostgresStore:
    """A PostgreSQL database, by its URL."""

    dialect = POSTGRES

    def __init__(self, url: str, *, size: int = 10, timeout: float = 5.0, wait: float = 5.0) -> None:
        self.url = url
        self.size = size
        self.timeout = timeout
        self.wait = wait
        self._idle: list[asyncpg.Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open = 0
        self._closed = True

    async def open(self, model: Model, *, add_columns: bool = False) -> None:
        try:
            connection = await self._connect()
            try:
                await self._prepare(connection, model, add_columns)
            except BaseException:
                await connection.close()
                raise
        except (*_BROKEN, asyncpg.PostgresError, ValueError, TimeoutError) as error:
            cause = str(error).rstrip(".") or type(error).__name__
            raise StartError(f"The PostgreSQL database cannot be opened: {cause}.") from None
        self._closed = False
        self._open = 1
        self._idle.append(connection)

    async def _prepare(self, connection: asyncpg.Connection, model: Model, add_columns: bool) -> None:
        """Make the tables, or hold them against the model; one of several nodes at a time."""
        encoding = connection.get_settings().server_encoding
        if encoding != "UTF8":
            raise StartError(f"The PostgreSQL database is encoded in {encoding}, and must be in UTF8.")
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'")
            await connection.execute("SELECT pg_advisory_xact_lock($1::bigint)", _LOCK)
            await self._fit(connection, model, add_columns)

    async def _fit(self, connection: asyncpg.Connection, model: Model, add_columns: bool) -> None:
        have: dict[str, dict[str, Column]] = {}
        for table, column, kind, nullable in await connection.fetch(_COLUMNS):
            if not is_own(table):
                have.setdefault(table, {})[column] = Column(kind, nullable)
        if not any(resource.table in have for resource in model.resources.values()):
            statements = create(model, "postgres")
        else:
            missing = compare(model, have, self, add_columns=add_columns)
            statements = [add_column(model, table, column, "postgres") for table, column in missing]
        for statement in (*system_tables("postgres"), *statements):
            await connection.execute(statement)

    async def close(self) -> None:
        self._closed = True
        for connection in self._idle:
            await connection.close()
        self._idle.clear()
        self._open = 0

    # connections

    async def _connect(self) -> asyncpg.Connection:
        settings = {
            "application_name": "diptych", "jit": "off", "statement_timeout": str(int(self.timeout * 1000)),
            "lock_timeout": "2000", "idle_in_transaction_session_timeout": "10000", "TimeZone": "UTC",
            "standard_conforming_strings": "on",
        }  # fmt: skip
        return await asyncpg.connect(
            self.url, server_settings=settings, statement_cache_size=512, max_cacheable_statement_size=0, timeout=5
        )

    async def _acquire(self) -> asyncpg.Connection:
        while not self._closed:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._open -= 1
            if self._open < self.size:
                self._open += 1
                try:
                    return await self._connect()
                except BaseException as error:
                    self._open -= 1
                    self._wake()
                    if isinstance(error, asyncpg.PostgresError):
                        raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error
                    raise
            await self._wait()
        raise Refusal(Code.UNAVAILABLE, "The database is closed.")

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self.wait):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._wake()  # the turn came too late for this one: it is the next one's
            if isinstance(error, TimeoutError):
                raise Refusal(Code.UNAVAILABLE, "The database is busy.") from None
            raise

    def _release(self, connection: asyncpg.Connection) -> None:
        if connection.is_closed():
            self._open -= 1
        else:
            self._idle.append(connection)
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    # reading

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        try:
            while True:
                fresh = not self._idle
                connection = await self._acquire() if fresh else self._idle.pop()
                try:
                    row = await connection.fetchrow(plan.sql, *parameters)
                    return (None,) if row is None else cast("Sequence[bytes | None]", row)
                except (asyncpg.QueryCanceledError, asyncpg.DataError):
                    raise
                except _BROKEN:
                    connection.terminate()
                    if fresh:
                        raise
                    # it broke while it was idle: a read can be sent again
                finally:
                    self._release(connection)
        except asyncpg.QueryCanceledError as error:
            raise Refusal(Code.TIMEOUT, "The request took too long.") from error
        except asyncpg.DataError:
            raise
        except (*_BROKEN, TimeoutError, asyncpg.InsufficientResourcesError) as error:
            raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error

    async def ping(self) -> None:
        await self.run(Plan("SELECT NULL::bytea", (), ()), ())

    # keys and sample data

    async def keys(self, kind: str) -> list[KeyRow]:
        connection = await self._acquire()
        try:
            rows = await connection.fetch(
                "SELECT kid, kind, secret, created_at FROM diptych_keys WHERE kind = $1", kind
            )
            return [KeyRow(*row) for row in rows]
        finally:
            self._release(connection)

    async def add_key(self, row: KeyRow) -> None:
        connection = await self._acquire()
        try:
            await connection.execute(
                "INSERT INTO diptych_keys (kid, kind, secret, created_at) VALUES ($1, $2, $3, $4) "
                "ON CONFLICT DO NOTHING",
                row.kid, row.kind, row.secret, row.created_at,
            )  # fmt: skip
        finally:
            self._release(connection)

    async def is_empty(self, table: str) -> bool:
        connection = await self._acquire()
        try:
            return await connection.fetchval(f"SELECT 1 FROM {identifier(table).text} LIMIT 1") is None
        finally:
            self._release(connection)

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        connection = await self._acquire()
        try:
            values = [insert_values(resource, names, row, POSTGRES) for row in rows]
            await connection.executemany(insert_statement(resource, names, POSTGRES), values)
        finally:
            self._release(connection)
