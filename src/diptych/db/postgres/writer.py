"""Runs scripts in PostgreSQL transactions: retries those that collide, and never guesses about a commit.

A script that collides with others (a deadlock, a serialization failure) or whose connection breaks before its
commit has changed nothing, so it is retried with back-off. If the connection breaks during the commit, the server is
asked for the status of the transaction. A statement that is a whole change by itself runs without a transaction block;
its outcome is found by looking for the row that it made, once its backend has ended.

A task can be cancelled here at any moment: the pool resets the connection. If it was committing then, the outcome is
not reported to anyone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from diptych.ask.act import act_text
from diptych.compile.system.audit import ACT_OF_SESSION
from diptych.db.postgres.link import FORGET, Link
from diptych.db.postgres.pool import Pool, reason_of
from diptych.db.postgres.sessions import RUN_OF_SERVER, PostgresConnection
from diptych.db.postgres.violations import VIOLATIONS, kind_in_postgres
from diptych.db.script import Again, ResultRow, Script, Step, Violation
from diptych.db.violations import COLUMNS_OF_INDEX, COLUMNS_OF_REFERENCE, note, refusal_of
from diptych.db.write_health import WriteHealth
from diptych.errors import Code, Refusal

T = TypeVar("T")
BROKEN = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""Errors of a connection that is broken or about to be. (QueryCanceledError is a subclass of one of them.)"""
STORE_ERRORS = (asyncpg.InsufficientResourcesError, asyncpg.ReadOnlySQLTransactionError, asyncpg.PostgresSystemError)
"""Errors of the server that are no fault of a statement."""
_COLLISION = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.InFailedSQLTransactionError)
_UNCHANGED: tuple[type[Exception], ...] = (*VIOLATIONS, *_COLLISION)
"""Errors after which a statement has changed nothing, and which a script would handle or retry."""
_XID = "SELECT pg_current_xact_id_if_assigned()::text"
"""The id of a transaction; null of one that has changed nothing."""
_ATTEMPTS = 6
_PAUSE = 0.01
"""Seconds of the first back-off, at most; it doubles each time."""
_LOOKS = 40
_BETWEEN = 0.1
"""How often the server is asked about a transaction that has not ended, and the seconds between."""


class _Lost(Exception):
    """The transaction is lost, and nothing was changed."""


async def write(pool: Pool, script: Callable[[], Script[T]], locks: str = "") -> T:
    """Run a script to its commit, after a statement that takes locks."""
    how = f"BEGIN; {locks}" if locks else "BEGIN"
    with _as_refusals(pool.health):
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await _transaction(pool, script(), how)
            except (Again, _Lost, *_COLLISION):
                if attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(random.uniform(0, _PAUSE * 2**attempt))
        raise AssertionError


async def run_change(pool: Pool, step: Step, lookup: Callable[[], Step], changed: Callable[[], None]) -> ResultRow:
    """Run a statement that is a change by itself, and commits itself. None if it changed nothing.

    `lookup` makes the statement that returns the same row once the change was made; `changed` is called if it was.
    """
    row: ResultRow
    try:
        link = pool.take_nowait() or await pool.take()
        try:
            row = await link.row(step.sql, step.parameters)
            if row is not None:
                changed()
            return row
        except _UNCHANGED:
            return None
        except asyncpg.QueryCanceledError:
            raise
        except BROKEN:
            link.connection.terminate()
        finally:
            pool.give(link)
    except (TimeoutError, *STORE_ERRORS, *BROKEN):
        with _as_refusals(pool.health):
            raise
    return await find_change(pool, link.connection, lookup(), changed)


async def find_change(pool: Pool, broken: PostgresConnection, lookup: Step, changed: Callable[[], None]) -> ResultRow:
    """The row that a statement made before its connection broke; None if it made none."""
    with _as_refusals(pool.health):
        row = await _look(pool, broken, lookup)
    if row is not None:
        changed()
    return row


@contextmanager
def _as_refusals(health: WriteHealth) -> Iterator[None]:
    """Turn errors of the database into Refusals; those that keep it from accepting changes are noted."""
    try:
        yield
    except asyncpg.QueryCanceledError as error:
        raise Refusal(Code.TIMEOUT, "The request took too long.") from error
    except asyncpg.LockNotAvailableError as error:
        raise refusal_of("lock") from error
    except (Again, *_COLLISION) as error:
        raise Refusal(Code.UNAVAILABLE, "Others keep changing this; try again.") from error
    except (_Lost, TimeoutError, *STORE_ERRORS, *BROKEN) as error:
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

    _end = "COMMIT"

    def __init__(self, pool: Pool, link: Link) -> None:
        self._pool = pool
        self._link = link
        self._xid: str | None = None
        self._given = False

    async def begin(self, how: str) -> None:
        with _losing(self._link):
            await self._link.connection.execute(how)

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        """Run a script as a part of this transaction."""
        result, xid = await _drive(self._link, script())
        self._xid = xid or self._xid
        return result

    async def commit(self) -> None:
        """Commit. If the connection breaks meanwhile, the server is asked for the outcome."""
        connection = self._link.connection
        try:
            with _losing(self._link):
                if self._xid is None:  # asked after COMMIT was sent, nobody could tell
                    self._xid = await connection.fetchval(_XID)
                status = await connection.execute(self._end)
        except VIOLATIONS as error:  # of constraints that are deferred
            raise refusal_of(kind_in_postgres(error)) from error
        except _Lost:
            connection.terminate()
            self._give()  # makes room for the connection that asks
            if self._xid is None or not await _was_committed(self._pool, connection.run_of_server, self._xid):
                raise
            return
        if status != "COMMIT":  # PostgreSQL rolls back a failed transaction without an error
            raise _Lost

    async def end(self) -> None:
        """Return the connection; what was not committed is rolled back."""
        self._give()

    def _give(self) -> None:
        if not self._given:
            self._given = True
            self._pool.give(self._link)


class ForeignSession(Session):
    """A transaction for model code. It cannot be retried here, and may go on after a Refusal, so every part of it has a
    savepoint."""

    def __init__(self, pool: Pool, link: Link, committed: Callable[[], None] | None = None) -> None:
        super().__init__(pool, link)
        # a failed write of a reader is no fault of the database
        self._health = pool.health if committed is not None else WriteHealth(reason_of)
        self._saved = False
        self._committed = committed
        if link.settings is None:  # the session is another caller's next: what model code has set ends here
            self._end = f"{FORGET} RESET ALL; COMMIT"
        link.foreign = True

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        with _as_refusals(self._health):
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

        with _as_refusals(self._health):
            return await self._apart(fetch, self._link)

    async def commit(self) -> None:
        with _as_refusals(self._health):
            self._check_open()
            act = None if self._committed is None or not self._pool.acts else act_text()
            if act is not None:
                with _losing(self._link):
                    await self._link.connection.execute(ACT_OF_SESSION, act)
            await super().commit()
        if self._committed is not None:
            self._committed()

    async def _apart(self, work: Callable[..., Awaitable[T]], argument: Any) -> T:
        self._check_open()
        connection = self._link.connection
        with _losing(self._link):
            await connection.execute("RELEASE SAVEPOINT part; SAVEPOINT part" if self._saved else "SAVEPOINT part")
        self._saved = True
        try:
            result = await work(argument)
        except Exception:
            if not connection.is_closed() and connection.is_in_transaction():
                with _losing(self._link):
                    await connection.execute("ROLLBACK TO SAVEPOINT part")
            raise
        self._check_open()
        return result

    def _check_open(self) -> None:
        """Refuse to go on after a statement of model code ended the transaction: what follows would autocommit."""
        connection = self._link.connection
        if self._given or connection.is_closed():
            raise _Lost
        if not connection.is_in_transaction():
            raise RuntimeError("the transaction was ended by a statement in it")


async def open_session(pool: Pool, how: str, committed: Callable[[], None] | None = None) -> ForeignSession:
    """Begin a transaction for model code; a connection that broke while it was idle is replaced."""
    with _as_refusals(pool.health):
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
    """Turn errors of a broken connection into `_Lost`."""
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
    """Run a script on a connection. Returns its result, and the id of its transaction if it changed something."""
    xid: str | None = None
    violated = False
    try:
        step = next(script)
        while True:
            if violated:
                raise RuntimeError("a script went on after a violation")
            try:
                with _losing(link):
                    row: ResultRow = await (
                        link.rows(step.sql, step.many) if step.many else link.row(step.sql, step.parameters)
                    )
            except VIOLATIONS as error:
                violated = True
                step = script.throw(await _violation(link, error))
                continue
            if step.marked and row:
                xid = row[-1][-1] if step.many else row[-1]
            step = script.send(row)
    except StopIteration as stop:
        return stop.value, xid
    finally:
        script.close()


async def _violation(link: Link, error: Any) -> Violation:
    """What a statement violated. The columns are read from the catalogue, after a rollback of the failed part."""
    kind = kind_in_postgres(error)
    note(kind, error)
    if kind == "moved":  # no script can do anything about it
        raise refusal_of(kind)
    if kind not in ("unique", "reference"):
        return Violation(kind)
    connection = link.connection
    table, name = error.table_name or "", error.constraint_name or ""
    with _losing(link):
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK TO SAVEPOINT part" if link.foreign else "ROLLBACK")
        query = (COLUMNS_OF_INDEX, name) if kind == "unique" else (COLUMNS_OF_REFERENCE, name, table)
        return Violation(kind, table, tuple(row[0] for row in await connection.fetch(*query)))


# the outcome of a commit


async def _look(pool: Pool, broken: PostgresConnection, lookup: Step) -> ResultRow:
    """The row that a statement made before its connection broke, once its backend has ended; None if there is none."""

    async def outcome(link: Link) -> tuple[bool, ResultRow]:
        has_ended = await link.connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_activity "
            f"WHERE pid = $1 AND usename = user AND {RUN_OF_SERVER} = $2",
            broken.process,
            broken.run_of_server,
        )
        return has_ended, await link.row(lookup.sql, lookup.parameters) if has_ended else None

    return await _inquire(pool, outcome)


async def _was_committed(pool: Pool, run_of_server: str, xid: str) -> bool:
    """Was a transaction committed whose connection broke meanwhile?

    After a crash or a fail-over the server may have given the id to another transaction, so that one that was committed
    says nothing then; one that was not is certain.
    """

    async def outcome(link: Link) -> tuple[bool, bool | None]:
        ((status, is_same),) = await link.connection.fetch(
            f"SELECT pg_xact_status($1::text::xid8), {RUN_OF_SERVER} = $2::text", xid, run_of_server
        )
        if status == "in progress" and is_same:
            await link.connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_xid = $1::text::xid8::xid AND usename = user",
                xid,
            )
        if status == "committed":
            return True, True if is_same else None
        return status == "aborted", False

    was_committed = await _inquire(pool, outcome)
    if was_committed is None:
        raise _unknown()
    return was_committed


async def _inquire(pool: Pool, ask: Callable[[Link], Awaitable[tuple[bool, T]]]) -> T:
    """Ask the server, on any connection, until it has an answer."""
    for _ in range(_LOOKS):
        with suppress(_Lost, Refusal, OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            link = await pool.take()
            try:
                with _losing(link):
                    knows, answer = await ask(link)
            finally:
                pool.give(link)
            if knows:
                return answer
        await asyncio.sleep(_BETWEEN)
    raise _unknown()


def _unknown() -> Refusal:
    return Refusal(Code.UNAVAILABLE, "It is not known whether this was done; look before you try again.")
