"""Many nodes of one database: one numbers a change, the others hear of it, and what it costs does not grow with them.

A node is simulated by its tail, with a numbering and a listening connection of its own. What is counted are the
statements of all nodes; the full form also measures the processor time of the database. The control is how it was:
every node numbers whenever it hears of something.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from diptych.live.tail import Tail
from tests.contract.feed.scene import model
from tests.proof.live.nodes import Cluster, contiguous, cost
from tests.proof.long_running.parts import tell
from tests.support.effort import LONG, scaled
from tests.support.running import Postgres, with_tables

NODES = scaled(50, 8)


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
