"""The queue of jobs is shared: nobody waits for all that another has queued, and a tick waits for nobody."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import asyncpg
import pytest

from diptych import Model
from diptych.db import job_queue
from diptych.db.job_queue import QUEUE, QueuedJob, add_job, waiting
from diptych.db.job_share import share_of
from diptych.db.script import Script, Step
from diptych.identity.owner import fixed_owner
from diptych.jobs.service import JobService
from tests.contract.jobs.bindery import ANN, BOB, GATE, Book, Clock
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

both = Model(Book, Clock)
NAMES = ["tryOutBook", "Clock.strike"]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def shop(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    GATE.clear()
    with in_process(both, new_database(), runner, job_concurrency=2, job_drain=0.0) as service:
        yield service


def queue(shop: Service, user: str, number: int, how: str = "ok") -> None:
    body = json.dumps({"how": how}).encode()
    for _ in range(number):
        answer = shop.send(
            "POST",
            "/books/try-out",
            headers={"content-type": "application/json"},
            body=body,
            token=shop.token(user, "robot", "binder"),
        )
        assert answer.status == 202


def order(shop: Service) -> str:
    """The owners of the jobs that wait, in the order in which they will run, one letter each."""
    letters = {share_of(fixed_owner(("binder", "robot"), user)): letter for user, letter in ((ANN, "A"), (BOB, "B"))}
    store = shop.app.store

    async def read() -> str:
        records = {record.id: record for record in await QUEUE.all(store, "id")}
        known = sorted({record.name for record in records.values()})
        found = await waiting(store, known)
        return "".join(letters[records[job.id].share] for job in found.jobs)

    return shop.runner.run(read())


def add(shop: Service, owner: str, number: int = 1, name: str = "tryOutBook", turn: int = 1) -> list[str]:
    """Queue records without their rows, at this moment; no two in the same millisecond."""
    ids = [f"{owner}-{time.perf_counter_ns()}-{index}" for index in range(number)]
    store = shop.app.store
    for id in ids:
        record = QueuedJob(id, name, "{}", owner, 0, "null", int(time.time() * 1000), 0, "", 0, owner, turn)
        shop.runner.run(store.write(partial(add_job, store.dialect, record, NAMES)))
        time.sleep(0.002)
    return ids


def line(shop: Service) -> list[str]:
    """The owners of what waits, in order."""
    found = shop.runner.run(waiting(shop.app.store, NAMES))
    return [job.id.split("-")[0] for job in found.jobs]


def test_one_job_of_each_caller_runs_in_each_turn(shop: Service) -> None:
    add(shop, "a", 6)
    add(shop, "b", 2)
    add(shop, "e", 3)
    assert "".join(line(shop)) == "abeabeaeaaa"


def test_a_caller_who_comes_late_begins_where_the_queue_is(shop: Service) -> None:
    ids = add(shop, "a", 10)
    store = shop.app.store
    for id in ids[:7]:  # they have run
        shop.runner.run(store.write(partial(QUEUE.remove, store.dialect, id=id)))
    add(shop, "b", 4)
    assert "".join(line(shop)) == "abababb"  # and does not get the seven turns that it did not use
    add(shop, "a", 1)
    assert "".join(line(shop)) == "abababba"


def test_a_job_that_the_model_no_longer_has_does_not_hold_back_the_turn_of_the_queue(shop: Service) -> None:
    store = shop.app.store
    add(shop, "o", 1, "removedAction")
    ids = add(shop, "a", 10)
    for id in ids[:7]:  # they have run
        shop.runner.run(store.write(partial(QUEUE.remove, store.dialect, id=id)))
    add(shop, "b", 4)
    assert "".join(line(shop)) == "abababb"


def test_a_tick_is_before_all_others(shop: Service) -> None:
    add(shop, "a", 3)
    add(shop, "t", 1, "Clock.strike", 0)
    assert "".join(line(shop)) == "taaa"


def test_jobs_that_are_tried_again_take_turns_with_new_ones(shop: Service) -> None:
    store = shop.app.store
    again = add(shop, "r", 3)
    for id in again:
        held = job_queue.Run(id, "n", 1)
        assert shop.runner.run(store.write(partial(job_queue.LEASES.take, store.dialect, id, "n", 10_000)))
        assert shop.runner.run(store.write(partial(held.postpone, store.dialect, 0)))
    add(shop, "a", 4)
    time.sleep(0.01)
    assert "".join(line(shop)) == "ararara"
    late = add(shop, "z")[0]
    assert shop.runner.run(store.write(lambda: job_queue.LEASES.take(store.dialect, late, "n", 10_000)))
    assert shop.runner.run(store.write(lambda: job_queue.Run(late, "n", 1).postpone(store.dialect, 60_000)))
    found = shop.runner.run(waiting(store, ["tryOutBook"]))
    assert found.later is not None and 50_000 < found.later - time.time() * 1000 < 70_000
    assert late not in {job.id for job in found.jobs}


def test_all_tokens_of_an_account_have_one_share() -> None:
    narrow = json.dumps({"account": "k1", "scopes": ["read"], "claims": {"tenant": "x"}})
    owners = [json.dumps({"account": id}) for id in ("k1", "k2")]
    assert share_of(narrow) == share_of(owners[0]) != share_of(owners[1])


def test_what_one_caller_has_queued_delays_another_by_one_job(shop: Service) -> None:
    queue(shop, ANN, 12)
    queue(shop, BOB, 2)
    assert order(shop) == "ABAB" + "A" * 10


@pytest.mark.slow
def test_a_tick_runs_while_long_jobs_have_all_places(shop: Service) -> None:
    queue(shop, ANN, 8, "hold")
    service = JobService(shop.handler.rest.calls.calls, shop.app.config)

    async def look() -> None:
        await service.look()
        await asyncio.sleep(0.02)

    shop.runner.run(service._schedules.declare())
    patience = time.monotonic() + 15.0
    while not (shop.rows("/clocks?first=9") and len(service._running) == 2):  # the two that hold their places
        assert time.monotonic() < patience
        shop.runner.run(look())
    GATE.set()

    async def end() -> None:
        while service._running:
            await asyncio.sleep(0.02)

    shop.runner.run(end())


def test_a_look_reads_the_first_rows_of_an_index_however_long_the_queue_is(shop: Service) -> None:
    store = shop.app.store
    numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000) "
    row = "SELECT 'j' || n, 'tryOutBook', '{}', '{}', 0, 'null', n, 0, '', 0, 's' || (n % 50), n / 50 FROM n"

    def fill() -> Script[None]:
        yield Step(f"INSERT INTO diptych_jobs {numbers}{row}", ())

    is_postgres = store.dialect.name == "postgres"
    shop.runner.run(store.write(fill))
    found: list[str] = []
    asked = "EXPLAIN " if is_postgres else "EXPLAIN QUERY PLAN "
    text = job_queue.waiting_statement(store.dialect, 1)
    if is_postgres:
        found = [record[0] for record in shop.runner.run(_explained(shop.app.config.database, asked + text))]
        assert not [line for line in found if "Sort Key: diptych_jobs.turn" in line or "Seq Scan" in line], found
    else:
        with sqlite3.connect(shop.app.config.database.removeprefix("sqlite:///")) as reader:
            found = [record[3] for record in reader.execute(asked + text, ("tryOutBook",))]
        assert not [line for line in found if "TEMP B-TREE" in line or "SCAN diptych_jobs" in line], found
    for index in ("diptych_jobs_turn", "diptych_jobs_again"):
        assert [line for line in found if index in line], found


async def _explained(database: str, text: str) -> list[Any]:
    connection = await asyncpg.connect(database)
    try:
        return list(await connection.fetch(text, "tryOutBook"))
    finally:
        await connection.close()
