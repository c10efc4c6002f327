"""Runs one job: its function outside of transactions until it uses one, then its changes and its end in one commit.

    viewer → the call, as a request would make it → the function → result → commit of changes, state and queue

The last transaction removes the record of the queue, under the condition that this run still has the lease. So the
changes of a job are committed once: a run that was replaced, or whose job was cancelled, finds no record and rolls
back. What the function does outside of the database happens at least once.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target
from diptych.api.rest.translate import write_inputs
from diptych.api.understand import understand_call
from diptych.ask.act import Act, acting
from diptych.db.job_queue import QueuedJob, Run
from diptych.db.store import Session
from diptych.engine.call import CallEngine, PreparedCall
from diptych.engine.transaction import ModelTx, Overtaken
from diptych.errors import Code, Refusal
from diptych.fair.backoff import Backoff
from diptych.identity.owner import viewer_of
from diptych.jobs.transaction import JobTransaction, LazySession
from diptych.model.call_defs import CallDef, JobOptions, ScheduleDef
from diptych.model.declare.fault import Fault
from diptych.model.declare.job_resource import JobResource, JobState
from diptych.model.declare.job_tx import LostJob, Retry
from diptych.model.declare.roles import NOBODY, SIGNED_IN, Viewer
from diptych.model.view import not_yours

log = logging.getLogger("diptych")
REPORTED_EVERY = 1.0
"""Seconds between two times that progress is stored."""
BACKOFF = Backoff(first=1.0, factor=4.0, longest=900.0)
"""Between attempts: about 1 s, 4 s, 16 s, 1 min, 4 min, and every 15 min after that."""
_PASSING = (Code.UNAVAILABLE, Code.TIMEOUT)
_LONGEST_MESSAGE = 2_000


class Failed(Exception):
    """A job ends with this code and message."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Call(Struct, frozen=True, eq=False):
    """A call that is ready to run."""

    prepared: PreparedCall
    values: list[Any]
    target: Any


class JobRunner:
    """Runs jobs, one after another or side by side."""

    def __init__(self, calls: CallEngine, timeout: float) -> None:
        self._calls = calls
        self._timeout = timeout
        self._engine = calls.engine
        self._store = calls.engine.store
        self._dialect = calls.engine.store.dialect
        model = calls.engine.model
        actions = [call for resource in model.resources.values() for call in resource.calls if call.background]
        self._actions: dict[str, CallDef] = {call.root: call for call in actions}
        self._schedules = model.schedules

    async def run(self, job: QueuedJob, run: Run) -> str:
        """Run a job to its end, or to its next attempt; returns what became of it."""
        of = self._actions.get(job.name) or self._schedules[job.name]
        background = of.background
        assert background is not None
        try:
            if run.attempt > background.attempts:
                raise Failed(Code.INTERNAL, f"It was given up after {background.attempts} attempts that did not end.")
            await self._update(run, state=JobState.running, attempts=run.attempt, started_at=datetime.now(UTC))
            viewer = await viewer_of(job.owner, self._store, self._engine.model)
            if viewer is None:
                raise Failed(Code.UNAUTHENTICATED, "The account that asked for it is disabled or was removed.")
            with acting(_act(job, viewer) if self._engine.model.audited else None):
                await self._perform(job, run, of, viewer, background)
            return "succeeded"
        except LostJob:
            return "lost"
        except Exception as error:
            return await self._failed(job, run, error, background)

    async def release(self, run: Run) -> None:
        """Leave a job to other nodes, as if there had been no attempt; LostJob if it is another's already."""
        with acting(Act("job", request=run.id) if self._engine.model.audited else None):
            await self._update(run, lambda: run.give_back(self._dialect), state=JobState.queued)

    # the run

    async def _perform(
        self, job: QueuedJob, run: Run, of: CallDef | ScheduleDef, viewer: Viewer, background: JobOptions
    ) -> None:
        """Run the function, and commit its changes together with the end of the job."""
        model = self._engine.model
        view = model.view(model.signature(viewer))
        call = None if isinstance(of, ScheduleDef) else await self._call(job, viewer)
        session = LazySession(self._store)
        tx = JobTransaction(self._calls.write_engine, session, viewer, view, job, run)
        reporting = asyncio.create_task(self._report(run, tx))
        try:
            async with asyncio.timeout(background.timeout or self._timeout):
                result = await self._called(of, call, tx)
                shown = await self._result(call, result, viewer, session)
            await _cancelled(reporting)
            await self._end(run, session, state=JobState.succeeded, progress=1.0, result=shown)
            await session.commit()
        finally:
            try:
                await _cancelled(reporting)
            finally:  # also if the run is cancelled again meanwhile
                await session.end()

    @staticmethod
    async def _called(of: CallDef | ScheduleDef, call: _Call | None, tx: JobTransaction) -> Any:
        if isinstance(of, ScheduleDef):
            await of.function(of.cls, tx)
            return None
        assert call is not None
        return await of.function(call.target, tx, **call.prepared.arguments(call.values))

    async def _call(self, job: QueuedJob, viewer: Viewer) -> _Call:
        """The call as the viewer could make it now: a Refusal if it may not any more."""
        model, sent = self._engine.model, json.loads(job.arguments)
        view = model.view(model.signature(viewer))
        if job.name not in view.calls:
            raise not_yours(view)
        resource, queued = view.calls[job.name]
        assert queued.background is not None
        definition = replace(queued, result=queued.background.returns, background=None)
        nullable = {argument.name for argument in definition.arguments if argument.nullable}
        body = {name: value for name, value in sent["arguments"].items() if value is not None or name in nullable}
        target = Target(resource.name, sent["id"], "", definition.name)
        inputs = write_inputs(target, body, None)
        wish = understand_call(target, definition, read_query("", target), body, view)
        prepared = self._calls.prepare(wish, inputs, view, None, definition)
        values = prepared.binder(inputs)
        if prepared.call.id is None:
            return _Call(prepared, values, resource.cls)
        session = await self._store.session(reading=True)
        try:
            key = values[prepared.call.id.index]
            row = await ModelTx(self._calls.write_engine, session, viewer, view).get(resource.cls, key)
            if row is None:
                raise Refusal(Code.NOT_FOUND, "There is nothing here.")
            await self._calls.admit(prepared, key, viewer, session)
            return _Call(prepared, values, row)
        finally:
            await session.end()

    async def _result(self, call: _Call | None, result: Any, viewer: Viewer, session: Session) -> Any:
        """The result as JSON, as the viewer may read it."""
        if call is None or call.prepared.definition.result.kind == "none":
            return None
        return json.loads(await self._calls.answered(call.prepared, call.values, result, viewer, session))

    async def _report(self, run: Run, tx: JobTransaction) -> None:
        """Store the progress that the function reports, now and then."""
        while True:
            await asyncio.sleep(REPORTED_EVERY)
            if tx.reported is not None:
                (part, text), tx.reported = tx.reported, None
                try:
                    await self._update(run, progress=part, progress_text=text or None)
                except (Refusal, LostJob) as error:
                    log.debug("the progress of the job %s is not stored: %s", run.id, error)

    # its end

    async def _failed(self, job: QueuedJob, run: Run, error: Exception, background: JobOptions) -> str:
        """Try again later, or end with the error."""
        code, message = _problem(error, job)
        if _passes(error, background) and run.attempt < background.attempts:
            asked = error.after if isinstance(error, Retry) else None
            wait = int((BACKOFF.delay(run.attempt) if asked is None else max(0.0, asked)) * 1000)
            await self._update(
                run, lambda: run.postpone(self._dialect, wait), state=JobState.queued, error_message=message
            )
            return "retried"
        await self._update(
            run,
            lambda: run.bury(self._dialect),
            state=JobState.failed,
            finished_at=datetime.now(UTC),
            error_code=code.value,
            error_message=message,
        )
        return "failed"

    async def _end(self, run: Run, session: Session, **values: Any) -> None:
        """Note the end of a job in its own transaction; LostJob if it is another's now."""
        ended = {"finished_at": datetime.now(UTC), "error_code": None, "error_message": None}
        await self._note(run, session, lambda: run.remove(self._dialect), {**ended, **values})

    async def _update(self, run: Run, fence: Callable[[], Any] | None = None, **values: Any) -> None:
        """Change the row of a job, in a transaction of its own; LostJob if it is another's now."""
        session = await self._store.session()
        try:
            await self._note(run, session, fence or (lambda: run.hold(self._dialect)), values)
            await session.commit()
        finally:
            await session.end()

    async def _note(self, run: Run, session: Session, fence: Callable[[], Any], values: dict[str, Any]) -> None:
        """Change the row of a job, and its record by `fence`: always in this order, so that nobody deadlocks."""
        job = self._engine.model.job
        assert job is not None
        await self._calls.hold(job, job.key.parse(run.id), session)
        tx = ModelTx(self._calls.write_engine, session, NOBODY, self._engine.model.trusted(False))
        row = await tx.get(job.cls, run.id)
        if not await session.drive(fence):
            raise LostJob
        if isinstance(row, JobResource):
            if row.started_at is not None:
                values.pop("started_at", None)
            for name, value in values.items():
                setattr(row, name, value)
            await tx.save(row)


def _act(job: QueuedJob, viewer: Viewer) -> Act:
    """Who makes the changes of a job: its owner."""
    return Act("job", viewer.id, roles=tuple(sorted(viewer.roles - {SIGNED_IN})), request=job.id, operation=job.name)


def _problem(error: Exception, job: QueuedJob) -> tuple[Code, str]:
    """What clients learn of an exception; the rest is logged."""
    if isinstance(error, Fault):
        return Code.BAD_USER_INPUT, f"{error.field}: {error.reason}"[:_LONGEST_MESSAGE]
    if isinstance(error, Failed | Refusal):
        return error.code, str(error)[:_LONGEST_MESSAGE]
    if isinstance(error, Retry):
        return Code.UNAVAILABLE, (str(error) or "It is tried again.")[:_LONGEST_MESSAGE]
    if isinstance(error, TimeoutError):
        return Code.TIMEOUT, "It took too long."
    log.error("the job %s (%s) has failed", job.id, job.name, exc_info=error)
    return Code.INTERNAL, f"Something went wrong. The log has it under {job.id}."


def _passes(error: Exception, background: JobOptions) -> bool:
    """May another attempt succeed?"""
    if isinstance(error, Refusal):
        return error.code in _PASSING or isinstance(error, Overtaken)
    return isinstance(error, (Retry, TimeoutError, *background.retry))


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait until it has ended."""
    task.cancel()
    await asyncio.wait([task])
