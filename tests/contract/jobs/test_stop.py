"""What becomes of jobs when their service stops, and of the queue while it is busy with something else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from diptych.db.job_queue import QUEUE, Run
from diptych.jobs import service
from diptych.jobs.run import JobRunner
from diptych.jobs.service import JobService
from diptych.model.declare.job_resource import JobState
from tests.contract.jobs.bindery import ANN, ROWS, TRIES, model
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture
def bindery(new_database: NewDatabase) -> Iterator[Service]:
    TRIES.clear()
    with asyncio.Runner() as runner, in_process(model, new_database(), runner, ROWS, job_drain=0.0) as service:
        yield service


def tried(service: Service, how: str) -> str:
    headers, body = {"content-type": "application/json"}, b'{"how": "%s"}' % how.encode()
    answer = service.send("POST", "/books/try-out", headers=headers, body=body, token=service.token(ANN))
    assert answer.status == 202
    return str(answer.json()["id"])


def test_a_job_whose_end_is_stored_while_the_service_stops_has_ended(
    bindery: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer to the commit comes too late for the run, which is cancelled."""
    jobs, update = bindery.handler.jobs, JobRunner._update
    assert jobs is not None

    async def stopped() -> None:
        stored = asyncio.Event()

        async def late(self: JobRunner, run: Run, fence: Callable[[], Any] | None = None, **values: Any) -> None:
            await update(self, run, fence, **values)
            if values.get("state") is JobState.failed:
                stored.set()
                await asyncio.sleep(60)

        monkeypatch.setattr(JobRunner, "_update", late)
        await jobs.look()
        await asyncio.wait_for(stored.wait(), 20)
        await jobs.stop()

    id = tried(bindery, "refuse")
    with caplog.at_level(logging.CRITICAL, "diptych"):
        bindery.runner.run(stopped())
    assert bindery.get(f"/jobs/{id}", token=bindery.token(ANN)).json()["state"] == "failed"
    (record,) = bindery.runner.run(QUEUE.all(bindery.app.store, "id"))
    assert (record.lease_until, record.attempts) == (0, 1)


def test_jobs_run_while_old_ones_are_deleted(bindery: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def sweep(*_: object) -> int:
        await asyncio.sleep(60)
        return 0

    monkeypatch.setattr(service, "sweep", sweep)
    monkeypatch.setattr(service, "_SWEEP", 0.0)
    jobs = JobService(bindery.handler.rest.calls.calls, bindery.app.config)
    bindery.runner.run(jobs.start())
    bindery.runner.run(asyncio.sleep(0.5))
    id = tried(bindery, "well")

    async def ends() -> None:
        async with asyncio.timeout(10):
            while await QUEUE.all(bindery.app.store, "id"):
                await asyncio.sleep(0.05)

    try:
        bindery.runner.run(ends())
    finally:
        bindery.runner.run(jobs.stop())
    assert bindery.get(f"/jobs/{id}", token=bindery.token(ANN)).json()["state"] == "succeeded"
