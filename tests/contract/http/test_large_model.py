"""A large model on `/graphql`: its schema and its introspection are made beside the event loop, once for all."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest
from graphql import get_introspection_query

from diptych.serve.http.request import Request
from tests.support.in_process import RESPONSE, Service, in_process
from tests.support.many_resources import many

QUERY = json.dumps({"query": get_introspection_query()}).encode()
HEAD = {"content-type": "application/json", "accept": RESPONSE}


async def _body(_: int) -> bytes:
    return QUERY


def request() -> Request:
    sent = {name.encode(): value.encode() for name, value in HEAD.items()}
    return Request("POST", "/graphql", "", sent, _body)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(many(120), "sqlite:///:memory:", runner, planning_share=0) as found:
        yield found


@pytest.mark.slow
def test_others_are_served_while_it_is_described(service: Service) -> None:
    """The longest time without an iteration of the loop is a small part of what the introspection takes."""
    longest = 0.0
    done = asyncio.Event()

    async def tick() -> None:
        nonlocal longest
        before = time.perf_counter()
        while not done.is_set():
            await asyncio.sleep(0.001)
            longest, before = max(longest, time.perf_counter() - before), time.perf_counter()

    async def ask() -> float:
        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.01)
        begun = time.perf_counter()
        reply = await service.handler.handle(request())
        took = time.perf_counter() - begun
        done.set()
        await ticking
        assert reply.status == 200 and b'"Query"' in reply.body
        return took

    took = service.runner.run(ask())
    assert longest < took / 3, f"the loop stopped for {longest:.3f} s of {took:.3f} s"


@pytest.mark.slow
def test_it_is_made_once_for_all_who_ask(service: Service) -> None:
    planner = service.handler.graphql.planner
    first = service.send("POST", "/graphql", headers=HEAD, body=QUERY)
    begun = time.process_time()
    again = service.send("POST", "/graphql", headers=HEAD, body=QUERY)
    assert again.body == first.body and planner.schemas.made == 2, "the schema, and the answer"
    assert time.process_time() - begun < 0.5


@pytest.mark.slow
def test_a_request_that_is_given_up_leaves_what_it_began() -> None:
    with asyncio.Runner() as runner, in_process(many(60), "sqlite:///:memory:", runner, planning_share=0) as service:

        async def give_up() -> None:
            task = asyncio.create_task(service.handler.handle(request()))
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            while service.handler.graphql.planner.schemas.made < 1:
                await asyncio.sleep(0.01)

        runner.run(asyncio.wait_for(give_up(), 30))
