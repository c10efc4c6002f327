"""A relay carries notices between nodes: NATS tells them of changes, and nothing depends on it.

A real nats-server is killed by SIGKILL and started again, is not there when nodes start, and carries forged, doubled and
late notices. All nodes know every change once, in order, within the time of a poll at most. The controls are nodes that do
not fall back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import nats
import pytest
from nats.aio.msg import Msg

from diptych.db.postgres.channel import NoticeChannel
from diptych.live.tail import Tail
from tests.contract.feed.scene import model
from tests.proof.live.nodes import Cluster, Node, contiguous, cost
from tests.proof.long_running.parts import tell
from tests.support.effort import LONG, scaled
from tests.support.machine import Machine
from tests.support.nats import NatsServer
from tests.support.running import Postgres, with_tables

NODES = scaled(50, 8)
BOUND = 1.0
"""Seconds until all nodes know a change whose notice was lost, on an idle machine: half a second until a poll finds it,
and the poll."""


@pytest.fixture
def server() -> Iterator[NatsServer]:
    with NatsServer() as running:
        yield running


@asynccontextmanager
async def nodes(postgres: Postgres, relay: str, many: int = 4, *, ready: bool = True) -> AsyncIterator[Cluster]:
    cluster = Cluster(with_tables(postgres.create(), model), relay)
    await cluster.start(many, ready=ready)
    try:
        yield cluster
        assert all(contiguous(node.advances) for node in cluster.nodes)
    finally:
        await cluster.stop()


async def notified(cluster: Cluster) -> list[str]:
    """What the database notifies from now on."""
    heard: list[str] = []
    await cluster.connection.add_listener("diptych_feed", lambda *given: heard.append(str(given[3])))
    return heard


async def change(cluster: Cluster, number: int, by: int = 0, seconds: float = 30.0) -> float:
    """Commit a change by a node; gives the seconds until all know it."""
    position = max(node.tail.head.position for node in cluster.nodes) + 1
    began = time.perf_counter()
    await cluster.change(number)
    cluster.nodes[by].tail.wake()
    await cluster.until(lambda: cluster.all_at(position), seconds)
    return time.perf_counter() - began


def are_up(cluster: Cluster, up: bool) -> bool:
    return all(node.channel.relay is not None and node.channel.relay.is_up is up for node in cluster.nodes)


@pytest.mark.timeout(scaled(900, 120))
def test_with_a_relay_many_nodes_cost_the_database_what_one_does(
    postgres: Postgres, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Node, "look_every", 60.0)  # polls come by the clock: on a busy machine, more for each change
    measured = {}
    for name, many, relay in (("1", 1, ""), (f"{NODES}", NODES, ""), (f"{NODES}, relay", NODES, server.url)):
        statements, used, slowest = measured[name] = asyncio.run(
            cost(with_tables(postgres.create(), model), many, relay)
        )
        tell(f"{name}: {statements:.1f} statements, {used:.2f} ms of the database, known within {slowest:.0f} ms")
    one, listening, relayed = measured.values()
    assert relayed[0] <= 1.5 * one[0] + 0.5
    if LONG:
        assert relayed[1] <= 1.5 * one[1]
        assert listening[1] > 1.5 * relayed[1], "the control must fail"


@pytest.mark.timeout(60)
def test_while_the_relay_is_up_the_database_notifies_nobody(postgres: Postgres, server: NatsServer) -> None:
    async def work() -> None:
        async with nodes(postgres, server.url) as cluster:
            heard = await notified(cluster)
            for number in range(10):
                await change(cluster, number, by=number % 4)
            assert not heard
            states = [node.channel.relay.state for node in cluster.nodes if node.channel.relay is not None]
            assert sum(state.sent for state in states) == 10
            assert sum(state.received for state in states) == 30 and not any(state.refused for state in states)

    asyncio.run(work())


@pytest.mark.timeout(120)
def test_a_relay_that_is_killed_and_comes_back_is_not_missed(postgres: Postgres, server: NatsServer) -> None:
    machine = Machine()

    async def work() -> list[float]:
        async with nodes(postgres, server.url) as cluster:
            heard, delays, total = await notified(cluster), [], 0
            for _ in range(3):
                delays.append(await change(cluster, total, by=total % 4))
                server.kill()
                delays += [await change(cluster, total + 1 + n, by=n % 4) for n in range(5)]
                await cluster.until(lambda: are_up(cluster, False))
                heard.clear()
                delays.append(await change(cluster, total + 6))
                await cluster.until(lambda: bool(heard), 5)  # nodes notify each other by the database again
                server.start()
                await cluster.until(lambda: are_up(cluster, True))
                heard.clear()
                delays.append(await change(cluster, total + 7))
                assert not heard
                total += 8
            return delays

    delays = asyncio.run(work())
    tell(f"a relay was killed thrice: a change was known everywhere after {max(delays):.2f} s at most")
    assert max(delays) < machine.limit(BOUND)


@pytest.mark.timeout(60)
def test_nodes_start_without_their_relay_and_use_it_once_it_is_there(postgres: Postgres) -> None:
    async def work() -> None:
        server = NatsServer()
        async with nodes(postgres, server.url, ready=False) as cluster:
            await cluster.until(lambda: all(node.channel.listening.is_connected for node in cluster.nodes))  # type: ignore[union-attr]  # all have one
            heard = await notified(cluster)
            await change(cluster, 1)
            await cluster.until(lambda: bool(heard), 5)
            with server:
                await cluster.until(lambda: are_up(cluster, True))
                heard.clear()
                await change(cluster, 2)
                assert not heard

    asyncio.run(work())


@pytest.mark.timeout(60)
def test_a_node_that_alone_has_no_relay_hears_of_all_and_is_heard(postgres: Postgres, server: NatsServer) -> None:
    """Nodes that are switched to a relay one by one, or are cut off from it, find each other's changes by polls."""
    machine = Machine()

    async def work() -> list[float]:
        async with nodes(postgres, server.url, 3) as cluster:
            other = Node(cluster.store, cluster.asked)
            cluster.nodes.append(other)
            await other.tail.start()
            other.tail.follow(True)
            await cluster.until(lambda: other.is_ready)
            return [await change(cluster, number, by=number % 4) for number in range(8)]

    assert max(asyncio.run(work())) < machine.limit(BOUND)


@pytest.mark.timeout(60)
def test_what_others_send_to_the_relay_changes_nothing(postgres: Postgres, server: NatsServer) -> None:
    """Whoever reaches the relay can publish: no notice, a forged one, and again what was once signed, late and doubled."""

    async def work() -> None:
        async with nodes(postgres, server.url) as cluster:
            client = await nats.connect(server.url)
            seen: list[bytes] = []

            async def see(message: Msg) -> None:
                seen.append(message.data)

            subject = f"diptych.{cluster.nodes[0].tail.head.feed}"
            await client.subscribe(subject, cb=see)
            await client.flush()
            begin = cluster.nodes[0].tail.head.position
            for number in range(3):
                await change(cluster, number, by=number)
            await cluster.until(lambda: len(seen) == 3)
            signature, feed, *_, listed = seen[0].decode().split(" ", 6)
            forged = f"{signature} {feed} {begin + 3} 9000 1 1 {listed}".encode()
            cluster.asked.clear()
            for message in (b"", b"\xff\xfe", b"x" * 9_000, forged, *reversed(seen), *seen):
                await client.publish(subject, message)
            await client.flush()
            relays = [node.channel.relay for node in cluster.nodes if node.channel.relay is not None]
            await cluster.until(lambda: all(relay.state.refused == 4 for relay in relays))
            assert {node.tail.head.position for node in cluster.nodes} == {begin + 3}
            assert not cluster.asked["head"], "a message that is not valid makes nobody number"
            await client.close()

    asyncio.run(work())


@pytest.mark.timeout(60)
def test_a_relay_without_polls_and_without_a_fallback_loses_changes(
    postgres: Postgres, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: it is not the relay that makes nodes know of all changes."""
    monkeypatch.setattr(NoticeChannel, "_switched", lambda self, is_relayed: None)
    monkeypatch.setattr(Node, "look_every", 3_600.0)
    monkeypatch.setattr(Tail, "_put_off_poll", lambda self: setattr(self, "_next_poll", time.monotonic() + 3_600))

    async def work() -> None:
        async with nodes(postgres, server.url) as cluster:
            for node in cluster.nodes:
                assert node.channel.listening is not None
                node.channel.listening.want(False)
            await change(cluster, 1)
            server.kill()
            await cluster.until(lambda: are_up(cluster, False))
            with pytest.raises(TimeoutError):
                await change(cluster, 2, seconds=3.0)

    asyncio.run(work())
