"""PostgreSQL, by asyncpg. A broken connection is replaced by the next request that needs one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import asyncpg

from diptych.asking import ASKER
from diptych.compile.catalogue import Catalogue
from diptych.compile.dialect import POSTGRES
from diptych.compile.differences import Difference
from diptych.compile.fragment import identifier
from diptych.compile.plan import MAX_ANSWER, Plan, too_long
from diptych.compile.tables import catch_up
from diptych.db import feed
from diptych.db.catalogue import postgres_catalogue
from diptych.db.feed_postgres import Listening, Numbering, trim
from diptych.db.fitting import Fitted, Fitting, fit, look
from diptych.db.pool import Pool
from diptych.db.postgres_writer import BROKEN, STORE, ForeignSession, change, open_session, write
from diptych.db.script import Row, Script, Step
from diptych.db.store import KeyRow, insert_statement, insert_values
from diptych.db.write_health import Probe
from diptych.errors import Code, Refusal, StartError
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import INTEGER_ID

T = TypeVar("T")
_LOCK = 7_361_220_471
"""The advisory lock under which one of several nodes makes the tables."""
_PARTS = """
    SELECT relname::text, NULL FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname ~ '^diptych_'
    UNION ALL SELECT proname || '()', CASE WHEN proconfig IS NULL
      OR 'search_path=' || quote_ident(current_schema()) || ', pg_temp' = ANY (proconfig) THEN prosrc END
    FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname ~ '^diptych_'
    UNION ALL SELECT t.tgname || ' on ' || c.relname, NULL FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND t.tgname ~ '^!?diptych_'
"""
"""What is there besides the tables of the model: `diptych_keys`, `diptych_touch()`, `diptych_touch on users`. A
function that looks for tables in another schema (this one had another name) is not what it should be."""

_SETTINGS = """
    SET jit = off; SET statement_timeout = {}; SET lock_timeout = 2000; SET idle_in_transaction_session_timeout = 10000;
    SET TimeZone = 'UTC'; SET standard_conforming_strings = on; SET default_transaction_isolation = 'read committed'
"""
"""What every session sets first. As start-up parameters, a PgBouncer with its own defaults would refuse them."""
_ENDED = (
    asyncpg.AdminShutdownError, asyncpg.ConnectionDoesNotExistError, asyncpg.InterfaceError, asyncpg.InternalClientError
)
"""What a new connection raises whose backend is ended while its session is set up."""
_CONNECTS = 3
"""Attempts to connect, if that happens. A server that takes no connections is not asked again."""


class PostgresStore:
    """A PostgreSQL database, by its URL."""

    dialect = POSTGRES
    numbers = True
    look_every = 0.5

    def __init__(
        self, url: str, *, size: int = 10, timeout: float = 5.0, wait: float = 5.0, waiting: int = 1_000
    ) -> None:
        self.url = url
        self.timeout = timeout
        self._settings = _SETTINGS.format(int(timeout * 1000))
        self._size = size
        self._wait = wait
        self._waiting = waiting
        self._pool: Pool | None = None
        self._wake: Callable[[], None] | None = None
        self._numbering: Numbering | None = None
        self._listening: Listening | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._probing: Probe | None = None

    @property
    def places(self) -> int:
        return self._size

    async def open(self, model: Model, *, add_columns: bool = False, accept: bool = False) -> Fitted:
        try:
            connection = await self._connect()
            try:
                fitted = await self._prepare(connection, model, add_columns, accept)
            except BaseException:
                await connection.close()
                raise
        except _UNOPENED as error:
            raise _unopened(error) from None
        self._pool = Pool(self._connect, self._size, self._wait, self._waiting, self._settings)
        self._pool.add(connection)
        self._probing = Probe(self._pool.health, self.write)
        self._numbering = Numbering(self.run)
        return fitted

    async def _prepare(self, connection: asyncpg.Connection, model: Model, add: bool, accept: bool) -> Fitted:
        """Make the tables, or hold them against the model; one of several nodes at a time."""
        encoding = connection.get_settings().server_encoding
        if encoding != "UTF8":
            raise StartError(f"The PostgreSQL database is encoded in {encoding}, and must be in UTF8.")
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'")
            await connection.execute("SELECT pg_advisory_xact_lock($1::bigint)", _LOCK)
            have = await postgres_catalogue(connection)
            parts = {name: text for name, text in await connection.fetch(_PARTS)}
            return await _drive(connection, fit(model, have, parts, "postgres", add=add, accept=accept))

    async def close(self) -> None:
        self._wake = None
        if self._listening is not None:
            await self._listening.close()
            self._listening = None
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def catalogue(self) -> Catalogue:
        return await self._reading(postgres_catalogue)

    async def look(self, model: Model) -> list[Difference]:
        async def compared(connection: asyncpg.Connection) -> list[Difference]:
            have = await postgres_catalogue(connection)
            await connection.execute("SET statement_timeout = 0")
            return await _drive(connection, look(model, have, "postgres"))

        return await self._reading(compared)

    async def _reading(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do something with a connection of its own that changes nothing."""
        try:
            connection = await self._connect()
            try:
                async with connection.transaction(readonly=True):
                    return await work(connection)
            finally:
                await connection.close()
        except _UNOPENED as error:
            raise _unopened(error) from None

    @property
    def pool(self) -> Pool:
        """The connections of an open store."""
        if self._pool is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        return self._pool

    async def _connect(self, name: str = "diptych") -> asyncpg.Connection:
        """A new connection; another one, if its backend is ended while its session is set up."""
        for _ in range(_CONNECTS - 1):
            try:
                return await self._connect_once(name)
            except _ENDED:
                continue
        return await self._connect_once(name)

    async def _connect_once(self, name: str) -> asyncpg.Connection:
        # without a cache of its own, asyncpg has the server parse a prepared statement anew for every run
        connection = await asyncpg.connect(
            self.url, server_settings={"application_name": name}, statement_cache_size=16, timeout=5
        )
        try:
            await connection.execute(self._settings, timeout=5)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def cautions(self) -> list[str]:
        return []

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        pool = self.pool
        try:
            while True:
                link = await pool.take()
                try:
                    row = await link.row(plan.sql, parameters)
                    return (None,) if row is None else _bounded(row)
                except (asyncpg.QueryCanceledError, asyncpg.DataError):
                    raise
                except BROKEN:
                    link.connection.terminate()
                    if not link.used:
                        raise
                    # it broke while it was idle: a read can be sent again
                finally:
                    pool.give(link)
        except asyncpg.QueryCanceledError as error:
            raise Refusal(Code.TIMEOUT, "The request took too long.") from error
        except asyncpg.DataError:
            raise
        except asyncpg.ProgramLimitExceededError as error:  # no text has more than a gigabyte
            raise too_long() from error
        except (*BROKEN, *STORE, TimeoutError) as error:
            raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error

    async def write(self, script: Callable[[], Script[T]], locks: str = "") -> T:
        result = await write(self.pool, script, locks)
        self._changed()
        return result

    async def change(self, step: Step, found: Callable[[], Step]) -> Row:
        row = await change(self.pool, step, found)
        if row is not None:
            self._changed()
        return row

    async def session(self, *, reading: bool = False) -> ForeignSession:
        if reading:
            return await open_session(self.pool, "BEGIN READ ONLY")
        return await open_session(self.pool, "BEGIN", self._changed)

    # the feed

    async def head(self) -> feed.Head:
        if self._numbering is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        return await self._numbering.head()

    async def mark_at(self, position: int) -> int | None:
        return await feed.mark_at(self.run, "postgres", position)

    async def touched(self, after: int, upto: int, most: int) -> list[tuple[str, str]] | None:
        return await feed.touched(self.run, "postgres", after, upto, most)

    async def trim(self, before: datetime, rows: int, most: int = 1000) -> int:
        return await trim(self.run, before, rows, most)

    def on_commit(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake
        if wake is not None and self._listening is None:
            self._listening = Listening(lambda: self._connect("diptych listens"), self._committed)

    def _changed(self) -> None:
        self.pool.health.worked()
        self._committed()

    def _committed(self) -> None:
        if self._wake is not None:
            self._wake()

    async def ping(self) -> None:
        """Whoever asks at the same time shares one answer, so that asking often costs nothing."""
        if self._pinging is None:
            self._pinging = asyncio.get_running_loop().create_task(self._ping())
            self._pinging.add_done_callback(self._pinged)
        await asyncio.shield(self._pinging)
        if self._probing is not None:
            self._probing.check()

    async def _ping(self) -> None:
        """By the connection that listens, which has nothing else to do: however long the line is, this is not in it."""
        ASKER.set("")
        idle = self._listening.connection if self._listening is not None else None
        if idle is None or idle.is_closed():
            await self.run(Plan("SELECT NULL::bytea", (), ()), ())
            return
        try:
            await idle.fetchval("SELECT 1", timeout=self._wait)
        except (*BROKEN, TimeoutError, asyncpg.PostgresError) as error:
            raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error

    def _pinged(self, done: asyncio.Task[None]) -> None:
        self._pinging = None
        if not done.cancelled():
            done.exception()  # all who waited have heard of it

    # keys and sample data

    async def keys(self, kind: str) -> list[KeyRow]:
        link = await self.pool.take()
        connection = link.connection
        try:
            rows = await connection.fetch(
                "SELECT kid, kind, secret, created_at FROM diptych_keys WHERE kind = $1", kind
            )
            return [KeyRow(*row) for row in rows]
        finally:
            self.pool.give(link)

    async def add_key(self, row: KeyRow) -> None:
        link = await self.pool.take()
        connection = link.connection
        try:
            await connection.execute(
                "INSERT INTO diptych_keys (kid, kind, secret, created_at) VALUES ($1, $2, $3, $4) "
                "ON CONFLICT DO NOTHING",
                row.kid, row.kind, row.secret, row.created_at,
            )  # fmt: skip
        finally:
            self.pool.give(link)

    async def is_empty(self, table: str) -> bool:
        link = await self.pool.take()
        connection = link.connection
        try:
            return await connection.fetchval(f"SELECT 1 FROM {identifier(table).text} LIMIT 1") is None
        finally:
            self.pool.give(link)

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        link = await self.pool.take()
        connection = link.connection
        try:
            values = [insert_values(resource, names, row, POSTGRES) for row in rows]
            async with connection.transaction():
                await connection.executemany(insert_statement(resource, names, POSTGRES), values)
                if resource.key is INTEGER_ID:
                    await connection.execute(catch_up(resource))
        finally:
            self.pool.give(link)


async def _drive(connection: asyncpg.Connection, fitting: Fitting[T]) -> T:
    """Run the statements of a fitting, each with the rows of the one before."""
    rows: Sequence[Any] | None = None
    try:
        while True:
            step = fitting.send(rows)  # type: ignore[arg-type]  # a generator begins with None
            rows = await connection.fetch(step.sql, *step.parameters)
    except StopIteration as end:
        return cast(T, end.value)


def _bounded(row: Sequence[bytes | None]) -> Sequence[bytes | None]:
    for answer in row:
        if isinstance(answer, bytes) and len(answer) > MAX_ANSWER:
            raise too_long()
    return row


_UNOPENED = (*BROKEN, asyncpg.PostgresError, ValueError, TimeoutError)


def _unopened(error: BaseException) -> StartError:
    cause = str(error).rstrip(".") or type(error).__name__
    return StartError(f"The PostgreSQL database cannot be opened: {cause}.")
