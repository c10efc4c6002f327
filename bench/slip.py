"""A guard against performance regressions: instructions of a request, and its CPU time in parts of the floor's.

    python -m bench.slip              # prints both beside those of `slip.json`
    python -m bench.slip --record     # and records them

Requests go from the bytes of a request to the bytes of its response, through the protocol of each; no socket, no load
generator.

Instructions are those of Python's interpreter, counted by a trace function in all threads: the same on every machine,
for one version of Python. A case has slipped when it takes more than a tenth more than recorded.

CPU time sees also what libraries and SQLite do. A turn is a few requests to the service and the same number to the
floor; the ratio of a case is that of their cheapest turns, since what else the machine does can only add to a turn. It
differs between processors (that of a write by a sixth), so a case has slipped by it from three tenths on.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, TypeVar

import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bench.cases import CASES, ROLE, Request
from bench.floor import Floor
from bench.guard import Connection
from bench.store import Store
from diptych import Diptych
from diptych.config import Config
from diptych.demo.data import insert_sample
from diptych.demo.model import model
from diptych.identity.tokens import load_tokens
from diptych.serve.http.protocol import Protocol

T = TypeVar("T")
RECORD = Path(__file__).with_name("slip.json")
GUARDED = ("Q1", "Q2", "R1", "R2", "W1-rest")
MORE_INSTRUCTIONS, MORE_CPU = 1.1, 1.3
TURNS, REQUESTS = 100, 10
COUNTED = 20
WARM = 100
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Asked(Connection):
    """A connection, and how it is asked."""

    def __init__(self, app: Any, protocol: type[HttpToolsProtocol], *headers: str) -> None:
        super().__init__(app, protocol)
        self._headers = "".join(f"{header}\r\n" for header in headers)

    def encode(self, request: Request) -> bytes:
        body = (request.body or "").encode()
        sized = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        return f"{request.method} {request.path} HTTP/1.1\r\nhost: x\r\n{sized}{self._headers}\r\n".encode() + body

    async def cpu(self, requests: Iterable[bytes]) -> float:
        """CPU seconds of some requests."""
        begun = time.process_time()
        for request in requests:
            await self.ask(request)
        return time.process_time() - begun


@asynccontextmanager
async def both() -> AsyncIterator[tuple[Asked, Asked, str]]:
    """The service, with a token, and the floor, on one database; and a user."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/slip.db"
        app = Diptych(model, config=Config(database=url))
        await app.start()
        try:
            await insert_sample(app.store, model)
            listed = await Asked(app, Protocol).ask(b"GET /users?first=1 HTTP/1.1\r\nhost: x\r\n\r\n")
            user = listed.partition(b'"id":"')[2][:36].decode()
            token = (await load_tokens(app.store, "")).make(user, (ROLE,), None, 86_400)
            floor = Floor(Store("sqlite", url), user, "inline")
            await floor.database.open()
            yield Asked(app, Protocol, f"authorization: Bearer {token}"), Asked(floor, HttpToolsProtocol), user
        finally:
            await app.stop()


async def ratios(
    cases: Iterable[str] = GUARDED, turns: int = TURNS, slow: Callable[[], None] | None = None
) -> dict[str, float]:
    """The ratio of each case; `slow` is called before each turn of the service, to see a slip."""
    found = {}
    async with both() as (service, floor, user):
        for name in cases:
            case = CASES[name]
            request = case.build(None if case.paged else user)
            asked = [(each, [each.encode(request)] * REQUESTS) for each in (service, floor)]
            for each, requests in asked:
                response = await each.ask(requests[0])
                assert response.startswith(b"HTTP/1.1 20"), response
                for _ in range(WARM // REQUESTS):
                    await each.cpu(requests)
            spent: list[tuple[float, float]] = []
            gc.collect()
            gc.disable()
            try:
                for _ in range(turns):
                    ours, bare = [await each.cpu(requests) for each, requests in asked]
                    spent.append((ours + _cpu(slow), bare))
            finally:
                gc.enable()
            found[name] = min(ours for ours, _ in spent) / min(bare for _, bare in spent)
    return found


def _cpu(work: Callable[[], None] | None) -> float:
    begun = time.process_time()
    for _ in range(REQUESTS if work is not None else 0):
        assert work is not None
        work()
    return time.process_time() - begun


class Instructions:
    """A trace function that counts the instructions of Python's interpreter, in this thread and in new ones."""

    def __init__(self) -> None:
        self.count = 0

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.count += event == "opcode"
        return self._trace

    def __enter__(self) -> Instructions:
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)


async def instructions(cases: Iterable[str] = GUARDED, slow: Callable[[], None] | None = None) -> dict[str, int]:
    """Instructions of a request of each case, the least of some; `slow` is called with each, to see a slip."""
    found = {}
    with Instructions() as counter:  # from the start, since it sees only threads that begin later
        async with both() as (service, _, user):
            for name in cases:
                case = CASES[name]
                request = service.encode(case.build(None if case.paged else user))
                counts = []
                for _ in range(WARM + COUNTED):
                    before = counter.count
                    await service.ask(request)
                    if slow is not None:
                        slow()
                    counts.append(counter.count - before)
                found[name] = min(counts[WARM:])
    return found


def recorded() -> dict[str, Any]:
    """`cpu`: the ratio of each case. `instructions`: those of each case, by version of Python."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found


def run(work: Awaitable[T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_awaited(work))


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def measured(cases: Iterable[str] = GUARDED, **more: Any) -> dict[str, float]:
    return run(ratios(cases, **more))


def slipped(found: dict[str, float]) -> list[str]:
    """The cases whose ratio of CPU time is too far above the recorded one."""
    return [name for name, ratio in found.items() if ratio > MORE_CPU * recorded()["cpu"][name]]


def grown(found: dict[str, int]) -> list[str]:
    """The cases that take too many instructions; none if they were not recorded for this version of Python."""
    before = recorded()["instructions"].get(PYTHON, {})
    return [name for name, count in found.items() if name in before and count > MORE_INSTRUCTIONS * before[name]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.slip", description="what a request costs the service")
    parser.add_argument("--record", action="store_true", help="record it")
    record = parser.parse_args().record
    before = recorded()
    counts = run(instructions())
    runs = [measured() for _ in range(5 if record else 1)]
    cpu = {name: round(median(run[name] for run in runs), 3) for name in GUARDED}
    known = before["instructions"].get(PYTHON, {})
    for name in GUARDED:
        print(
            f"{name:8} {counts[name]:6} instructions, recorded {known.get(name, 0):6};"
            f" CPU {cpu[name]:.2f} of the floor, recorded {before['cpu'][name]:.2f}"
        )
    if record:
        now = {"cpu": cpu, "instructions": before["instructions"] | {PYTHON: counts}}
        RECORD.write_text(json.dumps(now, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
