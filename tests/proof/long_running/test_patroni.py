"""Patroni replaces a primary that was killed: nothing that was acknowledged is lost, nothing is doubled, and followers are
told every change once, in order, over streams that stay open. No service is restarted.

PostgreSQL servers and an etcd run here as the recipe in `deploy/` says; the services have all hosts in their address.
"""

from __future__ import annotations

from tests.proof.long_running.failovers import under_load
from tests.proof.long_running.parts import tell
from tests.proof.long_running.town import town
from tests.support.effort import scaled
from tests.support.patroni import patroni
from tests.support.running import Postgres

KILLS = scaled(5, 1)
SERVERS = scaled(3, 2)
FOLLOWERS = scaled(200, 27)


def test_a_leader_that_is_killed_is_replaced_and_nothing_is_lost_doubled_or_restarted(postgres: Postgres) -> None:
    with patroni(postgres, SERVERS) as servers:
        servers.execute("CREATE ROLE app LOGIN PASSWORD 'secret'", "CREATE DATABASE town OWNER app")
        seconds: list[float] = []
        with town(servers.url("app:secret", "town"), services=2) as place:
            found = under_load(place, FOLLOWERS, KILLS, lambda: seconds.append(servers.kill_leader()), servers.mend)
            tell(f"Patroni, {SERVERS} servers: leaders after {', '.join(f'{each:.1f}' for each in seconds)} s")
            found.check(place)
