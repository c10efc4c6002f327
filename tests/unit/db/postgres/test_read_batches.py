"""Reads of one statement that come together share a connection; each gets its own answer, whatever happens to the others."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from diptych.compile.plan import Plan
from diptych.db.postgres import batches, read_batches, write_batches
from diptych.db.postgres.link import Link
from diptych.db.postgres.store import PostgresStore
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.fair.semaphore import FairSemaphore
from tests.support.effort import scaled
from tests.support.running import Postgres

ECHO = Plan("SELECT convert_to($1::text, 'UTF8')", batches=True)
"""The text that was sent."""
SOME = Plan("SELECT convert_to($1::text, 'UTF8') WHERE $1::text <> 'missing'", batches=True)
BROKEN = Plan("SELECT convert_to((12 / $1::text::int)::text, 'UTF8')", batches=True)
SLEEPS = Plan("SELECT convert_to(pg_sleep($1::text::float)::text || $1::text, 'UTF8')", batches=True)
CALLS = 40


@contextmanager
def sizes(*, at_any_speed: bool = True, nobody_is_slow: bool = False) -> Iterator[list[int]]:
    """The sizes of the batches that run meanwhile; at any speed, on a busy machine as on another. There, a caller may
    have held connections for so long that it is not batched."""
    found: list[int] = []
    run = batches.StatementBatches._run_batch

    def noted(self: Any, *arguments: Any) -> Any:
        found.append(len(arguments[-1]))
        return run(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches.StatementBatches, "_run_batch", noted)
        for kind in (read_batches.ReadBatches, write_batches.WriteBatches) if at_any_speed else ():
            patch.setattr(kind, "fast", 60.0)
            patch.setattr(kind, "budget", 60.0)
        if nobody_is_slow:
            patch.setattr(FairSemaphore, "is_slow", lambda self, caller: False)
        yield found


def served(postgres: Postgres, work: Callable[[PostgresStore], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        store = PostgresStore(postgres.create(), **settings)
        await store.open(model)
        try:
            await work(store)
            assert store.pool.semaphore.free == store.pool.size, "all permits are back"
            assert store.pool.semaphore.waiting == 0
        finally:
            await store.close()

    asyncio.run(run())


async def read(store: PostgresStore, plan: Plan, value: str, caller: str = "ann") -> bytes | None:
    CALLER.set(caller)
    (answer,) = await store.run(plan, [value])
    return answer


async def connect_all(store: PostgresStore) -> None:
    """Make every connection that the pool may have."""
    links = []
    for number in range(store.pool.size):
        CALLER.set(f"connects {number}")
        links.append(await store.pool.take())
    for link in links:
        store.pool.give(link)


async def together(store: PostgresStore, plan: Plan, values: list[str]) -> list[Any]:
    """The answers to reads that come in one moment, after the statement was found to be fast."""
    for _ in range(3):
        await asyncio.create_task(read(store, plan, values[0]))
    tasks = [asyncio.create_task(read(store, plan, value)) for value in values]
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_reads_that_come_together_are_batches_and_each_gets_its_answer(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        values = [str(number) for number in range(CALLS)]
        with sizes() as found:
            assert await together(store, ECHO, values) == [value.encode() for value in values]
        assert sum(found) == CALLS - 1, "the first of them runs by itself"
        assert max(found) == batches._MOST

    served(postgres, work)


def test_nobody_is_refused_for_what_another_caller_has_waiting(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        await together(store, ECHO, ["a"])
        ours = [asyncio.create_task(read(store, ECHO, "a")) for _ in range(100)]
        theirs = [asyncio.create_task(read(store, ECHO, "b", "ben")) for _ in range(8)]
        answers = await asyncio.gather(*ours, return_exceptions=True)
        assert 1 < sum(isinstance(answer, Refusal) for answer in answers) < 100, "no caller fills more than half"
        assert await asyncio.gather(*theirs) == [b"b"] * 8
        waiting = store._batches
        assert waiting is not None and not waiting._waiting

    with sizes(nobody_is_slow=True):
        served(postgres, work, size=2, waiting=60)


def test_a_read_that_is_alone_runs_by_itself(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        with sizes() as found:
            for number in range(10):
                assert await asyncio.create_task(read(store, ECHO, str(number))) == str(number).encode()
        assert not found

    served(postgres, work)


def test_what_is_not_marked_is_not_batched(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        plan = Plan(ECHO.sql)
        with sizes() as found:
            assert await together(store, plan, ["a"] * CALLS) == [b"a"] * CALLS
        assert not found

    served(postgres, work)


def test_a_row_that_does_not_exist_moves_no_answer(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        values = [value for number in range(CALLS) for value in (str(number), "missing")]
        with sizes() as found:
            assert await together(store, SOME, values) == [
                None if value == "missing" else value.encode() for value in values
            ]
        assert found

    served(postgres, work)


def test_a_read_that_fails_fails_alone(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        values = ["1", "2", "0", "3", "x", "4"] * 4
        answers = await together(store, BROKEN, values)
        for value, answer in zip(values, answers, strict=True):
            if value in ("0", "x"):
                assert isinstance(answer, asyncpg.DataError)
            else:
                assert answer == str(12 // int(value)).encode()

    served(postgres, work)


def test_a_value_that_cannot_be_sent_fails_alone(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        await together(store, ECHO, ["a"])
        values: list[Any] = ["a", "b", 3, "c"] * 3
        tasks = [asyncio.create_task(read(store, ECHO, value)) for value in values]
        for value, answer in zip(values, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            assert isinstance(answer, Exception) if value == 3 else answer == value.encode()

    served(postgres, work)


def test_a_slow_read_holds_up_nobody_that_was_batched_with_it(postgres: Postgres) -> None:
    """Also those that come while it runs have an answer soon: they find free connections."""

    async def work(store: PostgresStore) -> None:
        await together(store, SLEEPS, ["0"])
        begun = time.monotonic()
        slow = [asyncio.create_task(read(store, SLEEPS, "1", "bob")) for _ in range(3)]
        fast = [asyncio.create_task(read(store, SLEEPS, "0", f"caller {number}")) for number in range(20)]
        await asyncio.sleep(0.01)
        fast += [asyncio.create_task(read(store, SLEEPS, "0", f"other {number}")) for number in range(20)]
        assert await asyncio.gather(*fast) == [b"0"] * 40
        assert time.monotonic() - begun < 0.8
        assert await asyncio.gather(*slow) == [b"1"] * 3

    served(postgres, work)


def test_a_slow_statement_is_not_batched(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        with sizes(at_any_speed=False) as found:
            assert await together(store, SLEEPS, ["0.02"] * 12) == [b"0.02"] * 12
        assert not found

    served(postgres, work)


def test_one_who_held_connections_for_long_is_not_batched(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        await asyncio.create_task(read(store, Plan(SLEEPS.sql), "0.3"))
        with sizes() as found:
            await together(store, ECHO, ["a"] * CALLS)
        assert not found

    served(postgres, work)


def test_a_caller_that_goes_away_takes_nobody_along(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        await together(store, ECHO, ["a"])
        tasks = [asyncio.create_task(read(store, ECHO, str(number))) for number in range(CALLS)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(0, CALLS, 3):
            tasks[number].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [answer for number, answer in enumerate(answers) if number % 3] == [
            str(number).encode() for number in range(CALLS) if number % 3
        ]

    served(postgres, work)


def test_a_caller_with_much_to_ask_waits_behind_itself(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_batches, "_LATE", 60.0)  # a batch that is cancelled queues again
    monkeypatch.setattr(read_batches.ReadBatches, "fast", 60.0)

    async def work(store: PostgresStore) -> None:
        await connect_all(
            store
        )  # else who has a permit waits for a connection, and what others freed meanwhile serves others
        await together(store, ECHO, ["a"])
        sent: list[str] = []  # in which order they are answered is up to the scheduler of the operating system
        one, many = Link.read, Link.read_many

        def read_one(link: Link, sql: str, values: Any) -> Any:
            sent.extend(values)
            return one(link, sql, values)

        def read_many(link: Link, sql: str, work: Any) -> Any:
            sent.extend(value for values in work for value in values)
            return many(link, sql, work)

        monkeypatch.setattr(Link, "read", read_one)
        monkeypatch.setattr(Link, "read_many", read_many)
        greedy = [asyncio.create_task(read(store, ECHO, "greedy", "greedy")) for _ in range(300)]
        await asyncio.sleep(0)
        honest = [asyncio.create_task(read(store, ECHO, f"honest {number}", f"honest {number}")) for number in range(5)]
        await asyncio.gather(*greedy, *honest)
        last = max(sent.index(f"honest {number}") for number in range(5))
        assert last < 100, f"the last of them was sent after {last} of 300"

    served(postgres, work)


def test_the_queue_has_an_end(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        answers = await together(store, ECHO, ["a"] * 100)
        refused = [answer for answer in answers if isinstance(answer, Refusal)]
        assert len(refused) == 100 - 1 - 15, "one runs, and those that wait are half of what may"
        assert {refusal.code for refusal in refused} == {Code.UNAVAILABLE}
        assert await together(store, ECHO, ["a"] * 5) == [b"a"] * 5

    served(postgres, work, waiting=30)


def test_a_table_that_was_altered_is_read_as_it_is(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        url = store.url
        admin = await asyncpg.connect(url)
        await admin.execute("CREATE TABLE changing (a bytea); INSERT INTO changing VALUES ('1')")
        plan = Plan("SELECT changing.* FROM changing WHERE $1::text = 'a'", batches=True)
        assert await together(store, plan, ["a"] * CALLS) == [b"1"] * CALLS
        await admin.execute("ALTER TABLE changing ALTER a TYPE text USING 'x'")
        await admin.execute("ALTER TABLE changing ALTER a TYPE bytea USING a::bytea")
        await admin.execute("ALTER TABLE changing ADD b int")
        tasks = [asyncio.create_task(store.run(plan, ["a"])) for _ in range(CALLS)]
        assert [tuple(row) for row in await asyncio.gather(*tasks)] == [(b"x", None)] * CALLS
        await admin.close()

    served(postgres, work)


def test_all_are_told_if_the_server_goes_away_and_none_waits(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        await together(store, ECHO, ["a"])
        tasks = [asyncio.create_task(read(store, ECHO, str(number))) for number in range(CALLS)]
        await asyncio.sleep(0)
        for link in store.pool._links:
            link.connection.terminate()
        answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        for number, answer in enumerate(answers):
            assert answer == str(number).encode() or isinstance(answer, Refusal), answer
        assert await together(store, ECHO, ["a"] * 20) == [b"a"] * 20

    served(postgres, work)


def test_a_storm_of_reads_and_cancellations_loses_nothing(postgres: Postgres) -> None:
    async def work(store: PostgresStore) -> None:
        dice, reads = random.Random(7), scaled(20_000, 1_000)
        plans = (ECHO, SOME, Plan("SELECT convert_to('x' || $1::text, 'UTF8')", batches=True), BROKEN)

        async def one(number: int) -> None:
            plan = dice.choice(plans)
            value = dice.choice(("missing", str(number))) if plan is not BROKEN else dice.choice(("0", "1"))
            await asyncio.sleep(dice.random() * reads / 1_000)
            task = asyncio.create_task(read(store, plan, value, dice.choice(("ann", "bob", "cid", ""))))
            if dice.random() < 0.2:
                await asyncio.sleep(dice.random() * 0.002)
                task.cancel()
            (answer,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(answer, asyncio.CancelledError):
                return
            if plan is BROKEN and value == "0":
                assert isinstance(answer, asyncpg.DataError)
            else:
                right = {ECHO: value, SOME: None if value == "missing" else value, BROKEN: "12"}.get(plan, "x" + value)
                assert answer == (None if right is None else right.encode())

        await asyncio.gather(*(one(number) for number in range(reads)))
        await asyncio.sleep(0.1)

    served(postgres, work, size=5)
