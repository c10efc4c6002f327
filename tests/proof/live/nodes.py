"""Nodes of one database, simulated by their tails: each with a numbering and a channel of notices of its own.

cluster = Cluster(url, relay)
await cluster.start(50)
await cluster.change(1)             # by SQL; `cluster.nodes[0].tail.wake()` is the node that has committed it
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import asyncpg

from diptych.compile.plan import Plan
from diptych.db.postgres.channel import NoticeChannel, relay_to
from diptych.db.postgres.feed import Numbering, peek
from diptych.db.postgres.store import PostgresStore
from diptych.db.store import FeedHead, FeedPeek, Store
from diptych.live.tail import Tail
from tests.contract.feed.scene import model
from tests.support.effort import scaled

CHANGES = scaled(300, 25)
PAUSE = 0.02
"""Seconds between a change that all have heard of and the next."""


class Node:
    """The tail of a node, and what it asks the database for; with a relay, if one is named."""

    numbers = True
    look_every = 0.5

    def __init__(self, store: PostgresStore, asked: Counter[str], relay: str = "") -> None:
        self.dialect = store.dialect
        self._asked = asked
        self._store = store
        self.channel = NoticeChannel(lambda: store.connection("diptych listens"), relay_to([relay] if relay else []))
        self._numbering = Numbering(self.run, lambda: self.channel.relay)
        self.advances: list[tuple[int, int]] = []
        self.tail = Tail(cast(Store, self), b"\1" * 32, self._advance)

    def _advance(self, before: FeedHead, after: FeedHead, _: Any) -> None:
        if after.position != before.position:
            self.advances.append((before.position, after.position))

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[Any]:
        self._asked["head" if "_head(" in plan.sql else "other"] += 1
        return await self._store.run(plan, parameters)

    async def head(self) -> FeedHead:
        head = await self._numbering.head()
        self.channel.follow(head.feed)
        return head

    async def peek(self) -> FeedPeek:
        return await peek(self.run)

    def on_commit(self, wake: Callable[[], None] | None, heard: Callable[[str], bool] | None = None) -> None:
        self.channel.start(wake, heard)

    @property
    def is_ready(self) -> bool:
        """Does it hear notices, by LISTEN or by the relay that it has?"""
        relay, listening = self.channel.relay, self.channel.listening
        return relay.is_up if relay is not None else listening is not None and listening.is_connected

    async def stop(self) -> None:
        """End it, as a process that is killed does: nothing is numbered any more."""
        await self.tail.stop()
        await self.channel.close()
        await self._numbering.close()


class Cluster:
    """Nodes of one database, and one connection that changes rows."""

    def __init__(self, url: str, relay: str = "") -> None:
        self.url = url
        self.relay = relay
        self.store = PostgresStore(url, size=8)
        self.asked: Counter[str] = Counter()
        self.nodes: list[Node] = []

    async def start(self, many: int, *, ready: bool = True) -> None:
        await self.store.open(model)
        self.connection = await asyncpg.connect(self.url)
        await self.connection.execute(
            "INSERT INTO diptych_keys (kid, kind, secret, created_at) VALUES ('cursor', 'cursor', $1, '') "
            "ON CONFLICT DO NOTHING",
            (b"\1" * 32).hex(),
        )
        for _ in range(many):
            node = Node(self.store, self.asked, self.relay)
            self.nodes.append(node)
            await node.tail.start()
            node.tail.follow(True)
        if ready:
            await self.until(lambda: all(node.is_ready for node in self.nodes))
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
    """Seconds on a processor, counted in nanoseconds by the scheduler."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


async def cost(url: str, many: int, relay: str = "", changes: int = CHANGES) -> tuple[float, float, float]:
    """Statements for each change, milliseconds of the database, and the slowest milliseconds until all nodes know."""
    cluster = Cluster(url, relay)
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
