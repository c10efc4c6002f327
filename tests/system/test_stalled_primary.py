"""A primary that hangs, and keeps its connections: reads are refused within a second, and what comes then at once; no change is
lost, and nothing is restarted."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from diptych.compile.plan import Plan
from tests.support.cluster import Server, cluster
from tests.support.machine import Machine
from tests.support.node import Node
from tests.support.running import Postgres

AT_ONCE = 0.2
WITHIN = 1.0


@pytest.fixture
def servers(postgres: Postgres) -> Iterator[list[Server]]:
    with cluster(postgres, standbys=1) as servers:
        yield servers


def on(url: str, work: Callable[[Node, str, str], Awaitable[None]]) -> None:
    """Run work with a node, a token, and the address of a row."""

    async def run() -> None:
        node = Node(url)
        await node.start()
        try:
            token = node.token("admin")
            _, _, made = await node.send("POST", "/users", token, {"name": "old", "email": "stalled@example.org"})
            await asyncio.gather(*(node.send("GET", "/users", token) for _ in range(5)))
            await asyncio.sleep(0.5)  # it listens
            await work(node, token, f"/users/{made['id']}")
        finally:
            await node.app.stop()

    asyncio.run(run())


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


async def timed(sent: Awaitable[Any]) -> tuple[int, float]:
    """The status of a response, and its seconds."""
    begun = time.monotonic()
    async with asyncio.timeout(15):
        status, _, _ = await sent
    return status, time.monotonic() - begun


async def recovered(node: Node, url: str) -> Any:
    end = time.monotonic() + 30
    while (answer := await node.send("GET", url))[0] != 200:
        assert time.monotonic() < end, answer
        await asyncio.sleep(0.05)
    return answer[2]


def test_reads_are_refused_within_a_second_and_a_change_under_way_is_not_lost(servers: list[Server]) -> None:
    machine = Machine()

    async def work(node: Node, token: str, url: str) -> None:
        with stopped(servers[0]):
            change = asyncio.create_task(node.send("PATCH", url, token, {"name": "new"}))
            reads = await asyncio.gather(*(timed(node.send("GET", url)) for _ in range(20)))
            assert {status for status, _ in reads} == {503}
            assert max(seconds for _, seconds in reads) < machine.limit(WITHIN)
            later = [await timed(node.send("GET", url)) for _ in range(5)]
            later += [await timed(node.send("PATCH", url, token, {"name": "refused"})) for _ in range(5)]
            later.append(await timed(node.send("GET", "/health/ready")))
            assert {status for status, _ in later} == {503}
            assert max(seconds for _, seconds in later) < machine.limit(AT_ONCE)
            assert not change.done(), "its outcome is not known yet"
        status, _, changed = await change
        assert (status, changed["name"], changed["version"]) == (200, "new", 2)
        assert (await recovered(node, url))["version"] == 2

    on(servers[0].url(), work)


def test_a_standby_that_is_promoted_meanwhile_is_used_without_a_restart(servers: list[Server]) -> None:
    primary, standby = servers
    primary.wait_for_standby(synchronous=True)
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"

    async def work(node: Node, token: str, url: str) -> None:
        with stopped(primary):
            assert (await timed(node.send("GET", url)))[0] == 503
            await asyncio.to_thread(standby.promote)
            assert (await recovered(node, url))["version"] == 1
            status, _, changed = await node.send("PATCH", url, token, {"name": "new"})
            assert (status, changed["version"]) == (200, 2)

    on(f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write", work)


def test_a_server_that_is_only_slow_is_not_given_up(servers: list[Server]) -> None:
    async def work(node: Node, token: str, url: str) -> None:
        slow = Plan("SELECT pg_sleep(2)::text::bytea")
        sleeping = [asyncio.create_task(node.app.store.run(slow, ())) for _ in range(10)]
        await asyncio.gather(*sleeping)
        assert (await node.send("GET", url))[0] == 200

    on(servers[0].url(), work)
