"""One caller asks for the slowest thing that it can find, as often as it can. Everybody else is served as before."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.proof.long_running.crowd import memory, share
from tests.proof.long_running.parts import tell, tokens
from tests.support.effort import LONG, scaled
from tests.support.machine import Machine
from tests.support.running import Client, NewDatabase, Service, served
from tests.system.overload.town import fill, slow, user

TIMEOUT = 5.0 if LONG else 0.6
"""Seconds that a statement may take."""
FLOOD = scaled(200, 16)
"""Requests that the caller has under way at any time."""
READS = scaled(2_000, 100)
HEALTH = 0.05
"""Seconds in which a service must say how it is, at the median: a busy machine may take longer now and then."""


@pytest.fixture(scope="module")
def town(new_database: NewDatabase) -> Iterator[Service]:
    options = (f"--statement-timeout={TIMEOUT}", f"--request-timeout={4 * TIMEOUT}")
    with served(fill(new_database()), *options) as service:
        yield service


class Caller:
    """One caller, on one connection that stays."""

    def __init__(self, client: Client) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        self._headers = {"authorization": f"Bearer {client.token}"} if client.token else {}

    def get(self, target: str) -> http.client.HTTPResponse:
        self._connection.request("GET", target, headers=self._headers)
        response = self._connection.getresponse()
        self.body = response.read()
        return response

    def times(self, target: str, number: int) -> list[float]:
        """How long a request takes, in order; each must be answered well."""
        found: list[float] = []
        self._connection.close()  # it may have been idle for too long
        for _ in range(number):
            begun = time.perf_counter()
            assert self.get(target).status == 200, (target, self.body, time.perf_counter() - begun, found)
            found.append(time.perf_counter() - begun)
        return sorted(found)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@contextmanager
def flood(client: Client, number: int, target: str = "") -> Iterator[Counter[int]]:
    """So many requests at any time, until the end; gives how they were answered."""
    told: Counter[int] = Counter()
    over = threading.Event()

    def ask() -> None:
        with Caller(client) as caller:
            while not over.is_set():
                told[caller.get(target or slow()).status] += 1

    threads = [threading.Thread(target=ask) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        over.set()
        for thread in threads:
            thread.join()


def callers(service: Service) -> tuple[Client, Client]:
    one, other = tokens(service.database, (user(1), ()), (user(2), ()))
    return service.signed_in(one), service.signed_in(other)


def test_one_who_floods_starves_nobody(town: Service) -> None:
    bad, good = callers(town)
    machine = Machine()
    with Caller(good) as caller, Caller(Client(town.url)) as health:
        one_floods(town, bad, caller, health, machine)


def one_floods(town: Service, bad: Client, caller: Caller, health: Caller, machine: Machine) -> None:
    target = f"/users/{user(3)}?fields=name,posts[first=3](title)"
    few = "/comments?first=1&where=" + json.dumps({"body": {"contains": "zz"}}, separators=(",", ":"))
    caller.times(target, 20)
    quiet, before = caller.times(target, READS), memory(town.process.pid)
    with flood(bad, FLOOD) as told:
        caller.times(target, 10)
        busy = caller.times(target, READS)
        lives, readies = health.times("/health/live", 30), health.times("/health/ready", 30)
        slowly = time.perf_counter()
        assert caller.get(slow("yy")).status in (200, 504)  # it has its turn, too: it is not refused
        slowly = time.perf_counter() - slowly
        looked = caller.times(few, 5)
        most = memory(town.process.pid)
    after = caller.times(target, READS)
    tell(
        f"{town.database.partition(':')[0]}: quiet p50 {quiet[READS // 2] * 1e3:.1f} p99 {share(quiet, 0.99) * 1e3:.1f} ms, "
        f"busy p50 {busy[READS // 2] * 1e3:.1f} p99 {share(busy, 0.99) * 1e3:.1f} ms, after p99 {share(after, 0.99) * 1e3:.1f} ms; "
        f"health p50 {lives[15] * 1e3:.1f} and {readies[15] * 1e3:.1f}, last {lives[-1] * 1e3:.0f} and {readies[-1] * 1e3:.0f} ms; "
        f"a slow one {slowly:.1f} s, a longer one {looked[2] * 1e3:.0f} ms; memory {before >> 20} → {most >> 20} MiB; {dict(told)}"
    )
    assert told[504] + told[200] + told[503] == sum(told.values()) and told[504] + told[200]
    assert share(busy, 0.99) < 3 * share(quiet, 0.99) + machine.limit(
        0.05 if LONG else 0.5
    )  # what starves waits for seconds
    assert lives[15] < machine.limit(HEALTH) and readies[15] < machine.limit(HEALTH)
    assert slowly < 2 * TIMEOUT + machine.limit(1)
    assert most - before < 64 << 20
