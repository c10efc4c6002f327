"""The stores themselves, without a server: one caller's long work, and what another has to wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from diptych.compile.plan import Plan
from diptych.db.script import Script, Step
from diptych.db.sqlite import connection as sqlite_reader
from diptych.db.sqlite import store as sqlite_store
from diptych.db.sqlite.store import SqliteStore
from diptych.fair.caller import CALLER
from tests.contract.test_writers import Shop, locked, on
from tests.support.machine import Machine
from tests.support.running import PATIENCE, NewDatabase

COUNTED = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT count(*) FROM n"
SEARCHED = Plan(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
    "SELECT sum(instr(zeroblob(200000 + i), x'01')) FROM n",
    (),
    (),
)
"""Few steps, each of which takes long: it looks through a long text."""


def counting(number: int) -> Callable[[], Script[None]]:
    def script() -> Script[None]:
        yield Step(COUNTED.format(number), ())

    return script


def test_a_change_waits_for_one_turn_of_another_caller(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        machine = Machine()
        await shop.store.write(shop.adding(1))
        CALLER.set("bad")
        begun = time.monotonic()
        await shop.store.write(counting(100_000))
        one = time.monotonic() - begun
        many = [asyncio.create_task(shop.store.write(counting(100_000))) for _ in range(30)]
        await asyncio.sleep(one)
        CALLER.set("good")
        begun = time.monotonic()
        await shop.store.write(shop.adding(2))
        waited = time.monotonic() - begun
        assert sum(not task.done() for task in many) > 10
        await asyncio.gather(*many)
        assert waited < 12 * one + machine.limit(0.3)

    on(new_sqlite(), work)


def test_changes_that_fill_a_transaction_each_leave_turns_to_others(new_sqlite: NewDatabase) -> None:
    """One caller has many that take all the time that a transaction has; two others have their turns between them."""
    order: list[str] = []

    async def change(shop: Shop, who: str, script: Callable[[], Script[object]]) -> None:
        CALLER.set(who)
        await shop.store.write(script)
        order.append(who)

    async def work(shop: Shop) -> None:
        begun = time.monotonic()
        await shop.store.write(counting(500_000))
        long = counting(int(500_000 * max(1, 0.12 / (time.monotonic() - begun))))
        many = [asyncio.create_task(change(shop, "bad", long)) for _ in range(8)]
        await asyncio.sleep(0)
        await asyncio.gather(*(change(shop, who, shop.adding(number)) for number, who in enumerate(("good", "other"))))
        await asyncio.gather(*many)
        before = order[: max(order.index("good"), order.index("other"))]
        assert before.count("bad") <= 3

    on(new_sqlite(), work)


def test_a_session_waits_for_one_turn_of_another_caller(new_sqlite: NewDatabase) -> None:
    """And so does whoever waits for sessions."""
    order: list[str] = []

    async def hold(shop: Shop, who: str) -> None:
        CALLER.set(who)
        session = await shop.store.session()
        order.append(who)
        await asyncio.sleep(0.005)
        await session.end()

    async def work(shop: Shop) -> None:
        await asyncio.gather(*(hold(shop, "bad") for _ in range(20)), hold(shop, "good"), hold(shop, "other"))
        assert order.index("good") <= 2 and order.index("other") <= 4

    on(new_sqlite(), work)


def test_whoever_has_gone_leaves_room_in_the_line(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        with locked(database):
            first = asyncio.create_task(shop.store.write(shop.adding(1)))
            await asyncio.sleep(0.05)
            CALLER.set("ann")
            for _ in range(40):  # each time half of the line, which is all that one caller has
                tasks = [asyncio.create_task(shop.store.write(shop.adding(9))) for _ in range(5)]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            last = asyncio.create_task(shop.store.write(shop.adding(2)))
            await asyncio.sleep(0)
        assert (await first, await last) == (1, 2)

    on(database, work, max_waiting=10)


def test_whoever_uses_the_loop_too_much_is_served_by_a_thread(
    new_sqlite: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_reader, sqlite_store):  # on a busy machine, what is short takes longer than it may
        monkeypatch.setattr(module, "INLINE_DEADLINE", 60.0)

    async def work(shop: Shop) -> None:
        store = shop.store
        assert isinstance(store, SqliteStore)
        took = []
        for _ in range(10):
            begun = time.thread_time()  # it runs in this thread
            await store.run(SEARCHED, (5,))
            took.append(time.thread_time() - begun)
        size = max(1, int(5 * 0.01 / min(took)))  # about ten milliseconds
        store._slow.clear()
        store._loop_budget.rate = 0.05  # on a busy machine, more time passes than is taken
        apart: list[str] = []
        run_apart = store.run_apart

        async def noted(plan: Plan, parameters: tuple[int]) -> object:
            apart.append(CALLER.get())
            return await run_apart(plan, parameters)

        store.run_apart = noted  # type: ignore[method-assign, assignment]  # a spy
        CALLER.set("bad")
        for _ in range(40):
            await store.run(SEARCHED, (size,))
        assert 10 < len(apart) < 39
        apart.clear()
        CALLER.set("good")
        await store.run(SEARCHED, (1,))
        CALLER.set("")
        await store.run(SEARCHED, (size,))
        assert not apart

    on(new_sqlite(), work)


def test_a_read_that_takes_very_long_for_its_steps_is_slow(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        store = shop.store
        assert isinstance(store, SqliteStore)
        await store.run(SEARCHED, (2_000,))
        assert SEARCHED.sql in store._slow._kept

    on(new_sqlite(), work, statement_timeout=PATIENCE)


@pytest.mark.parametrize("gone", [True, False])
def test_a_thread_is_free_when_it_has_done_its_work(new_sqlite: NewDatabase, gone: bool) -> None:
    """Not when nobody waits for it any more: else there would be more at work than there are threads."""
    forever = Plan(COUNTED.format(1 << 60), (), ())

    async def work(shop: Shop) -> None:
        store = shop.store
        assert isinstance(store, SqliteStore)
        CALLER.set("ann")
        reads = [asyncio.create_task(store.run(forever, ())) for _ in range(8)]
        await asyncio.sleep(0.2)
        assert (store.semaphore.free, store.semaphore.waiting) == (1, 5)
        if gone:
            for read in reads:
                read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        deadline = time.monotonic() + 10
        while store.semaphore.free < 4:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)
        assert (store.semaphore.waiting, store.semaphore._held) == (0, {})

    on(new_sqlite(), work, statement_timeout=0.4)
