"""A guard against slipping: the CPU time of the service in parts of the floor's, both in one process, in turns.

    python -m bench.slip              # prints the ratios beside those of `slip.json`
    python -m bench.slip --record     # and records them

Requests go from the bytes of a request to the bytes of its response, through the protocol of each; no socket, no load
generator. A turn is a few requests to the one and the same number to the other; the ratio of a case is that of their
cheapest turns, since what else the machine does can only add to a turn. A case has slipped when its ratio is more than
a tenth above the recorded one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

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

RECORD = Path(__file__).with_name("slip.json")
GUARDED = ("Q1", "Q2", "R1", "R2", "W1-rest")
TOLERANCE = 1.1
TURNS, REQUESTS = 100, 10
WARM = 100


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


def recorded() -> dict[str, float]:
    found: dict[str, float] = json.loads(RECORD.read_text("utf-8"))
    return found


def measured(cases: Iterable[str] = GUARDED, **more: Any) -> dict[str, float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ratios(cases, **more))


def slipped(found: dict[str, float]) -> list[str]:
    """The cases whose ratio is more than a tenth above the recorded one."""
    return [name for name, ratio in found.items() if ratio > TOLERANCE * recorded()[name]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.slip", description="CPU of the service by CPU of the floor")
    parser.add_argument("--record", action="store_true", help="record the ratios")
    record = parser.parse_args().record
    found = measured()
    if record:
        runs = [found, *(measured() for _ in range(4))]
        found = {name: median(run[name] for run in runs) for name in found}
    before = recorded() if RECORD.exists() else {}
    for name, ratio in found.items():
        print(f"{name:8} {ratio:.2f} of the floor, recorded {before.get(name, 0):.2f}")
    if record:
        RECORD.write_text(
            json.dumps({name: round(ratio, 3) for name, ratio in found.items()}, indent=2) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
