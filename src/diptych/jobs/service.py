"""The jobs of one process: which of them it runs, by leases in the database.

It looks at the queue after every commit of a job in this process, and every POLL seconds for those of others. A job
that is due is leased and runs beside at most `job_concurrency - 1` others; its lease is renewed while it runs. A tick
of a schedule has one place more, so that it does not wait for jobs that run long. When a node dies, another takes its
jobs over within LEASE seconds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct

from diptych.ask.act import ACT, Act
from diptych.config import Config
from diptych.db.job_queue import LEASES, QUEUE, QueuedJob, Run, waiting
from diptych.db.violations import is_moved
from diptych.engine.call import CallEngine
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.fair.caller import CALLER
from diptych.jobs.counts import DELAY, ENDED, QUEUED, RUNNING, SECONDS
from diptych.jobs.retention import sweep
from diptych.jobs.run import JobRunner
from diptych.jobs.schedules import Schedules
from diptych.model.declare.job_tx import LostJob

log = logging.getLogger("diptych")
LEASE = 15.0
"""Seconds for which a node has a job without renewing its lease."""
POLL = 2.0
"""Seconds between two looks at the queue, if no commit of this process was before."""
_SWEEP = 3_600.0


class _Running(Struct, eq=False):
    """A job that runs here."""

    run: Run
    task: asyncio.Task[None]
    lease_until: float
    """By the monotonic clock."""
    is_tick: bool


class JobService:
    """Runs jobs, where the model has some."""

    def __init__(self, calls: CallEngine, config: Config, is_draining: Callable[[], bool] = lambda: False) -> None:
        self.store = calls.engine.store
        self.node = secrets.token_hex(8)
        self._engine = calls.engine
        self._runner = JobRunner(calls, config.job_timeout)
        self._names = calls.engine.model.job_names
        self._schedules = Schedules(calls.write_engine)
        self._ticks = frozenset(self._schedules.names)
        self._calls = calls
        self._most = config.job_concurrency
        self._drain = config.job_drain
        self._retention = config.job_retention
        self._is_draining = is_draining
        self._running: dict[str, _Running] = {}
        self._woken = asyncio.Event()
        self._renewed_at = 0.0
        self._going = Background()

    async def start(self) -> None:
        """Begin to run jobs."""
        self._engine.wake_jobs = self._woken.set
        self._going.start(self._work())

    async def stop(self) -> None:
        """Let running jobs end for a while, and leave the others to other nodes."""
        await self._going.stop()
        end = time.monotonic() + self._drain
        while self._running and (left := end - time.monotonic()) > 0:
            tasks = [running.task for running in self._running.values()]
            await asyncio.wait(tasks, timeout=min(left, LEASE / 3))
            with suppress(Refusal):
                await self._renew()
        for running in tuple(self._running.values()):
            await self._release(running)

    async def _release(self, running: _Running) -> None:
        running.task.cancel()
        await asyncio.wait([running.task])
        try:
            await self._runner.release(running.run)
        except LostJob:
            pass  # it has ended meanwhile
        except Refusal as refusal:
            log.warning("the lease of the job %s ends by itself: %s", running.run.id, refusal)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rounds())
            group.create_task(self._sweeps())

    async def _rounds(self) -> None:
        CALLER.set("jobs")
        failed = is_declared = False
        while True:
            self._woken.clear()
            try:
                if not is_declared:
                    await self._schedules.declare()
                    is_declared = True
                wait = await self.look()
                failed = False
            except Exception as error:
                if is_moved(error):  # another process runs them, from there
                    return
                if not failed:
                    unforeseen = None if isinstance(error, Refusal) else error
                    log.warning("the queue of jobs cannot be read: %s", error, exc_info=unforeseen)
                failed, wait = True, POLL
            with suppress(TimeoutError):
                async with asyncio.timeout(max(wait, 0.01)):
                    await self._woken.wait()

    async def _sweeps(self) -> None:
        """Delete jobs that ended long ago; beside the queue, whose leases are renewed meanwhile."""
        CALLER.set("jobs")
        while True:
            try:
                if not self._is_draining():
                    await sweep(self._calls, self._retention)
            except Exception as error:
                if is_moved(error):
                    return
                unforeseen = None if isinstance(error, Refusal) else error
                log.warning("jobs that ended long ago cannot be deleted: %s", error, exc_info=unforeseen)
            await asyncio.sleep(_SWEEP * random.uniform(0.8, 1.2))

    async def look(self) -> float:
        """Look at the queue once, and start what may run; returns the seconds until there may be more."""
        await self._renew()
        wait = POLL * random.uniform(0.8, 1.2)
        if self._is_draining():  # others run what is queued now
            return wait
        if self._schedules.names:
            wait = min(wait, await self._schedules.look())
        found = await waiting(self.store, self._names)
        now = time.time() * 1000
        since = [max(job.next_at, job.created_at) for job in found.jobs]
        QUEUED[0], DELAY[0] = len(since), max(0.0, now - min(since, default=now)) / 1000
        if found.later is not None:
            wait = min(wait, max(0.0, found.later - now) / 1000)
        for job in found.jobs:
            if job.id not in self._running and self._has_place(job.name in self._ticks):
                await self._take(job.id)
        return wait

    def _has_place(self, is_tick: bool) -> bool:
        """May another job run beside those that do? One tick is not counted."""
        has_tick = is_tick or any(running.is_tick for running in self._running.values())
        return len(self._running) < self._most + has_tick

    async def _take(self, id: str) -> None:
        begun = time.monotonic()
        dialect = self.store.dialect
        if not await self.store.write(lambda: LEASES.take(dialect, id, self.node, int(LEASE * 1000))):
            return
        job = next(iter(await QUEUE.all(self.store, "id", id=id)), None)
        if job is None or job.lease_by != self.node:
            return
        run = Run(id, self.node, job.attempts)
        task = asyncio.create_task(self._run(job, run))
        self._running[id] = _Running(run, task, begun + LEASE, job.name in self._ticks)
        RUNNING[0] += 1

    async def _run(self, job: QueuedJob, run: Run) -> None:
        """Run a job; whatever happens, it is counted, and the queue is looked at again."""
        CALLER.set("job")  # all of them together wait for their turn like one caller
        if self._engine.model.audited:  # the state of the job itself is changed by its runs
            ACT.set(Act("job", request=job.id, operation=job.name))
        begun, outcome = time.monotonic(), "lost"
        try:
            outcome = await self._runner.run(job, run)
        except LostJob:
            pass
        except Refusal as refusal:
            log.warning("the end of the job %s is not stored, it runs again: %s", job.id, refusal)
        except Exception as error:
            log.error("the job %s cannot be run", job.id, exc_info=error)
        finally:
            ENDED[outcome] += 1
            SECONDS[0] += time.monotonic() - begun
            RUNNING[0] -= 1
            if _is_current(self._running.get(job.id), run):
                del self._running[job.id]
            self._woken.set()

    async def _renew(self) -> None:
        """Renew the leases, counted from before the statement; runs that have lost theirs are ended."""
        begun = time.monotonic()
        if not self._running or begun < self._renewed_at + LEASE / 5:
            return
        dialect = self.store.dialect
        await self.store.write(lambda: LEASES.renew(dialect, self.node, int(LEASE * 1000)))
        self._renewed_at = begun
        for running in tuple(self._running.values()):
            if await self.store.write(partial(running.run.is_held, dialect)) and begun < running.lease_until:
                running.lease_until = begun + LEASE
            elif not running.task.cancelling():
                running.task.cancel()


def _is_current(running: _Running | None, run: Run) -> bool:
    """Is this run of a job the one that is under way here?"""
    return running is not None and running.run is run
