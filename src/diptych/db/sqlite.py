"""SQLite inside the process, by apsw.

A thread hop costs many times a point read, so a short read runs right in the event loop, under a budget: a
progress handler counts the steps of SQLite's machine, and a read that takes more is aborted and run again in a
worker thread, where only the clock ends it. Steps and not time, so that a busy machine makes no read look long.
Its statement then goes straight to a worker for its next thousand runs. So does one that took very long for its steps
(it reads long texts), and whatever is asked by someone who has used too much of the loop's time (`credit.py`). One that
searches texts never runs in the loop. Every statement has a deadline besides, in the loop too (`watchdog.py`).
Whoever needs a worker waits for its turn (`turns.py`). WAL lets readers and the writer go on
beside each other; `synchronous=FULL` means that what was committed stays.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar, cast

import apsw

from diptych.asking import ASKER
from diptych.compile.catalogue import Catalogue
from diptych.compile.dialect import SQLITE
from diptych.compile.differences import Difference
from diptych.compile.fragment import identifier
from diptych.compile.plan import Plan, too_long
from diptych.db import feed
from diptych.db.catalogue import sqlite_catalogue
from diptych.db.credit import NOTED, Credit
from diptych.db.fitting import Fitted, Fitting, fit, look
from diptych.db.private_file import exposed, make_private, warn_once
from diptych.db.script import Row as Changed
from diptych.db.script import Script, Step
from diptych.db.sqlite_connection import Connection as Writing
from diptych.db.sqlite_connection import reason_of, told
from diptych.db.sqlite_reader import LONG, Connection, Row, Task
from diptych.db.sqlite_session import Session
from diptych.db.sqlite_writer import Writer
from diptych.db.store import KeyRow, insert_statement, insert_values
from diptych.db.turns import Turns
from diptych.db.watchdog import Watchdog
from diptych.db.write_health import Probe, WriteHealth
from diptych.errors import Code, Refusal, StartError
from diptych.lru import LRUCache
from diptych.model.defs import ResourceDef
from diptych.model.model import Model

T = TypeVar("T")
_SLOW_RUNS = 1_000
_SLOW_PLANS, _SLOW_BYTES = 1_000, 4 << 20
_NICE = 10
_WAIT = 5.0
"""Seconds for which a read waits for a worker."""


class SqliteStore:
    """A SQLite file, or a database in memory for the path `:memory:`."""

    dialect = SQLITE
    numbers = False
    look_every = 0.05

    def __init__(
        self, path: str, *, budget: int = 200_000, timeout: float = 5.0, workers: int = 4, waiting: int = 1_000
    ) -> None:
        # a path that begins with file: would be taken for a URI
        path = f"./{path}" if path.startswith("file:") else path
        self._in_memory = path == ":memory:"
        self.path = f"file:/diptych-{id(self)}?vfs=memdb" if self._in_memory else path
        self.budget = budget
        self.timeout = timeout
        self._dog = Watchdog()
        self._slow: LRUCache[int] = LRUCache("slow statements", _SLOW_PLANS, _SLOW_BYTES)
        self._credit = Credit()
        self.health = WriteHealth(reason_of)
        self._probing = Probe(self.health, self.write)
        self._waiting = waiting
        self.turns = Turns(workers, waiting, _WAIT)
        self._pool: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._workers: list[Connection] = []
        self._inline: Connection | None = None
        self._writer: Connection | None = None
        self._changes: Writer | None = None

    @property
    def places(self) -> int:
        return self.turns.size

    async def open(self, model: Model, *, add_columns: bool = False, accept: bool = False) -> Fitted:
        self.turns = Turns(self.turns.size, self._waiting, _WAIT)
        self._dog = Watchdog()
        self._pool = ThreadPoolExecutor(self.turns.size, "diptych-sqlite", _step_back)
        if not self._in_memory:
            make_private(self.path)
        try:
            self._writer = Connection(self.path, self._dog, write=True)
            self._writer.db.execute("BEGIN IMMEDIATE")  # one of several processes makes the tables
            try:
                fitted = self._fit(self._writer.db, model, add_columns, accept)
            except BaseException:
                self._writer.db.execute("ROLLBACK")
                raise
            self._writer.db.execute("COMMIT")
            self._inline = Connection(self.path, self._dog, inline=True)
            self._changes = Writer(self._connect, self.timeout, self._waiting, self._credit, self.health)
        except apsw.Error as error:
            raise self._unopened(error) from None
        for sentence in self.cautions():
            warn_once(sentence)
        return fitted

    def _unopened(self, error: apsw.Error) -> StartError:
        return StartError(f"The SQLite database {self.path} cannot be opened: {_sentence(error)}.")

    def _fit(self, db: apsw.Connection, model: Model, add: bool, accept: bool) -> Fitted:
        parts = dict(db.execute("SELECT name, sql FROM sqlite_schema"))
        return _drive(db, fit(model, sqlite_catalogue(db), parts, "sqlite", add=add, accept=accept))

    async def close(self) -> None:
        if self._changes is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._changes.close)
            self._changes = None
        self.turns.close()
        if self._pool is not None:
            self._pool.shutdown()
        for connection in (self._inline, self._writer, *self._workers):
            if connection is not None:
                connection.close()
        self._inline = self._writer = None
        self._workers.clear()
        self._dog.close()

    async def catalogue(self) -> Catalogue:
        return self._reading(sqlite_catalogue)

    async def look(self, model: Model) -> list[Difference]:
        return self._reading(lambda db: _drive(db, look(model, sqlite_catalogue(db), "sqlite")))

    def _reading(self, work: Callable[[apsw.Connection], T]) -> T:
        """Do something with a connection of its own that changes nothing, and makes no file."""
        try:
            db = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            try:
                return work(db)
            finally:
                db.close()
        except apsw.Error as error:
            raise self._unopened(error) from None

    def cautions(self) -> list[str]:
        return [] if self._in_memory else exposed(self.path)

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Row:
        inline = self._inline
        if inline is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        left = self._slow.get(plan.sql)
        if plan.searches:
            pass
        elif left is None:
            if not self._credit.earned or self._credit.has(ASKER.get()):
                begun = time.perf_counter()
                try:
                    return inline.run_inline(plan, parameters, self.budget, begun)
                except apsw.InterruptError:
                    self._remember(plan)
                except apsw.BusyError:
                    pass  # a database in memory is being changed: a worker waits for that
                except _PASSING as error:
                    raise _refusal(error) from error
                finally:
                    took = time.perf_counter() - begun
                    if took > NOTED:
                        self._note(plan, took)
        elif left > 1:
            self._slow.put(plan.sql, left - 1, len(plan.sql))
        else:
            self._slow.drop(plan.sql)
        return await self._run_apart(plan, parameters)

    def _note(self, plan: Plan, took: float) -> None:
        """A read took its time in the loop: its caller has less of that, and too long a plan goes elsewhere."""
        self._credit.spend(ASKER.get(), took)
        if took > LONG:
            self._remember(plan)

    async def _run_apart(self, plan: Plan, parameters: Sequence[Any]) -> Row:
        """Run in a worker, when it is the caller's turn."""
        who = ASKER.get()
        if not self.turns.at_once(who):
            await self.turns.wait(who)
        task = Task(plan, parameters)
        work = self._submit(who, self._work, task)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            task.cancel()  # the worker has better things to do
            raise

    def _submit(self, who: str, work: Callable[..., T], *given: Any) -> Future[T]:
        """Have work done in the caller's turn, which lasts until the thread has done it, whoever still waits for it."""
        loop = asyncio.get_running_loop()

        def done(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self.turns.give, who)

        try:
            if self._pool is None:
                raise Refusal(Code.UNAVAILABLE, "The database is closed.")
            found = self._pool.submit(work, *given)
        except BaseException as error:
            self.turns.give(who)
            if isinstance(error, RuntimeError):
                raise Refusal(Code.UNAVAILABLE, "The database is closed.") from error
            raise
        found.add_done_callback(done)
        return found

    def _remember(self, plan: Plan) -> None:
        """Send the next runs of a plan to a worker."""
        self._slow.put(plan.sql, _SLOW_RUNS, len(plan.sql))

    def _work(self, task: Task) -> Row:
        """Run in a worker thread, on a connection of its own."""
        try:
            connection: Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = Connection(self.path, self._dog)
                self._workers.append(connection)
            return task.run(connection, self.timeout)
        except _PASSING as error:
            raise _refusal(error) from error

    async def write(self, script: Callable[[], Script[T]], locks: str = "") -> T:
        return await self._line().write(script)

    def change(self, step: Step, found: Callable[[], Step]) -> Awaitable[Changed]:
        return self._line().change(step)

    async def session(self, *, reading: bool = False) -> Session:
        if not reading:
            return await self._line().session()
        session = Session(asyncio.get_running_loop(), self.timeout, "BEGIN")
        who = ASKER.get()
        if not self.turns.at_once(who):
            await self.turns.wait(who)
        self._submit(who, self._serve, session)
        return await session.ready()

    def _serve(self, session: Session) -> None:
        """Run a session that only reads, in a worker thread, on a connection of its own."""
        try:
            connection = Connection(self.path, self._dog)
        except Exception as error:
            return session.fail(told(error))
        try:
            session.serve(Writing(connection.db, connection.guard, self.timeout))
        finally:
            connection.close()
        return None

    # the feed

    async def head(self) -> feed.Head:
        return feed.head_of(await self.run(feed.SQLITE_HEAD, ()))

    async def mark_at(self, position: int) -> int | None:
        return await feed.mark_at(self.run, "sqlite", position)

    async def touched(self, after: int, upto: int, most: int) -> list[tuple[str, str]] | None:
        return await feed.touched(self.run, "sqlite", after, upto, most)

    async def trim(self, before: datetime, rows: int, most: int = 1000) -> int:
        return await self.write(lambda: feed.trim_sqlite(before, rows, most))

    def on_commit(self, wake: Callable[[], None] | None) -> None:
        if self._changes is not None:
            self._changes.on_commit(wake)

    def _line(self) -> Writer:
        if self._changes is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        return self._changes

    def _connect(self) -> Writing:
        connection = Connection(self.path, self._dog, write=True)
        return Writing(connection.db, connection.guard, self.timeout, connection.close, self.health)

    async def ping(self) -> None:
        if self._inline is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        try:
            self._inline.run_inline(Plan("SELECT 1", (), ()), (), self.budget, time.perf_counter())
        except _PASSING as error:
            raise _refusal(error) from error
        self._probing.check()

    async def keys(self, kind: str) -> list[KeyRow]:
        rows = self._write("SELECT kid, kind, secret, created_at FROM diptych_keys WHERE kind = ?1", (kind,))
        return [KeyRow(*row) for row in rows]

    async def add_key(self, row: KeyRow) -> None:
        self._write("INSERT INTO diptych_keys (kid, kind, secret, created_at) VALUES (?1, ?2, ?3, ?4) "
                    "ON CONFLICT DO NOTHING",
                    (row.kid, row.kind, row.secret, row.created_at))  # fmt: skip

    async def is_empty(self, table: str) -> bool:
        return not self._write(f"SELECT 1 FROM {identifier(table).text} LIMIT 1", ())

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        assert self._writer is not None
        statement = insert_statement(resource, names, SQLITE)
        with self._writer.db as db:
            db.executemany(statement, (insert_values(resource, names, row, SQLITE) for row in rows))

    def _write(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        assert self._writer is not None
        return list(self._writer.db.execute(sql, parameters))


def _drive(db: apsw.Connection, fitting: Fitting[T]) -> T:
    """Run the statements of a fitting, each with the rows of the one before."""
    rows: Sequence[Any] | None = None
    try:
        while True:
            step = fitting.send(rows)  # type: ignore[arg-type]  # a generator begins with None
            rows = db.execute(step.sql, step.parameters).fetchall()
    except StopIteration as end:
        return cast(T, end.value)


def _step_back() -> None:
    """Let the loop go first wherever this thread and it want the same processor."""
    if sys.platform == "linux":  # where a thread has a priority of its own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _sentence(error: Exception) -> str:
    return str(error).removeprefix(type(error).__name__ + ": ").rstrip(".") or type(error).__name__


_PASSING = (apsw.InterruptError, apsw.BusyError, apsw.LockedError, apsw.IOError, apsw.CantOpenError, apsw.FullError,
            apsw.TooBigError)  # fmt: skip
"""What is no fault of ours and may be over soon."""


def _refusal(error: apsw.Error) -> Refusal:
    if isinstance(error, apsw.InterruptError):
        return Refusal(Code.TIMEOUT, "The request took too long.")
    if isinstance(error, apsw.TooBigError):
        return too_long()
    return Refusal(Code.UNAVAILABLE, "The database cannot answer now.")
