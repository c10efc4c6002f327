"""What metrics, rates, `Server-Timing` and traces add to a request: microseconds of CPU time, and instructions.

    python -m bench.operations

One process serves the same request by several applications in turns, from the bytes of a request to those of its
response. What one of them adds is the median, over all turns, of its time minus that of the plain one in the same turn,
which what else the machine does changes little. The plain one has metrics, as every service does.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from typing import Any

from bench.cases import CASES, ROLE
from bench.slip import Asked, Instructions, run
from diptych import Diptych
from diptych.config import Config
from diptych.demo.data import insert_sample
from diptych.demo.model import model
from diptych.identity.tokens import load_tokens
from diptych.serve.http.protocol import Protocol

TURNS, REQUESTS, WARM, COUNTED = 300, 20, 200, 20
CASE = "R1"
_COST = {"cost": 100_000_000, "per": "minute"}
_NUMBER = {"requests": 100_000_000, "per": "minute"}


def _without_metrics(app: Diptych) -> None:
    parts: Any = app
    parts._note = lambda request, status, size: None
    parts._handler.engine.note_price = lambda price: None


VARIANTS: dict[str, tuple[dict[str, Any], Callable[[Diptych], None]]] = {
    "plain": ({}, lambda app: None),
    "plain again": ({}, lambda app: None),
    "no metrics": ({}, _without_metrics),
    "a rate of cost": ({"rates": (_COST,)}, lambda app: None),
    "a rate of requests": ({"rates": (_NUMBER,)}, lambda app: None),
    "Server-Timing": ({"server_timing": True}, lambda app: None),
    "a slow log": ({"slow_query": 60.0}, lambda app: None),
}


@asynccontextmanager
async def services() -> AsyncIterator[tuple[dict[str, Asked], str]]:
    """A service for each variant, and a user."""
    async with AsyncExitStack() as stack:
        asked: dict[str, Asked] = {}
        user = ""
        for name, (settings, change) in VARIANTS.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            app = Diptych(model, config=Config(database=f"sqlite:///{folder}/bench.db", **settings))
            await app.start()
            stack.push_async_callback(app.stop)
            await insert_sample(app.store, model)
            listed = await Asked(app, Protocol).ask(b"GET /users?first=1 HTTP/1.1\r\nhost: x\r\n\r\n")
            user = listed.partition(b'"id":"')[2][:36].decode()
            token = (await load_tokens(app.store, "")).make(user, (ROLE,), None, 86_400)
            change(app)
            asked[name] = Asked(app, Protocol, f"authorization: Bearer {token}")
        yield asked, user


async def added(case: str = CASE) -> dict[str, float]:
    """Microseconds that each variant adds to a request of the plain service."""
    async with services() as (asked, user):
        build = CASES[case]
        requests = {
            name: [each.encode(build.build(None if build.paged else user))] * REQUESTS for name, each in asked.items()
        }
        for name, each in asked.items():
            for _ in range(WARM // REQUESTS):
                await each.cpu(requests[name])
        more: dict[str, list[float]] = {name: [] for name in asked}
        gc.collect()
        gc.disable()
        try:
            for _ in range(TURNS):
                spent = {name: await each.cpu(requests[name]) for name, each in asked.items()}
                for name, seconds in spent.items():
                    more[name].append((seconds - spent["plain"]) / REQUESTS)
                    if name == "plain":
                        more[name][-1] = seconds / REQUESTS
        finally:
            gc.enable()
        return {name: median(each) * 1e6 for name, each in more.items()}


async def instructions(case: str = CASE) -> dict[str, int]:
    """Instructions of a request to each variant."""
    with Instructions() as counter:
        async with services() as (asked, user):
            build, counts = CASES[case], {}
            for name, each in asked.items():
                request = each.encode(build.build(None if build.paged else user))
                least = []
                for _ in range(WARM + COUNTED):
                    before = counter.count
                    await each.ask(request)
                    least.append(counter.count - before)
                counts[name] = min(least[WARM:])
            return counts


def main() -> None:
    counts, seconds = run(instructions()), run(added())
    for name, count in counts.items():
        sign = " " if name == "plain" else "+"
        print(f"{name:20} {count:6} instructions {sign}{seconds[name]:6.2f} µs")


if __name__ == "__main__":
    main()
