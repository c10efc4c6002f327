"""Jobs whose nodes are killed again and again: each effect is there exactly once, and each tick runs once.

Three nodes on PostgreSQL and two processes on SQLite run jobs of up to three steps with checkpoints, and a schedule,
while one of them after another is killed −9 and started again. `make prove` queues 3,000 jobs over 60 kills; `make test`
a short form. Two planted faults show that it can fail: jobs without leases, and changes that are committed before the
end of their job.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from diptych import Config, Diptych
from diptych.db.job_queue import QUEUE
from diptych.db.store import Store
from diptych.serve.handler import Handler
from diptych.serve.http.request import Request
from tests.proof.long_running.job_node import STEPS, model
from tests.support.effort import scaled
from tests.support.running import NewDatabase, Postgres, environment

ROOT = Path(__file__).parents[3]
JOBS = scaled(3_000, 40)
KILLS = scaled(60, 2)
SECONDS = scaled(1_800, 120)
_TWICE = "SELECT number FROM effects WHERE number >= 0 GROUP BY number, step HAVING count(*) > 1"
ANN = "01900000-0000-7000-8000-00000000000a"


class Outcome(NamedTuple):
    """What was found after all: effects that are missing or there twice, states of jobs, and ticks."""

    wrong: list[tuple[int, int, int]]
    states: dict[str, int]
    ticks: int
    ticks_twice: int
    seconds: float


class Node:
    """A service in a process of its own."""

    def __init__(self, database: str, fault: str) -> None:
        self._arguments = ("-m", "tests.proof.long_running.job_node", database, *([fault] if fault else []))
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and again if others hold the file of SQLite for too long, as a supervisor would."""
        for _ in range(10):
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *self._arguments), cwd=ROOT, env=environment(), stdout=asyncio.subprocess.PIPE
            )
            assert self._process.stdout is not None
            if await self._process.stdout.readline() == b"ready\n":
                return
            await self._process.wait()
        raise AssertionError("a node does not start")

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def ask(handler: Handler, token: str, number: int) -> None:
    body = json.dumps({"number": number}).encode()

    async def read(most: int) -> bytes:
        return body

    head = {
        b"authorization": f"Bearer {token}".encode(),
        b"content-type": b"application/json",
        b"idempotency-key": f"number-{number}".encode(),
    }
    while (reply := await handler.handle(Request("POST", "/effects/make", "", head, read))).status == 503:
        await asyncio.sleep(0.1)  # the database is busy: the same call again is the same job
    assert reply.status == 202, reply.body


async def rows(store: Store, statement: str) -> list[tuple[object, ...]]:
    session = await store.session(reading=True)
    try:
        return await session.rows(statement, ())
    finally:
        await session.end()


async def prove(database: str, nodes: int, fault: str = "") -> Outcome:
    """Run it all."""
    app = Diptych(model, config=Config(database=database))
    handler = await app.start()
    assert handler.jobs is not None
    await handler.jobs.stop()  # this process only asks
    token, begun = handler.context.tokens.make(ANN, [], None, 86_400), time.monotonic()
    running = [Node(database, fault) for _ in range(nodes)]
    asking = asyncio.create_task(_ask_all(handler, token))
    try:
        await asyncio.gather(*(node.start() for node in running))
        kills = await _kill_and_wait(app.store, running, asking, fault)
    finally:
        for node in running:
            await node.kill()
    await asking
    effects = await rows(app.store, "SELECT number, step, count(*) FROM effects WHERE number >= 0 GROUP BY 1, 2")
    found = Counter({(int(str(number)), int(str(step))): int(str(count)) for number, step, count in effects})
    wanted = {(number, step) for number in range(JOBS) for step in range(1 + number % STEPS)}
    wrong = [(*key, found[key]) for key in sorted(wanted | found.keys()) if found[key] != 1]
    states = await rows(app.store, "SELECT state, count(*) FROM jobs WHERE action = 'makeEffects' GROUP BY 1")
    ticks = await rows(app.store, "SELECT job, count(*) FROM effects WHERE number = -1 GROUP BY 1")
    await app.stop()
    twice = sum(int(str(count)) > 1 for _, count in ticks)
    seconds = time.monotonic() - begun
    print(f"{JOBS} jobs, {len(found)} effects, {kills} kills, {len(ticks)} ticks, {seconds:.0f} s; wrong: {wrong[:5]}")
    return Outcome(wrong, {str(state): int(str(count)) for state, count in states}, len(ticks), twice, seconds)


async def _kill_and_wait(store: Store, running: list[Node], asking: asyncio.Task[None], fault: str) -> int:
    """Kill one node after another, then wait until all jobs have ended; returns the number of kills."""
    kills, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        await asyncio.sleep(random.uniform(0.2, 0.6))
        if kills < KILLS:
            node = random.choice(running)
            await node.kill()
            await node.start()
            kills += 1
        elif asking.done() and not [job for job in await QUEUE.all(store, "id") if job.name == "makeEffects"]:
            break
        if fault and await rows(store, _TWICE):
            break
    return kills


async def _ask_all(handler: Handler, token: str) -> None:
    for number in range(JOBS):
        await ask(handler, token, number)
        await asyncio.sleep(0.005)


def check(outcome: Outcome) -> None:
    assert outcome.wrong == []
    assert outcome.states == {"succeeded": JOBS}
    assert outcome.ticks_twice == 0
    assert 1 <= outcome.ticks <= outcome.seconds + 1


@pytest.mark.timeout(SECONDS + 60)
def test_each_effect_is_there_once_over_kills_of_three_nodes(postgres: Postgres) -> None:
    check(asyncio.run(prove(postgres.create(), 3)))


@pytest.mark.timeout(SECONDS + 60)
def test_each_effect_is_there_once_over_kills_on_sqlite(new_sqlite: NewDatabase) -> None:
    check(asyncio.run(prove(new_sqlite(), 2)))


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("fault", ["unleased", "apart"])
def test_it_fails_where_a_fault_is_planted(new_sqlite: NewDatabase, fault: str) -> None:
    outcome = asyncio.run(prove(new_sqlite(), 2, fault))
    assert any(count > 1 for _, _, count in outcome.wrong)
