"""Lists, cancels and retries jobs, for operators: of all callers, without rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from diptych.ask.act import Act, acting
from diptych.db.job_queue import retry_failed
from diptych.engine.transaction import ModelTx
from diptych.engine.write import WriteEngine
from diptych.errors import Code, Refusal
from diptych.model.declare.job_resource import JobResource, JobState
from diptych.model.declare.roles import NOBODY

T = TypeVar("T")


async def list_jobs(engine: WriteEngine, state: str | None, most: int) -> list[JobResource]:
    """The newest jobs, of one state or of all."""
    where = {"state": {"eq": state}} if state else None
    return await _run(engine, lambda tx: tx.select(_kind(engine), where=where, order="-createdAt", first=most))


async def cancel(engine: WriteEngine, id: str) -> JobResource:
    """Cancel a job that has not ended."""

    async def cancelled(tx: ModelTx) -> JobResource:
        return await tx.cancel_job(await _found(engine, tx, id))

    return await _run(engine, cancelled, "jobs cancel")


async def retry(engine: WriteEngine, id: str) -> JobResource:
    """Queue a job that has failed again, from its last checkpoint, with all its attempts."""

    async def retried(tx: ModelTx) -> JobResource:
        row = await _found(engine, tx, id)
        dialect = engine.engine.store.dialect
        if row.state is not JobState.failed or not await tx.drive(lambda: retry_failed(dialect, row.id)):
            raise Refusal(Code.CONFLICT, f"The job {id} has not failed, or is not kept: it is {row.state.value}.")
        row.state, row.finished_at = JobState.queued, None
        row.error_code = row.error_message = None
        return await tx.save(row)

    return await _run(engine, retried, "jobs retry")


def _kind(engine: WriteEngine) -> type[JobResource]:
    job = engine.engine.model.job
    if job is None or not issubclass(job.cls, JobResource):
        raise Refusal(Code.NOT_FOUND, "Nothing of this model runs in the background.")
    return job.cls


async def _found(engine: WriteEngine, tx: ModelTx, id: str) -> JobResource:
    row = await tx.get(_kind(engine), id)
    if row is None:
        raise Refusal(Code.NOT_FOUND, f"There is no job {id}.")
    return row


async def _run(engine: WriteEngine, work: Callable[[ModelTx], Awaitable[T]], command: str = "") -> T:
    session = await engine.engine.store.session()
    try:
        with acting(Act("command", operation=command) if command and engine.engine.model.audited else None):
            result = await work(ModelTx(engine, session, NOBODY, engine.engine.model.trusted(False)))
            await session.commit()
        return result
    finally:
        await session.end()
