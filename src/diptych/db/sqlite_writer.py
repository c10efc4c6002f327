"""SQLite's one writer: it commits what came together, together.

A commit waits for the disk, so a thread makes it, and all the scripts that come while it is under way share the
next. Each runs in a savepoint of its own, and nobody hears of success before the commit is on disk. Short scripts run
in the loop itself, since a hop between threads costs more than they do; if one takes too long there, or another
process has the file, nothing of them is kept, and the thread runs them.

There, a script that fails is undone alone. If the whole transaction is lost with it (a statement took too long), the
others run again together; if the store itself failed (the disk is full), each runs again in a transaction of its own,
so that only those fail that cannot be done. One whose caller has gone before its turn is left out.

Code of the model's own takes its turn as a Session: a transaction that it has for itself, under a budget of time.

Callers wait in a Line, and after every transaction the next ones are chosen anew. So whoever comes waits for what is
under way, and then for no more than one turn of each other caller, however much these have put in line.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import apsw

from diptych.asking import ASKER
from diptych.db.credit import NOTED, Credit
from diptych.db.line import Line, Taken
from diptych.db.script import Again, Row, Script, Step, one_step
from diptych.db.sqlite_connection import STORE, Connection, reason_of, told
from diptych.db.sqlite_job import Job, call, settle
from diptych.db.sqlite_session import Session
from diptych.db.write_health import WriteHealth
from diptych.errors import Code, Refusal

T = TypeVar("T")
_MOST = 64
"""Scripts that share a transaction."""
_LONG = 0.1
"""Seconds after which a transaction takes no further script in: others wait for its commit."""
_ATTEMPTS = 3
_SHORT = 0.02
"""Seconds that a script may take in the loop, and after which no other one is begun there."""


class Writer:
    """The line, and who has the connection: the loop, for short work, or else a thread of its own."""

    def __init__(
        self, connect: Callable[[], Connection], budget: float, waiting: int = 1_000, credit: Credit | None = None,
        health: WriteHealth | None = None,
    ) -> None:
        self._connect = connect
        self.health = health or WriteHealth(reason_of)
        self._budget = budget
        self._credit = credit or Credit()
        self._waiting: Line[Job[Any] | Session] = Line(waiting)
        self._door = threading.Lock()
        self._at_work = False
        """Has someone the connection, or will have it soon?"""
        self._closed = False
        self._home: asyncio.AbstractEventLoop | None = None
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        """What the thread does, one after the other."""
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._wake: tuple[Callable[[], None], asyncio.AbstractEventLoop] | None = None

    def on_commit(self, wake: Callable[[], None] | None) -> None:
        """Have something called in this loop after whatever may have been a commit."""
        self._wake = None if wake is None else (wake, asyncio.get_running_loop())

    async def write(self, script: Callable[[], Script[T]]) -> T:
        """Run a script; its result comes when it is committed."""
        job = Job(script, asyncio.get_running_loop())
        self._put(job, job.loop)
        return await job.future

    def change(self, step: Step) -> asyncio.Future[Row]:
        """Run a statement that is a change by itself; its row comes when it is committed."""
        job: Job[Row] = Job(partial(one_step, step), asyncio.get_running_loop(), step)
        self._put(job, job.loop)
        return job.future

    async def session(self) -> Session:
        """A transaction of one's own; whoever asks for it must end it."""
        loop = asyncio.get_running_loop()
        session = Session(loop, self._budget)
        self._put(session, loop)
        return await session.ready()

    def _put(self, item: Job[Any] | Session, loop: asyncio.AbstractEventLoop) -> None:
        with self._door:
            if self._closed:
                raise Refusal(Code.UNAVAILABLE, "The database is closed.")
            self._waiting.put(ASKER.get(), item, _is_gone)
            if self._thread is None:
                self._home = loop
                self._thread = threading.Thread(target=self._run, name="diptych-writer", daemon=True)
                self._thread.start()
            begins, self._at_work = not self._at_work, True
        if begins and loop is self._home:
            loop.call_soon(self._turn)
        elif begins:
            self._at_home(self._turn)

    def close(self) -> None:
        """Finish what is in line, and end. Not to be called in the loop, which has a part in that."""
        with self._door:
            self._closed = True
            if not self._at_work:
                self._work.put(None)
        if self._thread is not None:
            self._thread.join()

    def _at_home(self, what: Callable[[], None]) -> None:
        """Have something done in the loop; where there is none any more, the thread does it."""
        try:
            assert self._home is not None
            self._home.call_soon_threadsafe(what)
        except RuntimeError:
            self._work.put(what)

    # in the loop

    def _after(self) -> None:
        """Something may have been committed: whoever wants to know is told, and the next has its turn."""
        try:
            if self._wake is not None:
                wake, loop = self._wake
                if loop is self._home and not loop.is_closed():
                    wake()
                else:
                    call(loop, wake)
        finally:
            self._turn()

    def _turn(self) -> None:
        """Whoever is next: the connection is free."""
        with self._door:
            batch, session = self._take()
            if not batch and session is None:
                self._at_work = False
                if self._closed:
                    self._work.put(None)
                return
        if session is not None:
            self._work.put(partial(self._serve, session))
        elif ran := self._run_here(batch):
            self._put_back(batch[ran:])
            self._work.put(partial(self._seal, batch[:ran]))
        else:
            self._work.put(partial(self._commit, batch))

    def _take(self) -> tuple[list[Job[Any]], Session | None]:
        """The scripts that are next in line, or a session, or a script that must be alone."""
        batch: list[Job[Any]] = []
        while len(batch) < _MOST and (found := self._waiting.take(_joins if batch else None)) is not None:
            item = found.item
            if isinstance(item, Session):
                return batch, item
            item.turn = found.turn
            if not item.future.cancelled():
                batch.append(item)
                if item.alone:
                    break
        return batch, None

    def _put_back(self, jobs: Sequence[Job[Any]]) -> None:
        """They are still to be done, and their callers' turns are not over."""
        if jobs:
            with self._door:
                self._waiting.put_back(Taken(job.who, job, job.turn) for job in jobs)

    def _run_here(self, batch: Sequence[Job[Any]]) -> int:
        """Run scripts right here, up to their commit: a hop between threads costs more than a short statement.

        Gives how many ran: those that fit into the time. None, and nothing is done, if that is not to be done here: the
        file is locked, a statement takes too long, or someone among them has used too much of the loop's time.
        """
        connection = self._connection
        if connection is None or batch[0].alone or not self._may_run_here(batch):
            return 0
        connection.patient = False
        ran, begun = 0, time.monotonic()
        now = begun
        try:
            connection.begin(most=_SHORT)
            for job in batch:
                connection.start_clock(_SHORT)
                self._run_one(connection, job)
                ran += 1
                before, now = now, time.monotonic()
                if now - before > NOTED:
                    self._credit.spend(job.who, now - before)
                if now - begun > _SHORT:
                    break
        except Exception:
            self._credit.spend(batch[ran].who, time.monotonic() - now)
            with suppress(apsw.Error):
                connection.undo()
            return 0
        finally:
            connection.stop_clock()
            connection.patient = True
        return ran

    def _may_run_here(self, batch: Sequence[Job[Any]]) -> bool:
        return not self._credit.earned or all(self._credit.has(who) for who in {job.who for job in batch})

    @staticmethod
    def _run_one(connection: Connection, job: Job[Any]) -> None:
        """One of several scripts."""
        job.error = None
        if job.step is not None:
            job.result = connection.run_alone(job.step)
            return
        connection.execute("SAVEPOINT one")
        try:
            job.result = connection.drive(job.script())
        except (Refusal, Again) as error:
            job.error = error
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")

    def _tell(self, batch: Sequence[Job[Any]]) -> None:
        """Success, or what else became of them; then the next turn."""
        for job in batch:
            job.settled = True
            if job.loop is self._home:
                with suppress(RuntimeError):  # the loop is closed: nobody waits
                    job.tell()
            else:
                settle([job])
        assert self._home is not None
        if self._home.is_closed():
            self._work.put(self._turn)
        else:
            self._home.call_soon(self._after)

    # in the thread

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
        self._drop()

    def _seal(self, batch: Sequence[Job[Any]]) -> None:
        """Commit what ran in the loop; if that fails, each runs alone."""
        connection = self._open()
        again: Sequence[Job[Any]] = [job for job in batch if isinstance(job.error, Again)]
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
            self._at_home(partial(self._tell, batch))

    def _serve(self, session: Session) -> None:
        try:
            session.serve(self._open())
        except BaseException as error:
            self._drop()
            self.health.failed(error)
            session.fail(told(error))
        self._at_home(self._after)

    def _commit(self, batch: Sequence[Job[Any]], rest: Sequence[Job[Any]] = ()) -> None:
        """Run scripts and commit them. The rest is committed already."""
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
                    job.fail(told(error))
        self._at_home(self._after)

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _drop(self) -> None:
        """Leave the connection; the next round makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()

    def _share(self, connection: Connection, jobs: Sequence[Job[Any]]) -> Sequence[Job[Any]]:
        """One transaction for all, or for as many as fit. Gives those that are left to do, some of them alone."""
        connection.begin()
        until = time.monotonic() + _LONG
        ran: list[Job[Any]] = []
        try:
            for job in jobs:
                if time.monotonic() > until:
                    break
                ran.append(job)
                if not job.future.cancelled() and not self._apart(connection, job):
                    return [each for each in jobs if each is not job]
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

    def _apart(self, connection: Connection, job: Job[Any]) -> bool:
        """Run one of several. Says no if the whole transaction is lost with it."""
        job.error = None
        connection.execute("SAVEPOINT one")
        connection.start_clock()
        try:
            job.result = connection.drive(job.script())
        except STORE:
            raise
        except Exception as error:
            job.error = told(error)
            if not connection.is_open:
                settle([job])
                return False
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return True

    def _alone(self, connection: Connection, job: Job[Any]) -> None:
        for _ in range(_ATTEMPTS):
            if job.future.cancelled():
                return
            connection.begin()
            try:
                connection.start_clock()
                job.result = connection.drive(job.script())
                connection.commit()
                self.health.worked()
            except Exception as error:
                self.health.failed(error)
                connection.undo()
                job.error = told(error)
            else:
                job.error = None
            if not isinstance(job.error, Again):
                return settle([job])
        return job.fail(Refusal(Code.UNAVAILABLE, "Others keep changing this; try again."))


def _is_gone(item: Job[Any] | Session) -> bool:
    """Does nobody wait for it any more?"""
    return (item.begun if isinstance(item, Session) else item.future).cancelled()


def _joins(_: str, item: Job[Any] | Session) -> bool:
    """Can it share a transaction?"""
    return isinstance(item, Job) and not item.alone
