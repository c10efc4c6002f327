"""The store of SQLite, in process, by apsw.

A hop between threads costs many times a point read, so a short read runs in the event loop, under a budget: a progress
handler counts the steps of SQLite's virtual machine, and a read that takes more is aborted and run again in a worker
thread, where only its deadline ends it. Steps and not time, so that a busy machine makes no read look long. Its
statement then goes straight to a worker for its next thousand runs. One that took very long for its steps (it reads
long texts, or the machine is busy) goes there for its next fifty, and so does any read of a caller whose loop budget is
empty (`fair/loop_budget.py`). One that searches texts never runs in the loop. Every statement has a deadline, in the
loop too (`watchdog.py`). Workers are shared out by a fair semaphore (`fair/semaphore.py`). WAL lets readers and the
writer work side by side; `synchronous=FULL` makes commits durable.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from typing import Any, TypeVar, cast

import apsw

from diptych.compile.catalogue import Catalogue
from diptych.compile.dialect import SQLITE
from diptych.compile.differences import Difference
from diptych.compile.plan import Plan
from diptych.compile.system.trash import is_recursive
from diptych.db import feed
from diptych.db.catalogue import sqlite_catalogue
from diptych.db.fitting import Fitted, Fitting, fit, look
from diptych.db.script import ResultRow as Changed
from diptych.db.script import Script, Step
from diptych.db.sqlite.connection import INLINE_DEADLINE, BytesRow, ReadTask, SqliteConnection
from diptych.db.sqlite.errors import PASSING, error_text, read_refusal
from diptych.db.sqlite.private_file import exposed, make_private, warn_once
from diptych.db.sqlite.session import Session
from diptych.db.sqlite.watchdog import Watchdog
from diptych.db.sqlite.writer import Writer
from diptych.db.sqlite.writing import WriteConnection as Writing
from diptych.db.sqlite.writing import as_refusal, reason_of
from diptych.db.store import FeedHead, FeedPeek, ReplicaState, StoreLoad, insert_plan
from diptych.db.write_health import Probe, WriteHealth
from diptych.errors import Code, Refusal, StartError
from diptych.fair.caller import CALLER
from diptych.fair.loop_budget import NOTED, loop_budget
from diptych.fair.semaphore import PATIENCE, FairSemaphore
from diptych.lru import LRUCache
from diptych.model.declare.roles import NOBODY
from diptych.model.defs import ResourceDef
from diptych.model.model import Model

T = TypeVar("T")
_SLOW_RUNS, _LONG_RUNS = 1_000, 50
"""Runs of a plan that go to a worker: after one that took too many steps, and after one that took too long. (That may
be the fault of the machine.)
"""
_SLOW_PLANS, _SLOW_BYTES, _PER_SLOW = 1_000, 4 << 20, 100


class SqliteStore:
    """A SQLite file, or a database in memory for the path `:memory:`."""

    dialect = SQLITE
    numbers = False
    replicas: Sequence[ReplicaState] = ()
    relay = None
    primary_reads = 0
    look_every = 0.05

    def __init__(
        self,
        path: str,
        *,
        budget: int = 200_000,
        timeout: float = 5.0,
        workers: int = 4,
        waiting: int = 1_000,
        only_process: bool = False,
        triggers: bool = True,
    ) -> None:
        self._triggers = triggers
        # a path that begins with file: would be taken for a URI
        path = f"./{path}" if path.startswith("file:") else path
        self._in_memory = path == ":memory:"
        self._maps = only_process and not self._in_memory
        """May the file be mapped, and reads share a snapshot? Writes of other processes are not seen."""
        self.path = f"file:/diptych-{id(self)}?vfs=memdb" if self._in_memory else path
        self.budget = budget
        self.timeout = timeout
        self._dog = Watchdog()
        self._slow: LRUCache[int] = LRUCache("slow statements", _SLOW_PLANS, _SLOW_BYTES)
        self._loop_budget = loop_budget()
        self.health = WriteHealth(reason_of)
        self._probing = Probe(self.health, self.write)
        self._waiting = waiting
        self.semaphore: FairSemaphore[None] = FairSemaphore(workers, waiting, PATIENCE)
        self._pool: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._workers: list[SqliteConnection] = []
        self._inline: SqliteConnection | None = None
        self._writer: SqliteConnection | None = None
        self._changes: Writer | None = None
        self._recursive = False

    @property
    def places(self) -> int:
        return self.semaphore.size

    @property
    def load(self) -> StoreLoad:
        places, writer = self.semaphore, self._changes
        writes = 0 if writer is None else writer.waiting
        return StoreLoad(places.size, places.size - places.free, places.waiting, writes, not self.health.reason)

    async def open(self, model: Model, *, add_columns: bool = False, accept: bool = False) -> Fitted:
        self.semaphore = FairSemaphore(self.semaphore.size, self._waiting, PATIENCE)
        self._dog = Watchdog()
        self._pool = ThreadPoolExecutor(self.semaphore.size, "diptych-sqlite")
        if not self._in_memory:
            make_private(self.path)
        try:
            self._recursive = is_recursive(model.resources)
            self._writer = self._write_connection()
            self._writer.db.execute("BEGIN IMMEDIATE")  # one process at a time makes the tables
            try:
                fitted = self._fit(self._writer.db, model, add_columns, accept)
            except BaseException:
                self._writer.db.execute("ROLLBACK")
                raise
            self._writer.db.execute("COMMIT")
            self._inline = self._inline_connection()
            if self._maps:
                self._inline.map_later()
            shared = self._waiting, self._loop_budget, self.health
            self._changes = Writer(self._connect, self.timeout, *shared, acts=bool(model.audited))
        except apsw.Error as error:
            raise self._unopened(error) from None
        for caution in self.cautions():
            warn_once(caution)
        return fitted

    def _write_connection(self) -> SqliteConnection:
        connection = SqliteConnection(self.path, self._dog, write=True)
        if self._recursive:  # a deletion takes rows of its own table along (`compile/system/trash.py`)
            connection.db.execute("PRAGMA recursive_triggers=ON").fetchall()
        return connection

    def _inline_connection(self) -> SqliteConnection:
        """The connection for reads in the loop: that which made the tables, since each one parses the whole schema.

        The writer opens its own at the first write, in its thread. A database in memory lives as long as a connection
        to it, so there that which made it stays.
        """
        if self._in_memory or self._writer is None:
            return SqliteConnection(self.path, self._dog, inline=True)
        connection, self._writer = self._writer, None
        connection.only_read(inline=True)
        return connection

    def _unopened(self, error: apsw.Error) -> StartError:
        return StartError(f"The SQLite database {self.path} cannot be opened: {error_text(error)}.")

    def _fit(self, db: apsw.Connection, model: Model, add: bool, accept: bool) -> Fitted:
        parts = dict(db.execute("SELECT name, sql FROM sqlite_schema"))
        have = sqlite_catalogue(db)
        return _drive(db, fit(model, have, parts, "sqlite", add=add, accept=accept, triggers=self._triggers))

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        if self._changes is not None:
            await loop.run_in_executor(None, self._changes.close)
            self._changes = None
        self.semaphore.close()
        if self._pool is not None:
            await loop.run_in_executor(None, self._pool.shutdown)
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
        """Run work on a read-only connection of its own, which makes no file."""
        try:
            with closing(apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)) as db:
                return work(db)
        except apsw.Error as error:
            raise self._unopened(error) from None

    def cautions(self) -> list[str]:
        return [] if self._in_memory else exposed(self.path)

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> BytesRow:
        row = self.run_now(plan, parameters)
        return await self.run_apart(plan, parameters) if row is None else row

    def run_now(self, plan: Plan, parameters: Sequence[Any]) -> BytesRow | None:
        inline = self._inline
        if inline is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        if plan.searches:
            return None
        left = self._slow.get(plan.sql) if self._slow.used else None
        if not left:
            if not self._loop_budget.in_use or self._loop_budget.has_tokens(CALLER.get()):
                used = None if left is None else time.thread_time()
                begun = time.perf_counter()
                row: BytesRow | None = None
                try:
                    row = inline.run_inline(plan, parameters, self.budget, begun)
                    return row
                except apsw.InterruptError:
                    self._remember(plan, _SLOW_RUNS if inline.is_out_of_steps else _LONG_RUNS)
                except apsw.BusyError:
                    pass  # a database in memory is being written: a worker waits for that
                except PASSING as error:
                    raise read_refusal(error) from error
                finally:
                    took = time.perf_counter() - begun
                    if used is not None:
                        self._charge(plan, time.thread_time() - used)
                    elif took > NOTED:
                        self._note(plan, took, took if row is None else inline.estimate(self.budget, row))
        elif left > 1:
            self._remember(plan, left - 1)
        else:
            self._slow.drop(plan.sql)
        return None

    def _note(self, plan: Plan, took: float, estimate: float) -> None:
        """Charge a read in the loop to its caller; a plan that took too long goes to a worker from now on.

        On a busy machine a read takes long because it is not running: no more than its estimate is charged. If that is
        short, it may have read long texts; the clock of the thread, which is expensive to read, measures its next run.
        """
        if took > INLINE_DEADLINE:
            self._remember(plan, _LONG_RUNS)
        elif estimate <= NOTED:
            self._remember(plan, 0)
        if estimate > NOTED:
            self._loop_budget.spend(CALLER.get(), min(took, estimate))

    def _charge(self, plan: Plan, used: float) -> None:
        """Charge a read whose processor time was measured; one that was short is not measured again."""
        if used > NOTED:
            self._loop_budget.spend(CALLER.get(), used)
        elif not self._slow.get(plan.sql):
            self._slow.drop(plan.sql)

    async def run_apart(self, plan: Plan, parameters: Sequence[Any]) -> BytesRow:
        """Run in a worker, with a permit of the semaphore."""
        caller = CALLER.get()
        if not self.semaphore.acquire_nowait(caller):
            await self.semaphore.acquire(caller)
        task = ReadTask(plan, parameters)
        work = self._submit(caller, self._work, task)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            task.cancel()  # frees the worker
            raise

    def _submit(self, caller: str, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Submit work to the thread pool. The permit is released when the thread is done, even after a cancellation."""
        loop = asyncio.get_running_loop()
        since = loop.time()

        def done(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lambda: self.semaphore.release(caller, loop.time() - since))

        try:
            if self._pool is None:
                raise Refusal(Code.UNAVAILABLE, "The database is closed.")
            future = self._pool.submit(work, *arguments)
        except BaseException as error:
            self.semaphore.release(caller)
            if isinstance(error, RuntimeError):
                raise Refusal(Code.UNAVAILABLE, "The database is closed.") from error
            raise
        future.add_done_callback(done)
        return future

    def _remember(self, plan: Plan, runs: int) -> None:
        """Send the next runs of a plan to a worker; if there are none, the next one in the loop is measured."""
        self._slow.put(plan.sql, runs, len(plan.sql) + _PER_SLOW)

    def _work(self, task: ReadTask) -> BytesRow:
        """Run in a worker thread, on a connection of its own."""
        try:
            connection: SqliteConnection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = SqliteConnection(self.path, self._dog)
                self._workers.append(connection)
            return task.run(connection, self.timeout)
        except PASSING as error:
            raise read_refusal(error) from error

    async def write(self, script: Callable[[], Script[T]], locks: str = "") -> T:
        return await self._require_writer().write(script)

    def change(self, step: Step, lookup: Callable[[], Step]) -> Awaitable[Changed]:
        return self._require_writer().change(step)

    def read_from(self, urls: Sequence[str], model: Model) -> feed.Run:
        raise StartError("Replicas are standbys of PostgreSQL; SQLite has none.")

    async def session(self, *, reading: bool = False) -> Session:
        if not reading:
            return await self._require_writer().session()
        session = Session(asyncio.get_running_loop(), self.timeout, "BEGIN")
        caller = CALLER.get()
        if not self.semaphore.acquire_nowait(caller):
            await self.semaphore.acquire(caller)
        self._submit(caller, self._serve, session)
        return await session.ready()

    def _serve(self, session: Session) -> None:
        """Run a session that only reads, in a worker thread, on a connection of its own."""
        try:
            connection = SqliteConnection(self.path, self._dog)
        except Exception as error:
            return session.fail(as_refusal(error))
        try:
            session.serve(Writing(connection.db, connection.guard, self.timeout))
        finally:
            connection.close()
        return None

    # the feed

    async def head(self) -> FeedHead:
        return feed.head_of(await self.run(feed.SQLITE_HEAD, ()))

    async def peek(self) -> FeedPeek:
        return FeedPeek(await self.head(), is_waiting=False)

    async def trim(self, before: datetime, rows: int, most: int = 1000) -> int:
        return await self.write(lambda: feed.trim_sqlite(before, rows, most))

    def on_commit(self, wake: Callable[[], None] | None, heard: Callable[[str], bool] | None = None) -> None:
        if self._changes is not None:
            self._changes.on_commit(wake)

    def _require_writer(self) -> Writer:
        if self._changes is None or self._inline is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        if self._maps:
            self._inline.map_later()
        return self._changes

    def _connect(self) -> Writing:
        """A connection for writes: that which inserted rows in bulk, if there is one."""
        connection, self._writer = self._writer, None
        if connection is None or self._in_memory:
            self._writer = connection  # a database in memory lives as long as a connection to it
            connection = self._write_connection()
        return Writing(connection.db, connection.guard, self.timeout, connection.close, self.health)

    async def ping(self) -> None:
        if self._inline is None:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        try:
            self._inline.run_inline(Plan("SELECT 1"), (), self.budget, time.perf_counter())
        except PASSING as error:
            raise read_refusal(error) from error
        self._probing.check()

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        connection, self._writer = self._writer or self._write_connection(), None
        plan = insert_plan(resource, names, SQLITE)
        try:
            with connection.db as db:
                db.executemany(plan.sql, (plan.parameters(row, NOBODY, {}) for row in rows))
        finally:
            self._writer = connection
            if self._maps and self._inline is not None:
                self._inline.map_later()


def _drive(db: apsw.Connection, fitting: Fitting[T]) -> T:
    """Run the statements of a fitting, and send it the rows of each."""
    try:
        step = next(fitting)
        while True:
            step = fitting.send(db.execute(step.sql, step.parameters).fetchall())
    except StopIteration as end:
        return cast(T, end.value)
