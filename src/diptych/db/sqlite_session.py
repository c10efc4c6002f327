"""A transaction on SQLite that one piece of code has for itself. Its statements come through a line of its own, and a
thread that has the connection does them, until the code ends the transaction or its time is over.

Code of a model may go on after a Refusal, so every part of the transaction stands behind a savepoint.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import apsw

from diptych.db.script import Again, Script
from diptych.db.sqlite_connection import Connection, told
from diptych.errors import Code, Refusal

T = TypeVar("T")
Work = Callable[[Connection], T]
_ATTEMPTS = 3
_LASTING = frozenset({
    apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH, apsw.SQLITE_TRANSACTION, apsw.SQLITE_CREATE_TEMP_INDEX,
    apsw.SQLITE_CREATE_TEMP_TABLE, apsw.SQLITE_CREATE_TEMP_TRIGGER, apsw.SQLITE_CREATE_TEMP_VIEW,
})
"""What a statement may not do, since the connection has other transactions after this one."""
_TELLING = frozenset({"foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
                      "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo"})
"""The pragmas that only tell something, whatever their argument is; any other with an argument sets something."""
_ACTING = frozenset({"incremental_vacuum", "optimize", "shrink_memory", "wal_checkpoint"})
"""The pragmas that do something without an argument."""
_MEDDLES = "tx.sql takes no PRAGMA that sets something, no ATTACH, nothing temporary, and no BEGIN, COMMIT or ROLLBACK"


class Session:
    """An open transaction. Whoever has it must `end` it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget: float, begin: str = "BEGIN IMMEDIATE") -> None:
        self.begun: asyncio.Future[None] = loop.create_future()
        self._begin = begin
        self._loop = loop
        self._budget = budget
        self._line: queue.SimpleQueue[tuple[Work[Any], asyncio.Future[Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._over: Refusal | None = None
        """What to say to whoever still wants something, once it has ended."""
        self._open = True

    async def ready(self) -> Session:
        """Itself, once it has its turn."""
        try:
            await self.begun
        except asyncio.CancelledError:
            self.abandon()
            raise
        return self

    async def run(self, work: Work[T]) -> T:
        """Do some work in the thread, inside the transaction."""
        return await self._put(work)

    def _put(self, work: Work[T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        with self._lock:
            if self._over is not None:
                raise self._over
            self._line.put((work, future))
        return future

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a statement of the model's own code, which may change rows and nothing of the connection."""
        return await self.run(_apart(lambda connection: _foreign_rows(connection, sql, parameters)))

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        """Run a script as a part of this transaction."""
        return await self.run(_repeated(_apart(lambda connection: connection.drive(script()))))

    async def commit(self) -> None:
        """End the transaction, and keep what it did."""
        await self.run(self._finish("COMMIT"))

    async def end(self) -> None:
        """End the transaction; what was not committed is undone."""
        if self._open:
            with suppress(Refusal):  # it was ended before, or its time is over
                await self.run(self._finish("ROLLBACK"))

    def abandon(self) -> None:
        """Undo everything, without waiting for it."""
        with suppress(Refusal):
            self._put(self._finish("ROLLBACK")).cancel()  # nobody hears of it

    def _finish(self, how: str) -> Work[None]:
        def finish(connection: Connection) -> None:
            self._open = False
            if how == "COMMIT":
                connection.commit()
                connection.health.worked()
            else:
                connection.execute(how)

        return finish

    def fail(self, error: BaseException) -> None:
        """It cannot begin."""
        self._end_with(error if isinstance(error, Refusal) else Refusal(Code.UNAVAILABLE, "The database has failed."))
        self._tell(self.begun, None, error)

    # in the thread

    def serve(self, connection: Connection) -> None:
        """Do what comes through the line until the end, or until the time is over."""
        if self.begun.cancelled():
            return self._end_with(Refusal(Code.UNAVAILABLE, "The transaction has ended."))
        try:
            connection.begin(self._begin)
        except Exception as error:
            connection.health.failed(error)
            return self.fail(told(error))
        finally:
            connection.stop_clock()
        self._tell(self.begun, None, None)
        try:
            self._work(connection, time.monotonic() + self._budget)
        finally:
            connection.undo()

    def _work(self, connection: Connection, deadline: float) -> None:
        over = Refusal(Code.UNAVAILABLE, "The transaction has ended.")
        while self._open:
            left = deadline - time.monotonic()
            try:
                work, future = self._line.get(timeout=max(0.0, left))
            except queue.Empty:
                over = Refusal(Code.TIMEOUT, "The transaction took too long.")
                break
            self._do(connection, work, future, left)
        self._end_with(over)

    def _do(self, connection: Connection, work: Work[Any], future: asyncio.Future[Any], left: float) -> None:
        try:
            connection.start_clock(left)
            self._tell(future, work(connection), None)
        except Exception as error:
            self._open = self._open and connection.is_open
            connection.health.failed(error)
            meddled = self._begin == "BEGIN" and isinstance(error, apsw.ReadOnlyError)  # a query that would write
            self._tell(future, None, error if meddled else told(error))
        finally:
            connection.stop_clock()

    def _end_with(self, over: Refusal) -> None:
        with self._lock:
            self._open = False
            self._over = over
        while not self._line.empty():
            self._tell(self._line.get()[1], None, over)

    def _tell(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(_set, future, result, error)


def _foreign_rows(connection: Connection, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    connection.db.authorizer = _authorize
    try:
        return list(connection.execute(sql, parameters))
    except apsw.AuthError:
        raise ValueError(_MEDDLES) from None
    finally:
        connection.db.authorizer = None


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Refuses what would outlive the transaction on a connection that others use after it."""
    name = (first or "").lower()
    sets = action == apsw.SQLITE_PRAGMA and name not in _TELLING and (second is not None or name in _ACTING)
    return apsw.SQLITE_DENY if sets or action in _LASTING else apsw.SQLITE_OK


def _apart(work: Work[T]) -> Work[T]:
    """The same work, behind a savepoint: if it fails, the rest of the transaction stays."""

    def apart(connection: Connection) -> T:
        connection.execute("SAVEPOINT part")
        try:
            result = work(connection)
            if not connection.is_open:
                raise RuntimeError("the transaction was ended by a statement in it")
        except BaseException:
            if connection.is_open:
                connection.execute("ROLLBACK TO part")
                connection.execute("RELEASE part")
            raise
        connection.execute("RELEASE part")
        return result

    return apart


def _repeated(work: Work[T]) -> Work[T]:
    def repeated(connection: Connection) -> T:
        for _ in range(_ATTEMPTS):
            with suppress(Again):
                return work(connection)
        raise Refusal(Code.UNAVAILABLE, "Others keep changing this; try again.")

    return repeated


def _set(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
