"""Callers over several nodes get their rate, within the documented bound, and those who ask for less are never refused.

Three processes serve one PostgreSQL. Sixteen callers ask for three times their rate, at all nodes in turn; four more ask
for half of theirs. The control is the same with nodes that do not share: the bound must be exceeded.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from diptych import Model, Resource, grant
from tests.support.effort import LONG
from tests.support.running import PATIENCE, Postgres, Service, make_tables, running, token

NODES, GREEDY, HONEST = 3, 16, 4
AMOUNT, PERIOD = (1_200, 60) if LONG else (80, 4)
SECONDS = 60.0 if LONG else 4.0
PRICE = 5
SLICE = 0.1
SOURCE = (
    f"""
from datetime import timedelta

from diptych import Model, Rate, Resource, grant


class Good(Resource):
    name: str
    access = (grant("read"),)


model = Model(Good, rates=[Rate(cost={AMOUNT}, per=timedelta(seconds={PERIOD}), name="NAME")])
""".replace("{", "{{")
    .replace("}", "}}")
    .replace("NAME", "{name}")
)


class Good(Resource):
    name: str
    access = (grant("read"),)


TABLES = Model(Good)


@dataclass
class Caller:
    """A caller that asks all nodes in turn, at its own pace."""

    nodes: Sequence[Service]
    token: str
    pace: float
    """Cost that it asks for, as a factor of its rate."""
    admitted: int = 0
    refused: int = 0
    other: list[int] = field(default_factory=list)
    begun: float = 0.0
    ended: float = 0.0

    def ask(self, until: float) -> None:
        connections = [http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE) for node in self.nodes]
        headers = {"authorization": f"Bearer {self.token}"}
        between = PRICE / (self.pace * AMOUNT / PERIOD)
        self.begun = moment = time.monotonic()
        for number in range(10**9):
            if moment >= until:
                break
            time.sleep(max(0.0, moment - time.monotonic()))
            moment += between
            connection = connections[number % len(connections)]
            try:
                connection.request("GET", f"/goods?first={PRICE}", headers=headers)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):  # it was closed while it was idle, on a busy machine
                connection.close()
                continue
            if response.status == 200:
                self.admitted += PRICE
            elif response.status == 429 and int(response.headers["Retry-After"]) >= 1:
                self.refused += 1
            else:
                self.other.append(response.status)
        self.ended = time.monotonic()
        for connection in connections:
            connection.close()

    @property
    def share(self) -> float:
        """What the rate allows in the time in which it asked."""
        return AMOUNT + AMOUNT / PERIOD * (self.ended - self.begun)

    @property
    def asked(self) -> int:
        return self.admitted + self.refused * PRICE


BOUND = (NODES - 1) * (SLICE * AMOUNT + PRICE)


def measure(postgres: Postgres, folder: Path, *, shares: bool) -> tuple[list[Caller], list[Caller]]:
    """Let all callers ask for a time: the greedy ones and the honest ones."""
    url = make_tables(postgres.create(), TABLES)
    with ExitStack() as stack:
        nodes = []
        for number in range(NODES):
            name = "goods" if shares else f"goods_{number}"  # a rate with a name of its own has buckets of its own
            (folder / f"{name}.py").write_text(SOURCE.format(name=name))
            service = running("serve", f"{name}:model", database=url, cwd=folder, noise="rate limits are")
            nodes.append(stack.enter_context(service))
        callers = [
            Caller(nodes, token(url, user=f"00000000-0000-7000-8000-0000000000{number:02x}", model=TABLES), pace)
            for number, pace in enumerate([3.0] * GREEDY + [0.5] * HONEST)
        ]
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=caller.ask, args=(until,)) for caller in callers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not [status for caller in callers for status in caller.other]
    return callers[:GREEDY], callers[GREEDY:]


@pytest.mark.timeout(600)
def test_greedy_callers_get_their_share_and_honest_ones_all(postgres: Postgres, tmp_path: Path) -> None:
    greedy, honest = measure(postgres, tmp_path, shares=True)
    for caller in greedy:
        assert caller.admitted <= caller.share + BOUND, (caller.admitted, caller.share, BOUND)
        if caller.asked > caller.share + BOUND:  # a busy machine may not ask fast enough
            assert caller.admitted >= 0.9 * caller.share - 2 * PRICE, (caller.admitted, caller.share)
    assert all(caller.refused == 0 and caller.admitted > 0 for caller in honest)
    over = [caller.admitted - caller.share for caller in greedy]
    print(f"admitted beyond the share: {min(over):.0f} to {max(over):.0f} of {AMOUNT}, bound {BOUND:.0f}")


@pytest.mark.timeout(600)
def test_nodes_that_do_not_share_exceed_the_bound(postgres: Postgres, tmp_path: Path) -> None:
    greedy, _ = measure(postgres, tmp_path, shares=False)
    asking = [caller for caller in greedy if caller.asked > caller.share + BOUND]
    if not asking:
        pytest.skip("the machine is too busy to ask for three times the rate")
    assert all(caller.admitted > caller.share + BOUND for caller in asking)
