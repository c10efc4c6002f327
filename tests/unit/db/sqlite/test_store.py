"""Which reads run in the event loop, and what they are charged."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest

from diptych.compile.plan import Plan
from diptych.db.script import Step, one_step
from diptych.db.sqlite import connection as connection_module
from diptych.db.sqlite import store as module
from diptych.db.sqlite.connection import BytesRow, ReadTask
from diptych.db.sqlite.store import SqliteStore
from diptych.demo.model import model
from diptych.fair.caller import CALLER

SHORT = Plan("SELECT 'x'", (), ())
LONG = Plan(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) SELECT CAST(count(*) AS TEXT) FROM n",
    (),
    (),
)


class SlowClock:
    """A clock on a machine so busy that 10 ms pass between any two looks at it."""

    def __init__(self) -> None:
        self._looks = itertools.count()

    thread_time = staticmethod(time.thread_time)

    def perf_counter(self) -> float:
        return time.perf_counter() + next(self._looks) * 0.01  # ahead of that of the watchdog


def on_store(work: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        store = SqliteStore(":memory:")
        await store.open(model)
        try:
            CALLER.set("user:ann")
            await work(store)
        finally:
            await store.close()

    asyncio.run(run())


def test_a_busy_machine_makes_no_read_look_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: SqliteStore) -> None:
        monkeypatch.setattr(store, "_work", lambda task: pytest.fail("a short read was sent to a worker"))
        monkeypatch.setattr(module, "time", SlowClock())
        for _ in range(200):
            await store.run(SHORT, ())
        assert not store._loop_budget.in_use

    on_store(work)


def test_steps_are_charged_and_an_empty_bucket_sends_reads_to_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: SqliteStore) -> None:
        monkeypatch.setattr(module, "time", SlowClock())
        threads: list[int] = []
        worked = store._work

        def noted(task: ReadTask) -> BytesRow:
            threads.append(threading.get_ident())
            return worked(task)

        monkeypatch.setattr(store, "_work", noted)
        for _ in range(40):
            await store.run(LONG, ())
        assert store._loop_budget.in_use
        assert threads and threading.get_ident() not in threads

    on_store(work)


def test_an_interrupt_while_a_statement_is_prepared_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: SqliteStore) -> None:
        assert store._inline is not None
        monkeypatch.setattr(store._inline, "_execute", interrupted)
        assert len(await store.run(SHORT, ())) == 1  # by a worker

    def interrupted(*_: Any) -> Any:
        raise apsw.SQLError("vtable constructor failed: json_each")

    on_store(work)


@pytest.mark.parametrize("only_process", [True, False])
def test_the_file_is_mapped_while_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_process: bool
) -> None:
    monkeypatch.setattr(connection_module, "_QUIET", 0.0)

    async def work() -> list[bool]:
        store = SqliteStore(f"{tmp_path}/a.db", only_process=only_process)
        await store.open(model)
        inline = store._inline
        assert inline is not None
        mapped = []
        try:
            for _ in range(2):
                await store.run(SHORT, ())
                mapped.append(inline.db.execute("PRAGMA mmap_size").get > 0)
                await store.write(lambda: one_step(Step("UPDATE users SET name = name", ())))
                mapped.append(inline.db.execute("PRAGMA mmap_size").get > 0)
        finally:
            await store.close()
        return mapped

    assert asyncio.run(work()) == [only_process, False, only_process, False]
