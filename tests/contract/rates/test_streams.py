"""Streams pay for each change and pause over the rate, exports wait for their next page, sockets count operations."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from diptych import Config, Diptych, Rate
from diptych.api.graphql.http import Parameters
from diptych.errors import Code, Refusal
from diptych.serve.handler import Handler
from diptych.serve.http.request import Request
from tests.contract.rates.shop import shop
from tests.support.following import follow
from tests.support.running import PATIENCE, NewDatabase

ANN = "00000000-0000-7000-8000-00000000000a"
SUBSCRIPTION = "subscription { goodChanged { kind rowId } }"
COLUMNS = ["id", "version", "createdAt", "updatedAt", "name"]


async def no_body(_: int) -> bytes:
    return b""


def rows(count: int) -> list[list[Any]]:
    """Rows of goods, as canonical values."""
    moment = "2026-01-01T00:00:00.000000Z"
    return [[f"00000000-0000-7000-8000-{number:012x}", 1, moment, moment, str(number)] for number in range(count)]


@asynccontextmanager
async def started(database: str, *rates: Rate) -> AsyncIterator[tuple[Diptych, Handler]]:
    app = Diptych(shop(*rates), config=Config(database=database, planning_share=0.0))
    try:
        yield app, await app.start()
    finally:
        await app.stop()


@pytest.mark.slow
def test_a_stream_over_its_rate_pauses_and_loses_nothing(new_database: NewDatabase) -> None:
    async def work() -> None:
        async with started(new_database(), Rate(cost=100, per="second")) as (app, handler):
            token = handler.context.tokens.make(ANN, (), None, 900)
            caller = handler.context.caller(b"Bearer " + token.encode())
            assert caller is not None
            await handler.spend(Request("GET", "/goods/changes", "", {}, no_body), caller)
            limited = await follow(handler, caller, SUBSCRIPTION)
            await handler.spend(Request("GET", "/health/live", "", {}, no_body), caller)  # nobody pays for this
            free = await follow(handler, caller, SUBSCRIPTION)
            begun = time.monotonic()
            await app.store.insert(app.model.resources["Good"], COLUMNS, rows(140))
            await asyncio.wait_for(until(lambda: len(free.events) == 140), PATIENCE)
            assert limited.ended is None
            await asyncio.wait_for(until(lambda: len(limited.events) == 140), PATIENCE)
            assert time.monotonic() - begun >= (140 - 100) / 100 * 0.9  # each change costs at least 1
            assert limited.events == free.events

    asyncio.run(work())


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_operations_of_a_socket_are_counted(new_database: NewDatabase) -> None:
    async def work() -> None:
        async with started(new_database(), Rate(requests=2, per="day")) as (_, handler):
            request = Request("GET", "/graphql", "", {}, no_body, "", ("192.0.2.7", 1))
            for _ in range(2):
                await handler.spend(request, handler.context.anonymous)
                outcome = await handler.run_operation(Parameters(query="{ goods { id } }"), handler.context.anonymous)
                assert json.loads(outcome.body) == {"data": {"goods": []}}
            with pytest.raises(Refusal) as refused:
                await handler.spend(request, handler.context.anonymous)
            assert refused.value.code is Code.RATE_LIMITED

    asyncio.run(work())


@pytest.mark.slow
def test_a_whole_list_waits_for_its_pages(new_database: NewDatabase) -> None:
    async def work() -> None:
        async with started(new_database(), Rate(cost=300, per="second")) as (app, _):
            await app.store.insert(app.model.resources["Good"], COLUMNS, rows(450))
            scope = {"type": "http", "method": "GET", "path": "/goods", "query_string": b"first=all"}
            scope["headers"] = [(b"accept", b"application/x-ndjson")]
            sent: list[bytes] = []

            async def receive() -> dict[str, Any]:
                await asyncio.Event().wait()
                return {"type": "http.disconnect"}

            async def send(message: MutableMapping[str, Any]) -> None:
                sent.append(message.get("body", b""))

            begun = time.monotonic()
            await asyncio.wait_for(app(scope, receive, send), PATIENCE)
            assert len(b"".join(sent).splitlines()) == 450
            assert time.monotonic() - begun >= (450 - 300) / 300 * 0.9

    asyncio.run(work())
