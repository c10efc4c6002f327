"""The OpenAPI document of scopes that were never seen is made at the expense of whoever asks for it."""

from __future__ import annotations

import asyncio
import itertools

from diptych.default import model
from diptych.model.view import Signature
from tests.http.data import ANN
from tests.inside import inside


def test_documents_of_ever_new_scopes_are_metered(runner: asyncio.Runner) -> None:
    with inside(model, "sqlite:///:memory:", runner, planning_share=0.001) as service:
        single = sorted(scope for scope in model.scopes if ":" in scope)
        answers = [service.get("/openapi.json", token=service.handler.context.tokens.make(ANN, (), scopes, 60))
                   for scopes in itertools.islice(itertools.combinations(single, 3), 40)]  # fmt: skip
        assert answers[0].status == 200
        assert answers[-1].status == 429
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_scopes_that_mean_the_same_share_a_document() -> None:
    def signature(*scopes: str) -> Signature:
        return model.signature(model.viewer(frozenset(), ANN, frozenset(scopes)))

    assert signature("read", "users:read") == signature("read", "posts:read", "other") == signature("read")
    assert signature("read", "users:write") != signature("read")
    assert signature("users:read") != signature("posts:read")
