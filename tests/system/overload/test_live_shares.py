"""One caller follows as much as it can, and the most expensive things that it can find. Everybody else is told of changes
as if they were alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.contract.live.clients import EventStream, WebSocket
from tests.proof.long_running.crowd import memory, share
from tests.proof.long_running.parts import tell
from tests.support.effort import LONG, scaled
from tests.support.machine import Machine
from tests.support.running import NewDatabase, served
from tests.system.overload.following import CHEAP, TITLES, Stage, figures, heavy, stalls, subscribed
from tests.system.overload.town import fill

HEAVY = scaled(500, 60)
"""Subscriptions with a filter through relations, each of which takes a processor tens of milliseconds for a change."""
FILTERS = scaled(5_000, 600)
"""Subscriptions with different filters that take next to nothing."""
CHANGES = scaled(200, 25)
CLOSE = 0.15
"""Seconds that are no delay, on a machine that has other things to do."""
SHARE = 0.2 if LONG else 0.02
"""The part of all time that a caller has: so little that few subscriptions use it up."""
SOCKETS, STREAMS = 4, 40


@pytest.fixture(scope="module")
def stage(new_database: NewDatabase) -> Iterator[Stage]:
    with served(fill(new_database()), f"--evaluation-share={SHARE}") as service:
        found = Stage(service)
        found.delays(10)
        yield found


def test_heavy_filters_of_one_caller_delay_nobody(stage: Stage) -> None:
    """Neither the events of others, nor the log."""
    machine = Machine()
    alone, log = stage.delays(CHANGES), sorted(stage.log() for _ in range(10))
    with subscribed(stage.service, stage.bad, HEAVY, heavy()):
        stage.delays(3)
        busy, busy_log = stage.delays(CHANGES), sorted(stage.log() for _ in range(10))
    store = stage.service.database.partition(":")[0]
    tell(f"{store}, {HEAVY} heavy: " + figures(alone=alone, busy=busy, log=log, busy_log=busy_log))
    part = 0.99 if LONG else 0.5
    assert share(busy, part) <= max(3 * share(alone, part), machine.limit(CLOSE))
    assert share(busy_log, 0.5) <= max(3 * share(log, 0.5), machine.limit(CLOSE))


def test_many_filters_of_one_caller_delay_nobody(stage: Stage) -> None:
    machine = Machine()
    alone = stage.delays(CHANGES)
    with subscribed(stage.service, stage.bad, FILTERS, CHEAP):
        with stalls(stage.service) as lives:
            for _ in range(5):
                stage.write()
                time.sleep(0.2)
        busy = stage.delays(CHANGES)
    store = stage.service.database.partition(":")[0]
    tell(f"{store}, {FILTERS} filters: " + figures(alone=alone, busy=busy, lives=lives))
    part = 0.99 if LONG else 0.5
    assert share(busy, part) <= max(3 * share(alone, part), machine.limit(CLOSE))


def test_one_address_cannot_take_all_streams(new_sqlite: NewDatabase) -> None:
    """By event streams or by sockets; who is signed in is another caller."""
    options = (f"--max-streams={STREAMS}", "--stream-share=0.25")
    with served(fill(new_sqlite()), *options) as service, ExitStack() as stack:
        stage = Stage(service)
        sockets = [stack.enter_context(WebSocket(service.port)) for _ in range(SOCKETS)]
        refused: list[Any] = []
        for number, socket in enumerate(sockets):
            socket.begin()
            for each in range(STREAMS // SOCKETS):
                socket.subscribe(f"{each}", CHEAP, m=f"{number}.{each}")
                message = socket.receive(pings=True)
                refused += message["payload"] if message["type"] == "error" else []
        assert len(refused) == STREAMS * 3 // 4
        assert {error["extensions"]["code"] for error in refused} == {"RATE_LIMITED"}
        assert {error["extensions"]["retryAfter"] for error in refused} == {5}
        stream = stack.enter_context(EventStream(service.port, TITLES))
        assert (stream.status, stream.headers["retry-after"]) == (429, "5")
        assert len(stage.delays(3)) == 3  # of one who is signed in


def test_a_stream_does_not_hold_the_head_of_its_request(new_sqlite: NewDatabase) -> None:
    number, size = 150, 60_000
    with served(fill(new_sqlite())) as service, ExitStack() as stack:

        def follow(many: int, **headers: str) -> None:
            for _ in range(many):
                stream = stack.enter_context(EventStream(service.port, TITLES, headers=headers))
                assert stream.status == 200

        follow(number)
        before = memory(service.process.pid)
        follow(number, padding="x" * size)
        each = (memory(service.process.pid) - before) // number
    tell(f"{each} bytes for a stream that was asked for by a head of {size}")
    assert each < size // 2


def test_long_values_take_no_more_memory_than_their_share(new_sqlite: NewDatabase) -> None:
    most, value = 16_000_000, "x" * 55_000 + "\U0001d54f"  # four bytes in memory for each character
    # no heart-beat until all have subscribed: nobody answers them meanwhile
    with served(fill(new_sqlite()), f"--stream-memory={most}", "--heartbeat=120") as service:
        stage = Stage(service)
        with subscribed(service, stage.bad, 5, CHEAP):
            before = memory(service.process.pid)
        with subscribed(service, stage.bad, scaled(1_000, 150), CHEAP, value):
            after = memory(service.process.pid)
            assert len(stage.delays(3)) == 3
            stream = EventStream(service.port, f"/posts/changes?title={'x' * 50_000}", token=stage.bad)
            assert stream.status in (200, 429)
            stream.socket.close()
    tell(f"{(after - before) >> 20} MiB for filters of {most >> 20} MiB, of which a caller has a quarter")
    assert after - before < most
