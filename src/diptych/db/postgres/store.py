"""The store of PostgreSQL, by asyncpg. A broken connection is replaced by the next request that needs one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

import asyncpg

from diptych.compile.catalogue import Catalogue
from diptych.compile.dialect import POSTGRES
from diptych.compile.differences import Difference
from diptych.compile.plan import MAX_ANSWER, Plan, too_long, too_many_digits
from diptych.compile.tables import catch_up
from diptych.db.catalogue import postgres_catalogue
from diptych.db.feed import Run
from diptych.db.fitting import Fitted, Fitting, fit, look
from diptych.db.freshness import FRESHNESS
from diptych.db.postgres.channel import NoticeChannel, relay_to
from diptych.db.postgres.ddl import patiently
from diptych.db.postgres.feed import Numbering, peek, trim
from diptych.db.postgres.pool import Pool
from diptych.db.postgres.primary_check import PrimaryCheck
from diptych.db.postgres.read_batches import ReadBatches
from diptych.db.postgres.replica import Replica
from diptych.db.postgres.replicas import Replicas
from diptych.db.postgres.sessions import Connector, PoolMode
from diptych.db.postgres.stall import StallWatch
from diptych.db.postgres.write_batches import Lost, WriteBatches
from diptych.db.postgres.writer import (
    BROKEN,
    STORE_ERRORS,
    ForeignSession,
    find_change,
    open_session,
    run_change,
    write,
)
from diptych.db.script import ResultRow, Script, Step
from diptych.db.store import FeedHead, FeedPeek, RelayState, ReplicaState, StoreLoad, insert_plan
from diptych.db.violations import refusal_of
from diptych.db.write_health import Probe
from diptych.errors import Code, Refusal, StartError
from diptych.fair.semaphore import PATIENCE
from diptych.model.declare.roles import NOBODY
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import INTEGER_ID

T = TypeVar("T")
LOCK = 7_361_220_471
"""The advisory lock that lets one node at a time make the tables."""
PARTS = """
    SELECT relname::text, NULL FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname ~ '^diptych_'
    UNION ALL SELECT proname || '()', CASE WHEN proconfig IS NULL
      OR 'search_path=' || quote_ident(current_schema()) || ', pg_temp' = ANY (proconfig) THEN prosrc END
    FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname ~ '^diptych_'
    UNION ALL SELECT t.tgname || ' on ' || c.relname, NULL FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND t.tgname ~ '^!?diptych_'
"""
"""What is there besides the tables of the model: `diptych_keys`, `diptych_touch()`, `diptych_touch on users`. A
function whose search_path is another schema (this one was renamed) counts as outdated."""

_VOID = 20
"""How often a statement is prepared again because a table was altered: a pooler may keep it as it was."""


class PostgresStore:
    """A PostgreSQL database, by its URL."""

    dialect = POSTGRES
    numbers = True
    look_every = 0.5

    def __init__(
        self,
        url: str,
        *,
        size: int = 10,
        timeout: float = 5.0,
        waiting: int = 1_000,
        triggers: bool = True,
        pool_mode: PoolMode = "session",
        direct: str = "",
        relay: Sequence[str] = (),
    ) -> None:
        self._triggers = triggers
        self.url = url
        self.timeout = timeout
        self._connector = Connector(url, timeout, pool_mode, direct)
        self._size = size
        self._waiting = waiting
        self._pool: Pool | None = None
        self._batches: ReadBatches | None = None
        self._write_batches: WriteBatches | None = None
        connector = self._connector
        listens = partial(connector.connect_directly, "diptych listens") if connector.direct else None
        self._channel = NoticeChannel(listens, relay_to(relay))
        self._numbering: Numbering | None = None
        self._watch: StallWatch | None = None
        self._primary = PrimaryCheck(self.run, self._channel, timeout)
        self._probing: Probe | None = None
        self._replicas: Replicas | None = None

    @property
    def places(self) -> int:
        return self._size

    @property
    def load(self) -> StoreLoad:
        pool = self._pool
        if pool is None:
            return StoreLoad(self._size)
        used = self._size - pool.semaphore.free
        return StoreLoad(self._size, used, pool.semaphore.waiting, writable=not pool.health.reason)

    async def open(self, model: Model, *, add_columns: bool = False, accept: bool = False) -> Fitted:
        try:
            connection = await self._connector.connect()
            try:
                await self._connector.check(connection)
                fitted = await self._prepare(connection, model, add_columns, accept)
            except BaseException:
                await connection.close()
                raise
        except UNOPENED as error:
            raise unopened(error) from None
        connector = self._connector
        self._pool = Pool(connector.connect, self._size, PATIENCE, self._waiting, connector.set_up)
        self._pool.acts = bool(model.audited)
        self._pool.add(connection)
        self._batches = ReadBatches(self._pool)
        self._write_batches = None if model.audited else WriteBatches(self._pool)  # one actor for each transaction
        self._probing = Probe(self._pool.health, self.write)
        self._numbering = Numbering(self.run, lambda: self._channel.relay)
        return fitted

    async def _prepare(self, connection: asyncpg.Connection, model: Model, add: bool, accept: bool) -> Fitted:
        """Make the tables, or check them against the model; one node at a time."""
        encoding = connection.get_settings().server_encoding
        if encoding != "UTF8":
            raise StartError(f"The PostgreSQL database is encoded in {encoding}, and must be in UTF8.")

        async def attempt() -> Fitted:
            await connection.execute("SELECT pg_advisory_xact_lock($1::bigint)", LOCK)
            have = await postgres_catalogue(connection)
            parts = {name: text for name, text in await connection.fetch(PARTS)}
            fitting = fit(model, have, parts, "postgres", add=add, accept=accept, triggers=self._triggers)
            return await _drive(connection, fitting)

        return await patiently(connection, attempt)

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()
            self._watch = None
        await self._channel.close()
        if self._replicas is not None:
            await self._replicas.close()
            self._replicas = None
        if self._numbering is not None:
            await self._numbering.close()
            self._numbering = None
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def catalogue(self) -> Catalogue:
        return await self._reading(postgres_catalogue)

    async def look(self, model: Model) -> list[Difference]:
        async def compared(connection: asyncpg.Connection) -> list[Difference]:
            have = await postgres_catalogue(connection)
            await connection.execute("SET LOCAL statement_timeout = 0")
            return await _drive(connection, look(model, have, "postgres"))

        return await self._reading(compared)

    async def _reading(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run work in a read-only transaction, on a connection of its own."""
        try:
            connection = await self._connector.connect()
            try:
                async with connection.transaction(readonly=True):
                    return await work(connection)
            finally:
                await connection.close()
        except UNOPENED as error:
            raise unopened(error) from None

    @property
    def pool(self) -> Pool:
        """The connections of an open store."""
        if self._pool is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        return self._pool

    async def connection(self, name: str) -> asyncpg.Connection:
        """A connection of its own, for who closes it."""
        try:
            return await self._connector.connect_directly(name)
        except UNOPENED as error:
            raise unopened(error) from None

    def cautions(self) -> list[str]:
        return []

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        batches = self._batches
        if batches is None or not plan.batches:
            return await self._run_alone(plan, parameters)
        statement = batches.statement(plan.sql)
        answer = batches.join(statement, parameters)
        if answer is not None and (row := await answer) is not None:
            return _bounded(row)
        begun = statement.begin()
        try:
            return await self._run_alone(plan, parameters)
        finally:
            statement.ran(begun)

    async def _run_alone(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        pool = self.pool if self._pool is None else self._pool
        void = 0
        try:
            while True:
                link = pool.take_nowait() or await pool.take()
                link.reads = True
                try:
                    rows = await link.read(plan.sql, parameters)
                    return _bounded(rows[0]) if rows else (None,)
                except asyncpg.InvalidCachedStatementError:  # a table was altered: what was prepared is void
                    link.statements.clear()
                    void += 1
                    if void > _VOID:
                        raise Refusal(Code.UNAVAILABLE, "The database is being altered; try again.") from None
                except (asyncpg.QueryCanceledError, asyncpg.DataError):
                    raise
                except BROKEN:
                    link.connection.terminate()
                    if not link.used:
                        raise
                    # it broke while it was idle: a read can be sent again
                finally:
                    link.reads = False
                    pool.give(link)
        except asyncpg.QueryCanceledError as error:
            raise Refusal(Code.TIMEOUT, "The request took too long.") from error
        except asyncpg.DataError as error:
            raise too_many_digits(str(error)) or error from None
        except asyncpg.ProgramLimitExceededError as error:  # a text of more than a gigabyte
            raise too_long() from error
        except asyncpg.LockNotAvailableError as error:  # DDL holds the table, or waits for it
            raise refusal_of("lock") from error
        except (*BROKEN, *STORE_ERRORS, TimeoutError) as error:
            raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error

    def run_now(self, plan: Plan, parameters: Sequence[Any]) -> None:
        """Every read waits for the server."""

    run_apart = run

    def read_from(self, urls: Sequence[str], model: Model) -> Run:
        if not self._triggers:
            raise StartError("Replicas are tested by the feed of changes, so they need the setting triggers.")
        replicas = [Replica(url, self._connector.other(url), self._size, PATIENCE, self._waiting) for url in urls]
        self._replicas = Replicas(replicas, model, self)
        return self._replicas.run

    @property
    def replicas(self) -> Sequence[ReplicaState]:
        return () if self._replicas is None else self._replicas.states()

    @property
    def primary_reads(self) -> int:
        return 0 if self._replicas is None else self._replicas.on_primary

    async def write(self, script: Callable[[], Script[T]], locks: str = "") -> T:
        result = await write(self.pool, script, locks)
        self._changed()
        return result

    async def change(self, step: Step, lookup: Callable[[], Step]) -> ResultRow:
        if self._connector.shares:  # no backend could be asked for its outcome: it runs in a transaction with an id
            return None
        batches = self._write_batches
        if batches is None or not step.makes:
            return await run_change(self.pool, step, lookup, self._changed)
        statement = batches.statement(step.sql)
        answer = batches.join(statement, step)
        if answer is not None:
            row: ResultRow | Lost = await answer
            if isinstance(row, Lost):
                return await find_change(self.pool, row.connection, lookup(), self._changed)
            if row is not None:
                self._changed()
            return row
        begun = statement.begin()
        try:
            return await run_change(self.pool, step, lookup, self._changed)
        finally:
            statement.ran(begun)

    async def session(self, *, reading: bool = False) -> ForeignSession:
        if reading:
            return await open_session(self.pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return await open_session(self.pool, "BEGIN", self._changed)

    # the feed

    async def head(self) -> FeedHead:
        if self._numbering is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        head = await self._numbering.head()
        self._channel.follow(head.feed)
        return head

    async def peek(self) -> FeedPeek:
        found = await peek(self.run)
        self._channel.follow(found.head.feed)
        return found

    async def trim(self, before: datetime, rows: int, most: int = 1000) -> int:
        return await trim(self.run, before, rows, most)

    def on_commit(self, wake: Callable[[], None] | None, heard: Callable[[str], bool] | None = None) -> None:
        self._channel.start(wake, heard)
        listening = self._channel.listening
        if listening is not None and self._watch is None:
            self._watch = StallWatch(
                self.pool, self._primary.check_if_listening, self._connector.connect, listening.leave
            )

    @property
    def relay(self) -> RelayState | None:
        relay = self._channel.relay
        return None if relay is None else relay.state

    def _changed(self) -> None:
        self.pool.health.worked()
        if (freshness := FRESHNESS.get()) is not None:
            freshness.note_write()
        self._channel.committed()

    async def ping(self) -> None:
        """Check the primary, and whether it takes changes again if it did not."""
        if self._pool is not None and self._pool.is_stalled:
            raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.")
        await self._primary.check()
        if self._probing is not None:
            self._probing.check()

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        plan = insert_plan(resource, names, POSTGRES)
        link = await self.pool.take()
        try:
            async with link.connection.transaction():
                await link.connection.executemany(plan.sql, [plan.parameters(row, NOBODY, {}) for row in rows])
                if resource.key is INTEGER_ID and resource.managed:
                    await link.connection.execute(catch_up(resource))
        finally:
            self.pool.give(link)


async def _drive(connection: asyncpg.Connection, fitting: Fitting[T]) -> T:
    """Run the statements of a fitting, and send it the rows of each."""
    try:
        step = next(fitting)
        while True:
            step = fitting.send(await connection.fetch(step.sql, *step.parameters))
    except StopIteration as end:
        return cast(T, end.value)


def _bounded(row: Sequence[bytes | None]) -> Sequence[bytes | None]:
    for answer in row:
        if isinstance(answer, bytes) and len(answer) > MAX_ANSWER:
            raise too_long()
    return row


UNOPENED = (*BROKEN, asyncpg.PostgresError, ValueError, TimeoutError)


def unopened(error: BaseException) -> StartError:
    cause = str(error).rstrip(".") or type(error).__name__
    return StartError(f"The PostgreSQL database cannot be opened: {cause}.")
