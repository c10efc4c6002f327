"""Reads from lagging standbys are never stale: a client reads what it has written, and never goes back in time.

Two nodes serve one primary with two standbys, which replay 0 to 2 seconds late. Clients write on one node and read on
the other, with read tokens or without them. The same run without the test of the snapshot must fail.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from diptych.db.postgres import replicas as replicas_module
from tests.support.cluster import Server, cluster
from tests.support.effort import LONG, scaled
from tests.support.node import Node
from tests.support.running import PATIENCE, Postgres

PAIRS = scaled(100_000, 500)
CLIENTS = scaled(64, 12)
DELAYS = (0.0, 0.0, 0.02, 0.3, 1.0, 2.0)


@dataclass
class Seen:
    """What the clients have seen."""

    pairs: int = 0
    stale: int = 0
    back: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    lag: float = 0.0
    """The most seconds that a standby was behind."""


READ = "query($i: ID!, $s: ID!) { user(id: $i) { name } shared: user(id: $s) { version } }"
WRITE = "mutation($i: ID!, $n: String!) { updateUser(id: $i, patch: {name: $n}) { id } }"


async def _client(number: int, nodes: list[Node], token: str, shared: str, pairs: int, seen: Seen) -> None:
    """Write here, read there; every second client carries read tokens."""
    carries, draw = number % 2 == 0, random.Random(number)
    carried: dict[str, str] = {"prefer": "read-token"} if carries else {}

    async def ask(method: str, url: str, body: Any = None) -> Any:
        status, headers, answer = await draw.choice(nodes).send(method, url, token, body, **carried)
        seen.statuses[status] += 1
        if status == 404:  # a row that is not there yet: a stale read
            return None
        assert status in (200, 201), answer
        if carries:
            assert "read-token" in headers, (status, answer)
            carried["read_token"] = headers["read-token"]
        return answer

    made = await ask("POST", "/users", {"name": "0", "email": f"c{number}.{seen.pairs}@example.org"})
    last = 0
    for value in range(1, pairs + 1):
        if draw.random() < 0.1:
            await asyncio.sleep(draw.uniform(0, 0.05))
        if draw.random() < 0.5:
            await ask("PATCH", f"/users/{made['id']}", {"name": str(value)})
        else:
            answer = await ask("POST", "/graphql", {"query": WRITE, "variables": {"i": made["id"], "n": str(value)}})
            assert "errors" not in answer, answer
        for _ in range(2):
            if draw.random() < 0.5:
                read, other = await ask("GET", f"/users/{made['id']}"), await ask("GET", f"/users/{shared}")
            else:
                variables = {"i": made["id"], "s": shared}
                answered = await ask("POST", "/graphql", {"query": READ, "variables": variables})
                read, other = answered["data"]["user"], answered["data"]["shared"]
            seen.pairs += 1
            seen.stale += read is None or read["name"] != str(value)
            seen.back += other["version"] < last
            last = max(last, other["version"])
        if number % 16 == 0:
            await ask("PATCH", f"/users/{shared}", {"name": f"shared {number} {value}"})


@contextmanager
def _lagging(standbys: list[Server]) -> Iterator[None]:
    """The standbys replay late, each by another delay every now and then: also for longer than the longest delay."""
    over = threading.Event()

    def stir(number: int) -> None:
        draw = random.Random(number)
        while not over.wait(draw.uniform(0.2, 3.0)):
            standbys[number].delay(draw.choice(DELAYS))

    threads = [threading.Thread(target=stir, args=(number,)) for number in range(len(standbys))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


async def _watch(node: Node, seen: Seen) -> None:
    """Note how far standbys are behind."""
    while True:
        seen.lag = max(seen.lag, *(replica.lag for replica in node.app.store.replicas))
        await asyncio.sleep(0.1)


async def _work(servers: list[Server], pairs: int, is_enough: Callable[[Seen], bool]) -> tuple[Seen, Counter[str]]:
    """What clients see; they go on until it is enough, as a few pairs may be over before a standby lags."""
    primary, *standbys = servers
    loop = asyncio.get_running_loop()
    urls = tuple(standby.url() for standby in standbys)
    nodes = [Node(primary.url(), urls), Node(primary.url(), urls)]
    seen = Seen()
    try:
        for node in nodes:
            await node.start()
        token = nodes[0].token("admin")
        _, _, made = await nodes[0].send("POST", "/users", token, {"name": "s", "email": "s@example.org"})
        await asyncio.sleep(1)
        watching = asyncio.create_task(_watch(nodes[0], seen))
        with _lagging(standbys):
            each = -(-pairs // CLIENTS // 2)
            until = loop.time() + PATIENCE
            while not seen.pairs or (not is_enough(seen) and loop.time() < until):
                await asyncio.gather(*(_client(n, nodes, token, made["id"], each, seen) for n in range(CLIENTS)))
        watching.cancel()
        reads: Counter[str] = Counter()
        for node in nodes:
            reads["primary"] += node.app.store.primary_reads
            for replica in node.app.store.replicas:
                reads[replica.name] += replica.reads
        return seen, reads
    finally:
        for node in nodes:
            await node.app.stop()


def test_a_client_reads_what_it_wrote_and_never_goes_back_over_lagging_standbys(postgres: Postgres) -> None:
    begun = time.monotonic()
    with cluster(postgres, standbys=2) as servers:
        seen, reads = asyncio.run(_work(servers, PAIRS, lambda seen: seen.lag > 0))
    print(seen, dict(reads), f"in {time.monotonic() - begun:.0f} s")
    assert set(seen.statuses) == {200, 201}
    assert seen.pairs >= PAIRS and seen.lag > (1.5 if LONG else 0.0)
    assert (seen.stale, seen.back) == (0, 0)
    by_standbys = sum(count for name, count in reads.items() if name != "primary")
    assert by_standbys > 0.1 * reads.total(), reads


@pytest.mark.long
def test_without_the_test_of_the_snapshot_reads_are_stale(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    untested = replicas_module._CHECKED.replace("pg_is_in_recovery() AND EXISTS", "true OR EXISTS")
    assert untested != replicas_module._CHECKED
    monkeypatch.setattr(replicas_module, "_CHECKED", untested)
    with cluster(postgres, standbys=2) as servers:
        seen, _ = asyncio.run(_work(servers, 600, lambda seen: seen.stale > 0 and seen.back > 0))
    assert seen.stale > 0 and seen.back > 0
