"""Random Asks give on SQLite what the Oracle gives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych.db.sqlite.store import SqliteStore
from diptych.demo.model import model as default
from tests.support import edge_cases
from tests.support.effort import scaled
from tests.support.proof import Proof

MODELS = {"default": default, "edge_cases": edge_cases.model}


@pytest.fixture(scope="module", params=[(name, seed) for name in MODELS for seed in range(2)], ids=str)
def proof(request: pytest.FixtureRequest) -> Iterator[Proof]:
    name, seed = request.param
    store = SqliteStore(":memory:")
    with asyncio.Runner() as runner:
        yield Proof(MODELS[name], seed, store, runner)
        runner.run(store.close())


@pytest.mark.slow
@pytest.mark.parametrize("who", ["anonymous", "someone", "integer", "service", "narrow", "middle", "top"])
def test_a_viewer_gets_what_the_oracle_says(proof: Proof, who: str) -> None:
    proof.prove(proof.viewers()[who], examples=scaled(250, 5))
