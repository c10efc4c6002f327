"""The primary dies and a standby is promoted, again and again: nothing that was acknowledged is lost, nothing is doubled,
and followers are told every change once, in order, over streams that stay open. No service is restarted.

Two nodes have an address with two hosts. Commits wait for the standby (synchronous replication). While there is no
primary, requests are refused within a second. With asynchronous replication, what was lost is told as RESUME_GAP.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.proof.long_running.failovers import NOISE, under_load
from tests.proof.long_running.town import town
from tests.support.cluster import Server, new_primary
from tests.support.effort import scaled
from tests.support.running import Client, Postgres, scratch

PROMOTIONS = scaled(20, 1)
FOLLOWERS = scaled(200, 27)


class Pair:
    """Two addresses of a database: behind one is the primary, behind the other its standby."""

    def __init__(self, postgres: Postgres, folder: Path, *, synchronous: bool) -> None:
        self._folder = folder
        self._number = 0
        self._synchronous = synchronous
        self.primary = new_primary(postgres, folder)
        self.standby = self.primary.standby(self._next())
        self.primary.wait_for_standby(synchronous=synchronous)
        self.primary.execute("CREATE DATABASE town")

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in sorted((self.primary.port, self.standby.port)))
        return f"postgresql://postgres@{hosts}/town?target_session_attrs=read-write"

    def promote(self) -> None:
        """Kill the primary, and make the standby a primary that waits for nobody."""
        self.primary.kill()
        time.sleep(1.5)
        old, self.primary = self.primary, self.standby
        self.primary.promote()
        self.standby = old

    def mend(self) -> None:
        """Put a new standby in the place of the primary that died."""
        shutil.rmtree(self.standby.folder)
        self.standby = self.primary.standby(self._next(), self.standby.port)
        self.primary.wait_for_standby(synchronous=self._synchronous)

    def _next(self) -> Path:
        self._number += 1
        return self._folder / f"server{self._number}"

    def stop(self) -> None:
        for server in (self.primary, self.standby):
            server.kill()


@contextmanager
def pair(postgres: Postgres, *, synchronous: bool = True) -> Iterator[Pair]:
    folder = Path(scratch("pair-"))
    servers: Pair | None = None
    try:
        servers = Pair(postgres, folder, synchronous=synchronous)
        yield servers
    finally:
        if servers is not None:
            servers.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_promotion_loses_nothing_doubles_nothing_and_needs_no_restart(postgres: Postgres) -> None:
    with pair(postgres) as servers, town(servers.url, services=2) as place:
        under_load(place, FOLLOWERS, PROMOTIONS, servers.promote, servers.mend).check(place)


def test_what_an_asynchronous_standby_has_lost_is_told_as_a_gap(postgres: Postgres) -> None:
    with pair(postgres, synchronous=False) as servers, town(servers.url) as place:
        client = Client(f"http://127.0.0.1:{place.services[0].port}", place.ann.bearer)
        _stop_receiving(servers.standby)
        made = client.post("/posts", {"authorId": place.ann.user, "title": "lost", "body": "x", "published": True})
        assert made.status == 201
        cursor = client.get("/posts/changes").json()["page"]["last"]
        servers.promote()
        deadline = time.monotonic() + 30
        post = {"authorId": place.ann.user, "title": "later", "body": "x", "published": True}
        while client.post("/posts", post).status != 201:
            assert time.monotonic() < deadline
        assert client.get(f"/posts/{made.json()['id']}").status == 404, "the write was lost"
        answer = client.get(f"/posts/changes?after={cursor}")
        assert (answer.status, json.loads(answer.body)["code"]) == (410, "RESUME_GAP")


def _stop_receiving(standby: Server) -> None:
    """Have a standby receive nothing any more, while its primary goes on."""
    standby.execute("ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=1'")
    standby.execute("SELECT pg_reload_conf()")
    until = time.monotonic() + 30
    while standby.execute("SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming'"):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_noise_of_a_failover_hides_no_other_line() -> None:
    assert re.sub(NOISE, "", "WARNING: the feed cannot be read: x\nWARNING: other\n") == "WARNING: other\n"
