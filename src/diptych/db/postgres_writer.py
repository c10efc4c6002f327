"""PostgreSQL's writer: runs scripts in transactions, again if they collide, and never guesses about a commit.

A script that collides with others (a deadlock, a serialization failure) or whose connection breaks before its
commit has changed nothing, so it runs again, a little later. If the connection breaks at the commit itself, the
server is asked what became of the transaction. A script that is one whole change by itself needs no transaction
around it; what became of it is seen by looking for the row that it made, once its backend is gone for good.

Whoever waits here can be cancelled at any moment: the pool sets the connection right. What ran into the commit is
then committed or not, and nobody was told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import asyncpg

from diptych.db.pool import Link, Pool, reason_of
from diptych.db.script import Again, Row, Script, Step, Violation
from diptych.db.violations import COLUMNS_OF_INDEX, COLUMNS_OF_REFERENCE, VIOLATIONS, kind_in_postgres, note, refusal_of
from diptych.db.write_health import WriteHealth
from diptych.errors import Code, Refusal

T = TypeVar("T")
BROKEN = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError,
          asyncpg.OperatorInterventionError, asyncpg.IdleInTransactionSessionTimeoutError)  # fmt: skip
"""What is said on a connection that has gone, or is going. (A query that is cancelled is of this kind too.)"""
STORE = (asyncpg.InsufficientResourcesError, asyncpg.ReadOnlySQLTransactionError, asyncpg.PostgresSystemError)
"""What is no fault of a statement."""
_COLLISION = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.InFailedSQLTransactionError)
_UNCHANGED: tuple[type[Exception], ...] = (*VIOLATIONS, *_COLLISION)
"""What undoes a statement, and a script would learn of or get over."""
_ATTEMPTS = 6
_PAUSE = 0.01
"""Seconds that the first pause takes at most; each further one takes twice as long."""
_LOOKS = 40
_BETWEEN = 0.1
"""How often the server is asked about a transaction that it has not yet ended, and the seconds between."""


class _Lost(Exception):
    """The transaction is no more, and nothing was changed."""


async def write(pool: Pool, script: Callable[[], Script[T]], locks: str = "") -> T:
    """Run a script to its commit, after a statement that takes locks."""
    how = f"BEGIN; {locks}" if locks else "BEGIN"
    with _told(pool.health):
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await _transaction(pool, script(), how)
            except (Again, _Lost, *_COLLISION):
                if attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(random.uniform(0, _PAUSE * 2**attempt))
        raise AssertionError


async def change(pool: Pool, step: Step, found: Callable[[], Step]) -> Row:
    """Run a statement that is a change by itself, and commits itself. None if it changed nothing, for whatever reason
    that a script would learn of, or get over."""
    try:
        link = await pool.take()
        try:
            row: Row = await link.row(step.sql, step.parameters)
            return row
        except _UNCHANGED:
            return None
        except asyncpg.QueryCanceledError:
            raise
        except BROKEN:
            process = link.connection.get_server_pid()
            link.connection.terminate()
        finally:
            pool.give(link)
        return await _look(pool, process, found())
    except (TimeoutError, *STORE, *BROKEN):
        with _told(pool.health):
            raise


@contextmanager
def _told(health: WriteHealth) -> Iterator[None]:
    """What went wrong with the database, as a Refusal; what keeps it from taking changes is noted."""
    try:
        yield
    except asyncpg.QueryCanceledError as error:
        raise Refusal(Code.TIMEOUT, "The request took too long.") from error
    except asyncpg.LockNotAvailableError as error:
        raise refusal_of("lock") from error
    except (Again, *_COLLISION) as error:
        raise Refusal(Code.UNAVAILABLE, "Others keep changing this; try again.") from error
    except (_Lost, TimeoutError, *STORE, *BROKEN) as error:
        health.failed(error)
        raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error


async def _transaction(pool: Pool, script: Script[T], how: str) -> T:
    session = Session(pool, await pool.take())
    try:
        await session.begin(how)
        result = await session.drive(lambda: script)
        await session.commit()
        return result
    finally:
        await session.end()


class Session:
    """A transaction on one connection."""

    def __init__(self, pool: Pool, link: Link) -> None:
        self._pool = pool
        self._link = link
        self._mark: str | None = None
        self._given = False

    async def begin(self, how: str) -> None:
        with _losing(self._link):
            await self._link.connection.execute(how)

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        """Run a script as a part of this transaction."""
        result, mark = await _drive(self._link, script())
        self._mark = mark or self._mark
        return result

    async def commit(self) -> None:
        """Keep what was done. If the connection breaks here, the server is asked what became of it."""
        connection = self._link.connection
        process = connection.get_server_pid()
        try:
            with _losing(self._link):
                status = await connection.execute("COMMIT")
        except VIOLATIONS as error:  # of constraints that are deferred
            raise refusal_of(kind_in_postgres(error)) from error
        except _Lost:
            connection.terminate()
            self._give()  # it makes room for the one that asks
            if self._mark is None or not await _was_committed(self._pool, process, self._mark):
                raise
            return
        if status != "COMMIT":  # one that has failed is undone, and that is no error to PostgreSQL
            raise _Lost

    async def end(self) -> None:
        """Give the connection back; what was not committed is undone."""
        self._give()

    def _give(self) -> None:
        if not self._given:
            self._given = True
            self._pool.give(self._link)


class ForeignSession(Session):
    """A transaction for code that is not ours. It cannot run again by itself, and it may go on after a Refusal:
    so every part of it stands behind a savepoint."""

    def __init__(self, pool: Pool, link: Link, committed: Callable[[], None] | None = None) -> None:
        super().__init__(pool, link)
        self._health = pool.health if committed is not None else WriteHealth(reason_of)  # who reads shall not write
        self._saved = False
        self._committed = committed
        link.foreign = True

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        with _told(self._health):
            for _ in range(_ATTEMPTS):
                try:
                    return await self._apart(super().drive, script)
                except Again:
                    continue
            raise Again

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a statement."""

        async def fetch(link: Link) -> list[tuple[Any, ...]]:
            try:
                with _losing(link):
                    return [tuple(row) for row in await link.connection.fetch(sql, *parameters)]
            except asyncpg.ReadOnlySQLTransactionError as error:
                if self._committed is None:  # no fault of the database
                    raise RuntimeError("a query of the model would write") from error
                raise

        with _told(self._health):
            return await self._apart(fetch, self._link)

    async def commit(self) -> None:
        with _told(self._health):
            self._check_open()
            if self._mark is None:
                with _losing(self._link):
                    asked = "SELECT pg_current_xact_id_if_assigned()::text"
                    self._mark = await self._link.connection.fetchval(asked)
            await super().commit()
        if self._committed is not None:
            self._committed()

    async def _apart(self, work: Callable[..., Awaitable[T]], given: Any) -> T:
        self._check_open()
        connection = self._link.connection
        with _losing(self._link):
            await connection.execute("RELEASE SAVEPOINT part; SAVEPOINT part" if self._saved else "SAVEPOINT part")
        self._saved = True
        try:
            result = await work(given)
        except Exception:
            if not connection.is_closed() and connection.is_in_transaction():
                with _losing(self._link):
                    await connection.execute("ROLLBACK TO SAVEPOINT part")
            raise
        self._check_open()
        return result

    def _check_open(self) -> None:
        """A statement of a model can end the transaction; then nothing more may run, since it would stand alone."""
        connection = self._link.connection
        if self._given or connection.is_closed():
            raise _Lost
        if not connection.is_in_transaction():
            raise RuntimeError("the transaction was ended by a statement in it")


async def open_session(pool: Pool, how: str, committed: Callable[[], None] | None = None) -> ForeignSession:
    """A transaction for code that is not ours; a connection that broke while it was idle is left for another."""
    with _told(pool.health):
        for _ in range(_ATTEMPTS):
            session = ForeignSession(pool, await pool.take(), committed)
            try:
                await session.begin(how)
                return session
            except _Lost:
                await session.end()
            except BaseException:
                await session.end()
                raise
        raise _Lost


@contextmanager
def _losing(link: Link) -> Iterator[None]:
    """If the connection breaks here, its transaction is lost."""
    try:
        yield
    except asyncpg.QueryCanceledError:
        raise
    except BROKEN as error:
        if isinstance(error, asyncpg.InterfaceError) and not link.connection.is_closed():
            raise RuntimeError("the driver was used wrongly") from error
        link.connection.terminate()
        raise _Lost from error


async def _drive(link: Link, script: Script[T]) -> tuple[T, str | None]:
    """Run a script on a connection. Gives its result, and the transaction that it changed something in."""
    mark: str | None = None
    violated = False
    try:
        step = next(script)
        while True:
            if violated:
                raise RuntimeError("a script went on after a violation")
            try:
                with _losing(link):
                    row: Row = await link.row(step.sql, step.parameters)
            except VIOLATIONS as error:
                violated = True
                step = script.throw(await _violation(link, error))
                continue
            if step.marked and row is not None:
                mark = row[-1]
            step = script.send(row)
    except StopIteration as stop:
        return stop.value, mark
    finally:
        script.close()


async def _violation(link: Link, error: Any) -> Violation:
    """What a statement violated; the catalogue knows the columns, once the failed part is undone."""
    kind = kind_in_postgres(error)
    note(kind, error)
    if kind not in ("unique", "reference"):
        return Violation(kind)
    connection = link.connection
    table, name = error.table_name or "", error.constraint_name or ""
    with _losing(link):
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK TO SAVEPOINT part" if link.foreign else "ROLLBACK")
        asked = (COLUMNS_OF_INDEX, name) if kind == "unique" else (COLUMNS_OF_REFERENCE, name, table)
        return Violation(kind, table, tuple(row[0] for row in await connection.fetch(*asked)))


# what became of it


async def _look(pool: Pool, process: int, found: Step) -> Row:
    """The row that a statement made whose connection broke, once that can no longer change; None if there is none."""

    async def ask(link: Link) -> tuple[bool, Row]:
        gone = await link.connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_activity WHERE pid = $1 AND usename = user",
            process,
        )
        return gone, await link.row(found.sql, found.parameters) if gone else None

    return await _inquire(pool, ask)


async def _was_committed(pool: Pool, process: int, mark: str) -> bool:
    """What became of a transaction whose connection broke at its commit."""

    async def ask(link: Link) -> tuple[bool, bool]:
        status = await link.connection.fetchval("SELECT pg_xact_status($1::text::xid8)", mark)
        if status == "in progress":
            await link.connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND usename = user", process
            )
        return status in ("committed", "aborted"), status == "committed"

    return await _inquire(pool, ask)


async def _inquire(pool: Pool, ask: Callable[[Link], Awaitable[tuple[bool, T]]]) -> T:
    """Ask the server, on whatever connection there is, until it knows."""
    for _ in range(_LOOKS):
        try:
            link = await pool.take()
            try:
                with _losing(link):
                    knows, answer = await ask(link)
            finally:
                pool.give(link)
            if knows:
                return answer
        except (_Lost, Refusal, OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            pass
        await asyncio.sleep(_BETWEEN)
    raise Refusal(Code.UNAVAILABLE, "It is not known whether this was done; look before you try again.")
