"""`@every`: each tick runs once over all nodes, and ticks that nobody was up for run once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from diptych.db.job_queue import QUEUE, SCHEDULES
from diptych.jobs.service import JobService
from tests.contract.jobs.bindery import ticking
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def clock(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(ticking, new_database(), runner) as service:
        yield service


def nodes(clock: Service, number: int = 3) -> list[JobService]:
    return [JobService(clock.handler.rest.calls.calls, clock.app.config) for _ in range(number)]


async def _strike(services: list[JobService], seconds: float) -> None:
    """Let nodes look at their schedules side by side."""
    for node in services:
        await node._schedules.declare()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.gather(*(node.look() for node in services))
        await asyncio.sleep(0.02)
    for node in services:
        while node._running:
            await asyncio.sleep(0.01)


def strikes(clock: Service) -> int:
    return len(clock.rows("/clocks?first=100"))


def missed(clock: Service, seconds: float) -> None:
    """Pretend that the next tick was so long ago."""
    store = clock.app.store
    (row,) = clock.runner.run(SCHEDULES.all(store, "name"))
    earlier = row.next_at - int(seconds * 1000)
    clock.runner.run(store.write(lambda: SCHEDULES.change(store.dialect, {"name": "Clock.strike"}, next_at=earlier)))


@pytest.mark.slow
def test_each_tick_runs_once_over_all_nodes(clock: Service) -> None:
    begun = int(time.time())
    clock.runner.run(_strike(nodes(clock), 2.5))
    ticks = int(time.time()) - begun
    assert ticks - 1 <= strikes(clock) <= ticks + 1
    (row,) = clock.runner.run(SCHEDULES.all(clock.app.store, "name"))
    assert row.timetable == "1+0"


def test_a_new_schedule_begins_with_its_next_tick(clock: Service) -> None:
    service = nodes(clock, 1)[0]
    clock.runner.run(service._schedules.declare())
    (row,) = clock.runner.run(SCHEDULES.all(clock.app.store, "name"))
    assert 0 <= row.next_at / 1000 - time.time() <= 1


def test_ticks_that_nobody_was_up_for_run_once(clock: Service) -> None:
    clock.runner.run(nodes(clock, 1)[0]._schedules.declare())
    missed(clock, 3_600)

    async def look() -> None:
        services = nodes(clock)
        await asyncio.gather(*(service._schedules.look() for service in services))

    clock.runner.run(look())
    assert len(clock.runner.run(QUEUE.all(clock.app.store, "id"))) == 1


def test_a_tick_waits_for_the_run_before(clock: Service) -> None:
    (service,) = nodes(clock, 1)
    clock.runner.run(service._schedules.declare())
    for _ in range(3):
        missed(clock, 60)
        (service,) = nodes(clock, 1)
        clock.runner.run(service._schedules.look())
    assert len(clock.runner.run(QUEUE.all(clock.app.store, "id"))) == 1, "the first has not run yet"
    clock.runner.run(_strike([service], 0.3))
    assert strikes(clock) >= 1
    assert clock.rows("/jobs", token=clock.token("x")) == [], "runs of schedules are nobody's"
