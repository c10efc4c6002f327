"""A SQLite transaction for model code: statements are queued, and the thread that has the connection runs them.

That goes on until the code ends the transaction, or its time limit is reached. The code may go on after a Refusal, so
every part of the transaction has a savepoint.
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

from diptych.ask.act import ACT, Act
from diptych.db.script import Again, Script
from diptych.db.sqlite.placeholders import numbered
from diptych.db.sqlite.writing import WriteConnection, as_refusal
from diptych.errors import Code, Refusal

T = TypeVar("T")
SessionWork = Callable[[WriteConnection], T]
_ATTEMPTS = 3
_LASTING = frozenset(
    {
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_TRANSACTION,
        apsw.SQLITE_CREATE_TEMP_INDEX,
        apsw.SQLITE_CREATE_TEMP_TABLE,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
        apsw.SQLITE_CREATE_TEMP_VIEW,
    }
)
"""Actions that a statement may not take, since the connection is used by later transactions."""
_READING = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
"""The pragmas that only read, whatever their argument is; any other with an argument sets something."""
_ACTING = frozenset({"incremental_vacuum", "optimize", "shrink_memory", "wal_checkpoint"})
"""The pragmas that act without an argument."""
_MEDDLES = "tx.sql takes no PRAGMA that sets something, no ATTACH, nothing temporary, and no BEGIN, COMMIT or ROLLBACK"


class Session:
    """A transaction; its user must `end` it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, budget: float, begin: str = "BEGIN IMMEDIATE", *, acts: bool = False
    ) -> None:
        self.begun: asyncio.Future[None] = loop.create_future()
        self._begin = begin
        self._loop = loop
        self._budget = budget
        self._queue: queue.SimpleQueue[tuple[SessionWork[Any], asyncio.Future[Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._refusal: Refusal | None = None
        """The refusal of further work, once the transaction has ended."""
        self._open = True
        self._acts = acts and ACT.get() is not None
        self._begun_at = 0
        """The newest position of the feed when it began, where it is recorded who makes changes."""

    async def ready(self) -> Session:
        """Wait until the transaction has begun."""
        try:
            await self.begun
        except asyncio.CancelledError:
            self.abandon()
            raise
        return self

    def run(self, work: SessionWork[T]) -> asyncio.Future[T]:
        """Run work in the thread, inside the transaction."""
        future: asyncio.Future[T] = self._loop.create_future()
        with self._lock:
            if self._refusal is not None:
                raise self._refusal
            self._queue.put((work, future))
        return future

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a statement of model code, which may change rows but not the state of the connection."""
        return await self.run(_apart(lambda connection: _foreign_rows(connection, numbered(sql), parameters)))

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        """Run a script as a part of this transaction."""
        return await self.run(_repeated(_apart(lambda connection: connection.drive(script()))))

    async def commit(self) -> None:
        """Commit, and end the transaction."""
        await self.run(self._finish("COMMIT", ACT.get()))

    async def end(self) -> None:
        """End the transaction; what was not committed is rolled back."""
        if self._open:
            with suppress(Refusal):  # it was ended before, or its time is over
                await self.run(self._finish("ROLLBACK"))

    def abandon(self) -> None:
        """Roll back, without waiting for it."""
        with suppress(Refusal):
            self.run(self._finish("ROLLBACK")).cancel()  # its outcome is not awaited

    def _finish(self, how: str, act: Act | None = None) -> SessionWork[None]:
        def finish(connection: WriteConnection) -> None:
            self._open = False
            if how == "COMMIT":
                if act is not None and self._acts:
                    connection.note_act(act, self._begun_at)
                connection.commit()
                connection.health.worked()
            else:
                connection.execute(how)

        return finish

    def fail(self, error: BaseException) -> None:
        """Fail: the transaction cannot begin."""
        self._end_with(error if isinstance(error, Refusal) else Refusal(Code.UNAVAILABLE, "The database has failed."))
        self._resolve(self.begun, None, error)

    # in the thread

    def serve(self, connection: WriteConnection) -> None:
        """Run queued work until the transaction ends, or its time limit is reached."""
        if self.begun.cancelled():
            return self._end_with(Refusal(Code.UNAVAILABLE, "The transaction has ended."))
        try:
            connection.begin(self._begin)
            self._begun_at = connection.newest() if self._acts else 0
        except Exception as error:
            connection.health.failed(error)
            return self.fail(as_refusal(error))
        finally:
            connection.stop_clock()
        self._resolve(self.begun, None, None)
        try:
            self._work(connection, time.monotonic() + self._budget)
        finally:
            connection.undo()

    def _work(self, connection: WriteConnection, deadline: float) -> None:
        refusal = Refusal(Code.UNAVAILABLE, "The transaction has ended.")
        while self._open:
            left = deadline - time.monotonic()
            try:
                work, future = self._queue.get(timeout=max(0.0, left))
            except queue.Empty:
                refusal = Refusal(Code.TIMEOUT, "The transaction took too long.")
                break
            self._do(connection, work, future, left)
        self._end_with(refusal)

    def _do(
        self, connection: WriteConnection, work: SessionWork[Any], future: asyncio.Future[Any], left: float
    ) -> None:
        try:
            connection.start_clock(left)
            self._resolve(future, work(connection), None)
        except Exception as error:
            self._open = self._open and connection.is_open
            connection.health.failed(error)
            meddled = self._begin == "BEGIN" and isinstance(error, apsw.ReadOnlyError)  # a query that would write
            self._resolve(future, None, error if meddled else as_refusal(error))
        finally:
            connection.stop_clock()

    def _end_with(self, refusal: Refusal) -> None:
        with self._lock:
            self._open = False
            self._refusal = refusal
        while not self._queue.empty():
            self._resolve(self._queue.get()[1], None, refusal)

    def _resolve(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(_set, future, result, error)


def _foreign_rows(connection: WriteConnection, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    connection.db.authorizer = _authorize
    try:
        return list(connection.execute(sql, parameters))
    except apsw.AuthError:
        raise ValueError(_MEDDLES) from None
    finally:
        connection.db.authorizer = None


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Deny what would outlive the transaction, since others use the connection after it."""
    name = (first or "").lower()
    sets = action == apsw.SQLITE_PRAGMA and name not in _READING and (second is not None or name in _ACTING)
    return apsw.SQLITE_DENY if sets or action in _LASTING else apsw.SQLITE_OK


def _apart(work: SessionWork[T]) -> SessionWork[T]:
    """Wrap work in a savepoint: if it fails, the rest of the transaction stays."""

    def apart(connection: WriteConnection) -> T:
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


def _repeated(work: SessionWork[T]) -> SessionWork[T]:
    def repeated(connection: WriteConnection) -> T:
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
