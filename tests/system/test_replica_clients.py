"""The client for pages in a browser carries read tokens: over nodes that take turns and a standby that lags, a page reads
what it wrote and what it was told, and never goes back in time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.support.cluster import Server, cluster
from tests.support.running import ROOT, Postgres, make_tables, node, served, token

LAG = 1.0
"""Seconds after which the standby replays a commit."""


@pytest.fixture
def servers(postgres: Postgres) -> Iterator[list[Server]]:
    with cluster(postgres, standbys=1) as servers:
        yield servers


def test_a_page_reads_what_it_wrote_and_was_told_over_nodes_and_a_lagging_standby(servers: list[Server]) -> None:
    primary, standby = servers
    make_tables(primary.url())
    _await_tables(standby)
    options = ("--replicas", standby.url())
    with served(primary.url(), *options) as one, served(primary.url(), *options) as two:
        admin = token(primary.url(), "admin")
        time.sleep(1)  # the nodes have probed it
        standby.delay(LAG)
        package = str(ROOT / "clients" / "rest" / "index.js")
        found = json.loads(node("replicas.mjs", package, admin, str(int(LAG * 1000)), one.url, two.url))
    assert found["writes"] == 40 and found["stale"] == 0
    assert (found["requests"], found["requested"]) == (5, 9), "a fetch for other clients"
    assert found["parallel"] == 20
    assert found["older"] > 0, "the standby has answered no read with a token"
    assert found["back"] == 0
    assert (found["told"], found["untold"]) == (4, 0)
    assert found["tokens"] > 40
    assert found["control"] > 0, "a page whose tokens are old must read what is old"


def _await_tables(standby: Server) -> None:
    """Wait until the standby has the tables: a replica without them is warned of."""
    end = time.monotonic() + 30
    while not standby.execute("SELECT FROM pg_class WHERE relname = 'diptych_feed'"):
        assert time.monotonic() < end
        time.sleep(0.05)
