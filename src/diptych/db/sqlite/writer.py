"""The one writer of SQLite, with group commit.

A commit waits for the disk, so a thread makes it, and all scripts that come meanwhile share the next one. Each runs in
a savepoint of its own, and no success is reported before the commit is on disk. Short scripts run in the loop itself,
since a hop between threads costs more than they do; if one takes too long there, or another process has locked the
file, all of them are rolled back, and the thread runs them.

There, a script that fails is rolled back alone. If the whole transaction is lost with it (a statement took too long),
the others run again together; if the store itself failed (the disk is full), each runs again in a transaction of its
own, so that only those fail that cannot be done. A job that was cancelled in the queue is left out.

Model code gets a Session: a transaction of its own, with a time limit.

Jobs wait in a FairQueue, and after every transaction the next batch is taken from it. So a job waits for the current
transaction, and then for at most one item of each other caller, however many these have queued.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import apsw

from diptych.ask.act import ACT
from diptych.db.script import Again, ResultRow, Script, Step
from diptych.db.sqlite.job import WriterJob, call, settle
from diptych.db.sqlite.session import Session
from diptych.db.sqlite.writing import STORE_ERRORS, WriteConnection, as_refusal, reason_of
from diptych.db.write_health import WriteHealth
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.fair.loop_budget import NOTED, loop_budget
from diptych.fair.queue import FairQueue, Taken, full
from diptych.fair.token_bucket import TokenBuckets

T = TypeVar("T")
_MOST = 64
"""Scripts that share a transaction."""
_LONG = 0.1
"""Seconds after which a transaction takes no further script, since others wait for its commit."""
_ATTEMPTS = 3
_SHORT = 0.02
"""Seconds that a script may take in the loop, and after which no further one is started there."""


class Writer:
    """The queue of jobs, and one connection, used by the loop for short work and else by a thread."""

    def __init__(
        self,
        connect: Callable[[], WriteConnection],
        budget: float,
        waiting: int = 1_000,
        loop_time: TokenBuckets | None = None,
        health: WriteHealth | None = None,
        *,
        acts: bool = False,
    ) -> None:
        self._acts = acts
        self._connect = connect
        self.health = health or WriteHealth(reason_of)
        self._budget = budget
        self._loop_budget = loop_budget() if loop_time is None else loop_time
        self._waiting: FairQueue[WriterJob[Any] | Session] = FairQueue(waiting)
        self._lock = threading.Lock()
        self._at_work = False
        """Is the connection in use, or about to be?"""
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        """Work for the thread; None ends it."""
        self._thread: threading.Thread | None = None
        self._connection: WriteConnection | None = None
        self._wake: tuple[Callable[[], None], asyncio.AbstractEventLoop] | None = None

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        return len(self._waiting)

    def on_commit(self, wake: Callable[[], None] | None) -> None:
        """Set the callback that runs in this loop after each possible commit."""
        self._wake = None if wake is None else (wake, asyncio.get_running_loop())

    async def write(self, script: Callable[[], Script[T]]) -> T:
        """Run a script; returns its result once it is committed."""
        loop = asyncio.get_running_loop()
        job = WriterJob(script, loop, loop.create_future(), caller := CALLER.get(), ACT.get() if self._acts else None)
        self._put(caller, job, loop)
        return cast(T, await job.future)

    def change(self, step: Step) -> asyncio.Future[ResultRow]:
        """Run a statement that is a change by itself; the future gets its row once it is committed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ResultRow] = loop.create_future()
        caller, act = CALLER.get(), ACT.get() if self._acts else None
        self._put(caller, WriterJob(None, loop, future, caller, act, step), loop)
        return future

    async def session(self) -> Session:
        """A transaction of its own, which the caller must end."""
        loop = asyncio.get_running_loop()
        self._put(CALLER.get(), session := Session(loop, self._budget, acts=self._acts), loop)
        return await session.ready()

    def _put(self, caller: str, item: WriterJob[Any] | Session, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._closed:
                raise Refusal(Code.UNAVAILABLE, "The database is closed.")
            dropped = self._waiting.put(caller, item, _is_cancelled)
            if self._thread is None:
                self._loop = loop
                self._thread = threading.Thread(target=self._run, name="diptych-writer", daemon=True)
                self._thread.start()
            begins, self._at_work = not self._at_work, True
        if dropped is not None:
            dropped[1].fail(full())
        if begins and loop is self._loop:
            loop.call_soon(self._run_next)
        elif begins:
            self._call_in_loop(self._run_next)

    def close(self) -> None:
        """Finish all queued jobs, and end. It blocks, and must not be called in the loop."""
        with self._lock:
            self._closed = True
            if not self._at_work:
                self._work.put(None)
        if self._thread is not None:
            self._thread.join()

    def _call_in_loop(self, what: Callable[[], None]) -> None:
        """Schedule a call in the loop; if that is closed, in the thread."""
        try:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            self._work.put(what)

    # in the loop

    def _after(self) -> None:
        """After a possible commit: run the callback, and then the next batch."""
        try:
            if self._wake is not None:
                wake, loop = self._wake
                if loop is self._loop and not loop.is_closed():
                    wake()
                else:
                    call(loop, wake)
        finally:
            self._run_next()

    def _run_next(self) -> None:
        """Run the next batch or session, now that the connection is free."""
        with self._lock:
            batch, session = self._next_batch()
            if not batch and session is None:
                self._at_work = False
                if self._closed:
                    self._work.put(None)
                return
        if session is not None:
            self._work.put(partial(self._serve, session))
        elif ran := self._run_here(batch):
            self._put_back(batch[ran:])
            self._work.put(partial(self._commit_batch, batch[:ran]))
        else:
            self._work.put(partial(self._commit, batch))

    def _next_batch(self) -> tuple[list[WriterJob[Any]], Session | None]:
        """Take the next batch of jobs, a session, or a job that must be alone."""
        batch: list[WriterJob[Any]] = []
        while len(batch) < _MOST and (taken := self._waiting.take(_joins if batch else None)) is not None:
            item = taken.item
            if isinstance(item, Session):
                return batch, item
            item.ticket = taken.ticket
            if not item.future.cancelled():
                batch.append(item)
                if item.alone:
                    break
        return batch, None

    def _put_back(self, jobs: Sequence[WriterJob[Any]]) -> None:
        """Put jobs back into the queue, where they were."""
        if jobs:
            with self._lock:
                self._waiting.put_back(Taken(job.caller, job, job.ticket) for job in jobs)

    def _run_here(self, batch: Sequence[WriterJob[Any]]) -> int:
        """Run scripts in the loop, up to their commit: a hop between threads costs more than a short statement.

        Returns how many ran in the time. That is 0, and nothing is done, if they must run in the thread: the file is
        locked, a statement takes too long, or the loop budget of one of their callers is empty.
        """
        connection = self._connection
        if connection is None or batch[0].alone or not self._may_run_here(batch):
            return 0
        connection.patient = False
        ran, now = 0, time.perf_counter()
        until, most = now + _SHORT, min(_SHORT, connection.timeout)
        try:
            connection.begin(most=_SHORT)
            for job in batch:
                self._run_one(connection, job)
                ran += 1
                before, now = now, time.perf_counter()
                if now - before > NOTED:
                    self._loop_budget.spend(job.caller, now - before)
                if now > until:
                    break
                connection.restart_clock(now + most)
        except Exception:
            self._loop_budget.spend(batch[ran].caller, time.perf_counter() - now)
            with suppress(apsw.Error):
                connection.undo()
            return 0
        finally:
            connection.stop_clock()
            connection.patient = True
        return ran

    def _may_run_here(self, batch: Sequence[WriterJob[Any]]) -> bool:
        budget = self._loop_budget
        return not budget.in_use or all(budget.has_tokens(caller) for caller in {job.caller for job in batch})

    @staticmethod
    def _run_one(connection: WriteConnection, job: WriterJob[Any]) -> None:
        """Run one script of a batch, in a savepoint."""
        job.error = None
        if job.step is not None:
            act = job.act
            job.result = connection.run_alone(job.step) if act is None else connection.run_as(act, job.step)
            return
        connection.execute("SAVEPOINT one")
        try:
            job.result = connection.drive_as(job.act, job.begin())
        except (Refusal, Again) as error:
            job.error = error
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")

    def _deliver(self, batch: Sequence[WriterJob[Any]]) -> None:
        """Report the outcome of a batch; then run the next."""
        assert self._loop is not None
        is_closed = self._loop.is_closed()
        for job in batch:
            job.settled = True
            if job.loop is not self._loop:
                settle([job])
            elif not is_closed:
                job.deliver()
        if is_closed:
            self._work.put(self._run_next)
        else:
            self._loop.call_soon(self._after)

    # in the thread

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
        self._drop()

    def _commit_batch(self, batch: Sequence[WriterJob[Any]]) -> None:
        """Commit what ran in the loop; if that fails, the thread runs it again."""
        connection = self._open()
        again: Sequence[WriterJob[Any]] = [job for job in batch if isinstance(job.error, Again)]
        try:
            connection.start_clock()
            connection.execute("COMMIT")
            self.health.worked()
        except apsw.Error:
            again = batch
        finally:
            connection.stop_clock()
        if again:
            self._commit(batch if again is batch else again, rest=[job for job in batch if job not in again])
        else:
            self._call_in_loop(partial(self._deliver, batch))

    def _serve(self, session: Session) -> None:
        try:
            session.serve(self._open())
        except BaseException as error:
            self._drop()
            self.health.failed(error)
            session.fail(as_refusal(error))
        self._call_in_loop(self._after)

    def _commit(self, batch: Sequence[WriterJob[Any]], rest: Sequence[WriterJob[Any]] = ()) -> None:
        """Run scripts and commit them. The `rest` is committed already."""
        settle(rest)
        try:
            connection = self._open()
            connection.undo()
            if len(batch) > 1:
                self._put_back(self._share(connection, batch))
            else:
                self._alone(connection, batch[0])
            connection.stop_clock()
        except BaseException as error:
            self._drop()
            self.health.failed(error)
            for job in batch:
                if not job.settled:
                    job.fail(as_refusal(error))
        self._call_in_loop(self._after)

    def _open(self) -> WriteConnection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _drop(self) -> None:
        """Close the connection; the next batch makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()

    def _share(self, connection: WriteConnection, jobs: Sequence[WriterJob[Any]]) -> Sequence[WriterJob[Any]]:
        """Run jobs in one transaction, as many as fit. Returns those that are left, some of them to run alone."""
        connection.begin()
        until = time.monotonic() + _LONG
        ran: list[WriterJob[Any]] = []
        try:
            for job in jobs:
                if time.monotonic() > until:
                    break
                ran.append(job)
                if not job.future.cancelled() and not self._apart(connection, job):
                    return [other for other in jobs if other is not job]
            connection.execute("COMMIT")
            self.health.worked()
        except apsw.Error:
            connection.undo()
            again = ran
        else:
            again = [job for job in ran if isinstance(job.error, Again)]
            settle([job for job in ran if job not in again] if again else ran)
        for job in again:
            job.alone = True
        return [*again, *jobs[len(ran) :]]

    def _apart(self, connection: WriteConnection, job: WriterJob[Any]) -> bool:
        """Run one job of a batch. Returns False if the whole transaction is lost with it."""
        job.error = None
        connection.execute("SAVEPOINT one")
        connection.start_clock()
        try:
            job.result = connection.drive_as(job.act, job.begin())
        except STORE_ERRORS:
            raise
        except Exception as error:
            job.error = as_refusal(error)
            if not connection.is_open:
                settle([job])
                return False
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return True

    def _alone(self, connection: WriteConnection, job: WriterJob[Any]) -> None:
        for _ in range(_ATTEMPTS):
            if job.future.cancelled():
                return
            connection.begin()
            try:
                connection.start_clock()
                job.result = connection.drive_as(job.act, job.begin())
                connection.commit()
                self.health.worked()
            except Exception as error:
                self.health.failed(error)
                connection.undo()
                job.error = as_refusal(error)
            else:
                job.error = None
            if not isinstance(job.error, Again):
                return settle([job])
        return job.fail(Refusal(Code.UNAVAILABLE, "Others keep changing this; try again."))


def _is_cancelled(item: WriterJob[Any] | Session) -> bool:
    """Was it cancelled in the queue?"""
    return (item.begun if isinstance(item, Session) else item.future).cancelled()


def _joins(_: str, item: WriterJob[Any] | Session) -> bool:
    """Can an item of the queue share a transaction with others?"""
    return isinstance(item, WriterJob) and not item.alone
