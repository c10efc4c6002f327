"""Who waits while the event loop is busy, and how connections are accepted in it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import pytest
import uvicorn
import uvloop

from diptych.cli.server import Server
from diptych.fair.admission import BUSY, BUSY_ALONE, Admission
from diptych.fair.pace import Pace

T = TypeVar("T")
HOGS, GUESTS = 40, 3


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


def work_for(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def asked(begun: list[str], caller: str, seconds: float) -> Coroutine[Any, Any, None]:
    """A request that runs for so long."""

    async def work() -> None:
        begun.append(caller)
        work_for(seconds)

    return work()


def test_a_caller_pays_for_what_it_ran_and_not_for_what_it_waited() -> None:
    async def work() -> list[float]:
        admission = Admission()

        async def request(seconds: float, waits: float) -> str:
            work_for(seconds)
            await asyncio.sleep(waits)
            work_for(seconds)
            return "answer"

        for caller, seconds, waits in (("short", 0.0, 0.0), ("waiting", 0.0, 0.05), ("running", 0.02, 0.05)):
            assert await admission.run(caller, request(seconds, waits)) == "answer"
        return [admission._buckets.debt(caller) for caller in ("short", "waiting", "running")]

    short, waiting, running = run(work)
    assert max(short, waiting) < 0.01 < 0.035 < running


def test_what_is_raised_and_cancelled_goes_through() -> None:
    async def work() -> None:
        admission, closed = Admission(), []

        async def failing() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                closed.append(True)

        task = asyncio.create_task(admission.run("a", failing()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await admission.run("a", failing())
        assert closed == [True, True]

        async def wrong() -> None:
            await asyncio.sleep(0)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await admission.run("a", wrong())

    run(work)


def test_callers_who_used_little_begin_at_once() -> None:
    begun: list[str] = []

    async def work() -> None:
        admission = Admission()
        admission._buckets.spend("hog", 10)
        tasks = [asyncio.create_task(admission.run("hog", asked(begun, "hog", 0.006))) for _ in range(HOGS)]
        await asyncio.sleep(0.02)
        for _ in range(GUESTS):
            await admission.run("guest", asked(begun, "guest", 0.001))
        await asyncio.gather(*tasks)

    run(work)
    assert begun.count("hog") == HOGS
    assert begun[: 2 * GUESTS + 4].count("guest") == GUESTS, begun


def test_those_who_wait_begin_one_caller_after_the_other_and_leave_room_between() -> None:
    """Each request takes long, so that one begins at a time, and whoever need not wait is served in between."""
    begun: list[str] = []

    async def work() -> int:
        admission = Admission()
        for caller in ("hog", "guest"):
            admission._buckets.spend(caller, 10)
        callers = ["hog"] * HOGS + ["guest"] * GUESTS
        tasks = [asyncio.create_task(admission.run(caller, asked(begun, caller, 0.006))) for caller in callers]
        others, all_of_them = 0, asyncio.gather(*tasks)
        while not all_of_them.done():
            others += 1
            await asyncio.sleep(0.001)
        return others

    others = run(work)
    assert sorted(begun) == ["guest"] * GUESTS + ["hog"] * HOGS
    assert begun[: 2 * GUESTS].count("guest") == GUESTS, begun
    assert others >= HOGS, "somebody else had a turn after each of them"


def test_short_requests_begin_several_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that is alone has all of the loop."""
    monkeypatch.setattr("diptych.fair.admission._QUANTUM", 60.0)  # whatever else the machine does
    begun: list[str] = []

    async def work() -> int:
        admission = Admission()
        admission._buckets.spend("hog", 10)
        tasks = [asyncio.create_task(admission.run("hog", asked(begun, "hog", 0))) for _ in range(300)]
        turns, all_of_them = 0, asyncio.gather(*tasks)
        while not all_of_them.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert run(work) < 150 and len(begun) == 300


def test_whoever_leaves_while_it_waits_takes_no_turn() -> None:
    begun: list[str] = []

    async def work() -> list[bool]:
        admission = Admission()
        admission._buckets.spend("hog", 10)
        first, second = (asyncio.create_task(admission.run("hog", asked(begun, "hog", 0))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first, second], timeout=5)
        return [first.cancelled(), second.done() and not second.cancelled()]

    assert run(work) == [True, True] and begun == ["hog"]


def test_requests_of_one_caller_are_served_in_their_order() -> None:
    """As long as some wait, those that come when the loop is not late wait behind them."""
    begun: list[int] = []

    async def request(number: int) -> None:
        begun.append(number)

    async def work() -> bool:
        admission = Admission()
        admission._buckets.spend("hog", 10)
        tasks = []
        for number in range(200):
            is_late = number % 3 == 0
            if admission.is_needed("hog", BUSY_ALONE + 1 if is_late else 0.0):
                tasks.append(asyncio.create_task(admission.run("hog", request(number))))
            else:
                await request(number)
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return admission.is_needed("hog", 0.0)

    assert not run(work)
    assert begun == list(range(200))


def test_clients_that_never_let_the_queue_become_empty_leave_it_when_it_is_short() -> None:
    """Each sends a request as soon as it has a response; once the loop was late, and since then it is not."""

    async def work() -> int:
        admission, queued = Admission(), 0
        admission._buckets.spend("hog", 10)

        async def client() -> None:
            nonlocal queued
            lag = BUSY_ALONE + 1
            for _ in range(300):
                if admission.is_needed("hog", lag):
                    queued += 1
                    await admission.run("hog", asked([], "hog", 0.00001))
                await asyncio.sleep(0)
                lag = 0.0

        await asyncio.gather(*(client() for _ in range(32)))
        return queued

    assert 32 <= run(work) < 32 * 100


def test_a_caller_that_is_alone_waits_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("diptych.fair.admission.time.monotonic", lambda: now)
    admission, late = Admission(), (BUSY + BUSY_ALONE) / 2
    assert [admission.is_needed("ann", lag) for lag in (0.0, BUSY, late)] == [False, False, True]
    now += 1
    assert [admission.is_needed("ann", lag) for lag in (late, BUSY_ALONE + late)] == [False, True]
    assert not admission.is_needed("ben", 0.0)
    assert [admission.is_needed(caller, late) for caller in ("ann", "ben", "ben")] == [True, True, True]


# long work


@pytest.mark.slow
def test_long_work_rests_while_others_have_work_and_only_then() -> None:
    async def slices(busy: bool) -> float:
        """Seconds of rest for one of work."""
        over = False

        async def other() -> None:
            while not over:
                work_for(0.003)
                await asyncio.sleep(0)

        task = asyncio.create_task(other()) if busy else None
        pace, worked, begun = Pace(), 0, time.monotonic()
        while worked < 50:
            if pace.is_over():
                worked += 1
                await pace.rest()
        over = True
        if task is not None:
            await task
        return (time.monotonic() - begun) / (worked * 0.0005)

    alone, beside = run(lambda: slices(False)), run(lambda: slices(True))
    assert beside > 3 * alone


# connections


def test_several_connections_are_accepted_in_a_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes when the loop is busy does not wait for as many turns as others came before."""
    many, accepted = 32, 0

    class Accepting(asyncio.Protocol):
        def __init__(self, **_: object) -> None:
            pass

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            nonlocal accepted
            accepted += 1

    async def turns(listener: socket.socket, most: int) -> int:
        nonlocal accepted
        monkeypatch.setattr("diptych.cli.server._ACCEPTS", most)
        accepted = 0
        config = uvicorn.Config(_nothing, http=Accepting, lifespan="off", log_config=None)
        server = Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        clients = [socket.create_connection(listener.getsockname()) for _ in range(many)]
        try:
            await server.startup([listener])
            found = 0
            while accepted < many:
                found += 1
                work_for(0.001)
                await asyncio.sleep(0)
            await server.shutdown([listener])
            return found
        finally:
            for client in clients:
                client.close()

    found = []
    for most in (8, 1):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        found.append(run(partial(turns, listener, most)))
    assert found[0] <= many // 8 + 3 and found[1] >= many


async def _nothing(scope: object, receive: object, send: object) -> None: ...
