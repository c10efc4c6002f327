"""The OpenAPI document of scopes that were never seen is made at the expense of whoever asks for it."""

from __future__ import annotations

import asyncio
import itertools

from diptych.demo.model import model
from diptych.model.signature import Signature
from diptych.serve.http.body import Arrived
from diptych.serve.http.request import Request
from tests.contract.http.data import ANN
from tests.support.in_process import in_process
from tests.support.many_resources import many


def test_documents_of_ever_new_scopes_are_metered(runner: asyncio.Runner) -> None:
    with in_process(model, "sqlite:///:memory:", runner, planning_share=0.001) as service:
        single = sorted(scope for scope in model.scopes if ":" in scope)
        answers = [
            service.get("/openapi.json", token=service.handler.context.tokens.make(ANN, (), scopes, 60))
            for scopes in itertools.islice(itertools.combinations(single, 3), 40)
        ]
        assert answers[0].status == 200
        assert answers[-1].status == 429
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_scopes_that_mean_the_same_share_a_document() -> None:
    def signature(*scopes: str) -> Signature:
        return model.signature(model.viewer(frozenset(), ANN, frozenset(scopes)))

    assert signature("read", "users:read") == signature("read", "posts:read", "other") == signature("read")
    assert signature("read", "users:write") != signature("read")
    assert signature("users:read") != signature("posts:read")


def test_a_large_document_is_built_in_time_slices(runner: asyncio.Runner) -> None:
    """Others have their turn after each resource; whoever asks for the same document waits for it."""
    with in_process(many(40), "sqlite:///:memory:", runner) as service:

        async def turns() -> tuple[int, list[bytes]]:
            request = Request("GET", "/openapi.json", "", {}, Arrived(b""), "", None)
            tasks = [asyncio.create_task(service.handler.handle(request)) for _ in range(3)]
            count = 0
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0)
                count += 1
            return count, [task.result().body for task in tasks]

        count, bodies = runner.run(turns())
        assert count > 20
        assert len(set(map(id, bodies))) == 1
