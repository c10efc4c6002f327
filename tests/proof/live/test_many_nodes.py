"""Many nodes of one database: one numbers a change, the others hear of it, and what it costs does not grow with them.

A node is simulated by its tail, with a numbering and a listening connection of its own. What is counted are the
statements of all nodes; the full form also measures the processor time of the database. The control is how it was:
every node numbers whenever it hears of something.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from diptych.compile.plan import Plan
from diptych.db.postgres.feed import Listening, Numbering, peek
from diptych.db.postgres.store import PostgresStore
from diptych.db.store import FeedHead, FeedPeek, Store
from diptych.live.tail import Tail
from tests.contract.feed.scene import model
from tests.proof.long_running.parts import tell
from tests.support.effort import LONG, scaled
from tests.support.running import Postgres, with_tables

NODES = scaled(50, 8)
CHANGES = scaled(300, 25)
PAUSE = 0.02
"""Seconds between a change that all have heard of and the next."""
TICKS = os.sysconf("SC_CLK_TCK")


class Node:
    """The tail of a node, and what it asks the database for."""

    numbers = True
    look_every = 0.5

    def __init__(self, store: PostgresStore, asked: Counter[str]) -> None:
        self.dialect = store.dialect
        self._asked = asked
        self._store = store
        self._numbering = Numbering(self.run)
        self._listening: Listening | None = None
        self.advances: list[tuple[int, int]] = []
        self.tail = Tail(cast(Store, self), b"\1" * 32, self._advance)

    def _advance(self, before: FeedHead, after: FeedHead, _: Any) -> None:
        if after.position != before.position:
            self.advances.append((before.position, after.position))

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[Any]:
        self._asked["head" if "diptych_head" in plan.sql else "other"] += 1
        return await self._store.run(plan, parameters)

    async def head(self) -> FeedHead:
        return await self._numbering.head()

    async def peek(self) -> FeedPeek:
        return await peek(self.run)

    def on_commit(self, wake: Callable[[], None] | None, heard: Callable[[str], None] | None = None) -> None:
        if wake is not None and heard is not None:
            self._listening = Listening(lambda: self._store.connection("diptych listens"), wake, heard)

    async def stop(self) -> None:
        """End it, as a process that is killed does: nothing is numbered any more."""
        await self.tail.stop()
        if self._listening is not None:
            await self._listening.close()
        await self._numbering.close()


class Cluster:
    """Nodes of one database, and one connection that changes rows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = PostgresStore(url, size=8)
        self.asked: Counter[str] = Counter()
        self.nodes: list[Node] = []

    async def start(self, many: int) -> None:
        await self.store.open(model)
        self.connection = await asyncpg.connect(self.url)
        await self.connection.execute(
            "INSERT INTO diptych_keys (kid, kind, secret, created_at) VALUES ('cursor', 'cursor', $1, '') "
            "ON CONFLICT DO NOTHING",
            (b"\1" * 32).hex(),
        )
        for _ in range(many):
            node = Node(self.store, self.asked)
            self.nodes.append(node)
            await node.tail.start()
            node.tail.follow(True)
        await self.until(lambda: all(node._listening and node._listening.connection for node in self.nodes))
        await asyncio.sleep(0.2)
        self.asked.clear()

    async def stop(self) -> None:
        for node in self.nodes:
            await node.stop()
        await self.connection.close()
        await self.store.close()

    async def change(self, number: int) -> None:
        await self.connection.execute("INSERT INTO tickets (text) VALUES ($1)", str(number))

    async def until(self, holds: Callable[[], bool], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.002)

    def all_at(self, position: int) -> bool:
        return all(node.tail.head.position >= position for node in self.nodes)

    async def processor_time(self) -> float:
        """Seconds of processor time of the backends of this database."""
        pids = await self.connection.fetch("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return sum(map(_used, (pid for (pid,) in pids)))


def _used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def cost(url: str, many: int, changes: int = CHANGES) -> tuple[float, float, float]:
    """Statements for each change, milliseconds of the database, and the slowest milliseconds until all nodes know."""
    cluster = Cluster(url)
    await cluster.start(many)
    try:
        begin, slowest, used = cluster.nodes[0].tail.head.position, 0.0, await cluster.processor_time()
        for number in range(changes):
            began = time.perf_counter()
            await cluster.change(number)
            cluster.nodes[number % many].tail.wake()  # the node that has committed it
            await cluster.until(partial(cluster.all_at, begin + number + 1))
            slowest = max(slowest, time.perf_counter() - began)
            await asyncio.sleep(PAUSE)
        used = await cluster.processor_time() - used
        for node in cluster.nodes:
            assert contiguous(node.advances) and node.advances[-1][1] == begin + changes
        return cluster.asked.total() / changes, used / changes * 1e3, slowest * 1e3
    finally:
        await cluster.stop()


def contiguous(advances: Iterable[tuple[int, int]]) -> bool:
    """Does each advance begin where the last one ended?"""
    return all(one[1] == other[0] for one, other in pairwise(advances))


def as_before(patch: pytest.MonkeyPatch) -> None:
    """Every node numbers whenever it hears of something, and at every poll."""
    patch.setattr(Tail, "hear", lambda self, payload: self.wake())
    patch.setattr(Tail, "_end_of_feed", lambda self, number: self._store.head())


@pytest.mark.timeout(scaled(600, 120))
def test_a_change_costs_no_more_statements_with_many_nodes(postgres: Postgres) -> None:
    one = asyncio.run(cost(with_tables(postgres.create(), model), 1))
    many = asyncio.run(cost(with_tables(postgres.create(), model), NODES))
    with pytest.MonkeyPatch.context() as patch:
        as_before(patch)
        before = asyncio.run(cost(with_tables(postgres.create(), model), NODES))
    for nodes, (statements, milliseconds, slowest) in ((1, one), (NODES, many), (f"{NODES}, as before", before)):
        tell(
            f"{nodes} nodes: {statements:.1f} statements and {milliseconds:.2f} ms of the database for each change, "
            f"known everywhere within {slowest:.0f} ms"
        )
    assert many[0] <= 1.5 * one[0] + 0.5
    assert before[0] > 3 * many[0], "the control must fail"
    if LONG:
        assert before[1] > 1.5 * many[1], "the control must fail"


@pytest.mark.timeout(120)
def test_what_a_node_that_died_has_committed_is_numbered_by_another(postgres: Postgres) -> None:
    """Again and again the node that would number is gone right after its commit; others take over within a second."""

    async def work() -> list[float]:
        cluster = Cluster(with_tables(postgres.create(), model))
        await cluster.start(4)
        begin = cluster.nodes[0].tail.head.position
        delays = []
        try:
            for number in range(3):
                dead = cluster.nodes.pop()
                await cluster.change(number)
                began = time.perf_counter()
                await dead.stop()
                await cluster.until(partial(cluster.all_at, begin + number + 1))
                delays.append(time.perf_counter() - began)
            assert all(contiguous(node.advances) for node in cluster.nodes)
        finally:
            await cluster.stop()
        return delays

    delays = asyncio.run(work())
    tell(f"nodes that died before they numbered: others did after {', '.join(f'{each:.2f}' for each in delays)} s")
    assert max(delays) < 3.0


@pytest.mark.timeout(60)
def test_sql_from_outside_is_known_by_all_in_time(postgres: Postgres) -> None:
    async def work() -> float:
        cluster = Cluster(with_tables(postgres.create(), model))
        await cluster.start(4)
        begin, began = cluster.nodes[0].tail.head.position, time.perf_counter()
        try:
            await cluster.change(1)
            await cluster.until(lambda: cluster.all_at(begin + 1))
        finally:
            await cluster.stop()
        return time.perf_counter() - began

    assert asyncio.run(work()) < 3.0


@pytest.mark.timeout(60)
def test_a_forged_notice_changes_nothing(postgres: Postgres) -> None:
    """Whoever can connect can notify: with a position that is not there, unsigned, or with what was once signed."""

    async def work() -> None:
        cluster = Cluster(with_tables(postgres.create(), model))
        await cluster.start(2)
        heard: list[str] = []
        await cluster.connection.add_listener("diptych_feed", lambda *given: heard.append(str(given[3])))
        begin = cluster.nodes[0].tail.head.position
        try:
            await cluster.change(1)
            cluster.nodes[0].tail.wake()
            await cluster.until(lambda: cluster.all_at(begin + 1) and bool(heard))
            ids = [str(row["id"]) for row in await cluster.connection.fetch("SELECT id FROM tickets")]
            assert "tickets" in heard[0] and not any(f'"{each}"' in heard[0] for each in ids)
            signature, feed, *_, listed = heard[0].split(" ", 6)
            for forged in ("", "x", heard[0], f"{signature} {feed} {begin + 1} 9000 1 1 {listed}"):
                await cluster.connection.execute("SELECT pg_notify('diptych_feed', $1)", forged)
            await asyncio.sleep(0.3)
            assert {node.tail.head.position for node in cluster.nodes} == {begin + 1}
        finally:
            await cluster.stop()

    asyncio.run(work())
