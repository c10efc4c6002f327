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


ENDLESS = Plan("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT CAST(count(*) AS TEXT) FROM n")


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


COUNT = Plan("SELECT CAST(count(*) AS TEXT) FROM users")
ADD = "INSERT INTO users (id, name, email) VALUES ('01900000-0000-7000-8000-00000000000a', 'a', 'a@example.org')"


class Iterations:
    """Reads of a store, in iterations of the loop."""

    def __init__(self, path: str, store: SqliteStore) -> None:
        self.path, self.store = path, store

    def count(self) -> int:
        row = self.store.run_now(COUNT, ())
        assert row is not None and row[0] is not None
        return int(row[0])

    @property
    def shares(self) -> bool:
        assert self.store._inline is not None
        return bool(self.store._inline.db.in_transaction)

    def write_outside(self, sql: str) -> None:
        db = apsw.Connection(self.path)
        for name in ("diptych_seal", "diptych_digest", "diptych_version", "diptych_fold"):
            db.create_scalar_function(name, lambda *_: None)
        db.execute(sql)
        db.close()


def in_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Iterations], Coroutine[Any, Any, None]]
) -> None:
    """Work on a store whose file is mapped as soon as it is read."""
    monkeypatch.setattr(connection_module, "_QUIET", 0.0)

    async def run() -> None:
        store = SqliteStore(f"{tmp_path}/a.db", only_process=True)
        await store.open(model)
        try:
            await work(Iterations(f"{tmp_path}/a.db", store))
        finally:
            await store.close()

    asyncio.run(run())


def test_reads_of_one_iteration_share_a_snapshot_and_the_next_has_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(it: Iterations) -> None:
        seen = [it.count()]
        assert it.shares
        it.write_outside(ADD)
        seen += [it.count() for _ in range(5)]
        await asyncio.sleep(0)
        assert not it.shares
        assert [*seen, it.count()] == [0, 0, 0, 0, 0, 0, 1]

    in_iterations(tmp_path, monkeypatch, work)


def test_what_this_process_writes_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "_FEW", 0)

    async def work(it: Iterations) -> None:
        user = {"name": "b", "email": "b@example.org", "id": "01900000-0000-7000-8000-00000000000b"}
        assert it.count() == 0 and it.shares
        await it.store.insert(model.resources["User"], list(user), [list(user.values())])
        assert it.count() == 1 and it.shares
        change = asyncio.ensure_future(it.store.change(Step("DELETE FROM users", ()), lambda: Step("", ())))
        assert not it.shares, "a write is under way"
        reads = 0
        while not change.done():
            it.count()
            reads += it.shares
            await asyncio.sleep(0)
        assert it.count() == 0 and reads, "a snapshot was shared in the iteration that ended it"

    in_iterations(tmp_path, monkeypatch, work)


def test_a_snapshot_is_shared_only_where_many_reads_come_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(it: Iterations) -> None:
        it.count()
        await asyncio.sleep(0)
        shared = 0
        for _ in range(connection_module._UNSHARED):
            it.count()
            shared += it.shares
            await asyncio.sleep(0)
        assert shared == 0
        for _ in range(3):  # again, and then for as long as there are many
            for _ in range(connection_module._FEW):
                it.count()
            assert it.shares
            await asyncio.sleep(0)

    in_iterations(tmp_path, monkeypatch, work)


def test_an_interrupted_read_leaves_the_snapshot_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(it: Iterations) -> None:
        it.count()
        assert it.store.run_now(ENDLESS, ()) is None
        assert it.shares and it.count() == 0
        await asyncio.sleep(0)
        assert not it.shares and it.count() == 0

    in_iterations(tmp_path, monkeypatch, work)
