"""Thousands of viewers who see different rows of one resource are told of a change in half a second, on both stores.

Every viewer has values of its own in the statement that evaluates a change. Batches of them share a statement; the
control, one statement for each, must be slower. Someone who reads meanwhile is not held up. Viewers are sinks in the
process of the service, so that what is measured is the service and not a client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from diptych.compile.plan import Plan
from diptych.demo.model import model
from diptych.fair.caller import CALLER
from diptych.live import batches
from diptych.serve.http.request import Request
from tests.contract.feed.scene import script
from tests.contract.http import data
from tests.contract.http.data import POST
from tests.proof.long_running.parts import tell
from tests.support.effort import LONG, scaled
from tests.support.following import Recorder, caller_of, ready_for
from tests.support.in_process import Service, in_process
from tests.support.machine import Machine
from tests.support.running import NewDatabase

VIEWERS = scaled(5_000, 300)
CHANGES = scaled(12, 2)
WITHIN = 0.5
"""Seconds from a commit until all viewers are told, at the median of all changes."""
EVERY = 0.005
"""Seconds between two requests of someone who reads."""
DOCUMENT = "subscription { postChanged { kind rowId cursor post { title author { name } } } }"


class Told(NamedTuple):
    """Seconds until all were told of each change, statements and processor time of the service for each, and seconds of
    each read."""

    delays: list[float]
    statements: float
    used: float
    alone: list[float]
    beside: list[float]


class Timed(Recorder):
    """A sink that notes when it was told last."""

    at = 0.0

    def put(self, cursor: str, body: bytes) -> None:
        self.at = time.perf_counter()
        super().put(cursor, body)


async def open_streams(service: Service) -> list[Timed]:
    handler, sinks = service.handler, [Timed() for _ in range(VIEWERS)]
    for number, sink in enumerate(sinks):
        caller = await caller_of(handler, service.token(f"00000000-0000-4000-8000-{number:012x}"))
        ready, inputs = await ready_for(handler, caller, DOCUMENT)
        CALLER.set(f"viewer {number}")
        sink.subscription = await handler.live.subscribe(ready, inputs, caller, sink)
    CALLER.set("")
    return sinks


async def read_on(service: Service, took: list[float], over: asyncio.Event) -> None:
    """Someone who reads a page every few milliseconds."""

    async def nothing(_: int) -> bytes:
        return b""

    CALLER.set("reader")
    while not over.is_set():
        begun = time.perf_counter()
        reply = await service.handler.handle(Request("GET", "/users", "first=3", {}, nothing))
        assert reply.status == 200
        took.append(time.perf_counter() - begun)
        await asyncio.sleep(EVERY)


async def change(service: Service, number: int) -> None:
    statement = f"UPDATE posts SET title = 'n{number}' WHERE id = '{POST[1]}'"
    await service.app.store.write(lambda: script([statement]))


async def measured(service: Service) -> Told:
    sinks = await open_streams(service)
    store, run = service.app.store, service.app.store.run
    seen: list[str] = []

    async def noted(plan: Plan, parameters: Sequence[Any]) -> Any:
        if "AS _becomes" in plan.sql:
            seen.append(plan.sql)
        return await run(plan, parameters)

    store.run = noted  # type: ignore[method-assign]  # a spy
    alone: list[float] = []
    beside: list[float] = []
    delays: list[float] = []
    await _for_a_while(service, alone, 1.5)
    over = asyncio.Event()
    reading = asyncio.create_task(read_on(service, beside, over))
    used = 0.0
    for number in range(CHANGES):
        await change(service, number)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        while not all(len(sink.bodies) == number + 1 for sink in sinks):
            await asyncio.sleep(0.01)
        delays.append(max(sink.at for sink in sinks) - begun)
        used += time.process_time() - begun_cpu
        await asyncio.sleep(0.5)
    over.set()
    await reading
    return Told(sorted(delays), len(seen) / CHANGES, used / CHANGES, sorted(alone), sorted(beside))


async def _for_a_while(service: Service, took: list[float], seconds: float) -> None:
    over = asyncio.Event()
    reading = asyncio.create_task(read_on(service, took, over))
    await asyncio.sleep(seconds)
    over.set()
    await reading


def report(told: Told, what: str) -> None:
    tell(
        f"{VIEWERS} distinct viewers {what}: all told {told.delays[len(told.delays) // 2] * 1e3:.0f} ms after a change "
        f"(slowest {told.delays[-1] * 1e3:.0f}), {told.statements:.1f} statements and {told.used * 1e3:.0f} ms of the processor "
        f"each; who reads meanwhile: "
        f"p99 {_p99(told.alone) * 1e3:.1f} ms alone, {_p99(told.beside) * 1e3:.1f} beside"
    )


def _p99(values: Sequence[float]) -> float:
    return values[int(len(values) * 0.99)]


@pytest.fixture
def service(new_database: NewDatabase) -> Iterator[Service]:
    with (
        asyncio.Runner() as runner,
        in_process(model, new_database(), runner, data.ROWS, stream_share=0.0, max_streams=VIEWERS + 10) as found,
    ):
        yield found


@pytest.mark.timeout(scaled(600, 120))
def test_thousands_of_viewers_are_told_by_few_statements_in_time(service: Service) -> None:
    machine = Machine()
    told = service.runner.run(measured(service))
    report(told, f"on {service.app.store.dialect.name}")
    assert told.statements <= VIEWERS / 8, "one statement for each batch; batches are smaller on a busy machine"
    if LONG:
        assert told.delays[len(told.delays) // 2] <= machine.limit(WITHIN)
        assert _p99(told.beside) <= 2 * _p99(told.alone) + machine.limit(0.005)


@pytest.mark.timeout(scaled(600, 120))
def test_one_statement_for_each_viewer_is_what_it_was(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST", 1)
    told = service.runner.run(measured(service))
    report(told, f"on {service.app.store.dialect.name}, one by one")
    assert told.statements >= VIEWERS
    if LONG:
        assert told.delays[len(told.delays) // 2] > WITHIN, "the control must fail"
