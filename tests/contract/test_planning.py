"""A document that was never seen is planned at a fair price, and those in use are kept."""

from __future__ import annotations

import asyncio

import pytest

from bench.planning import planning_ratio
from diptych.config import Config
from diptych.demo.model import model
from tests.contract.http.data import ANN, ROWS
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

SENT = 30


@pytest.mark.slow
def test_planning_costs_less_than_parsing_and_validating_by_graphql_core() -> None:
    theirs, ours = planning_ratio()
    assert ours <= 0.8 * theirs, f"{ours:.0f} µs against {theirs:.0f} µs"


def test_as_many_short_documents_are_kept_as_the_setting_says(new_sqlite: NewDatabase) -> None:
    """Bytes do not evict them first."""
    with asyncio.Runner() as runner, in_process(model, new_sqlite(), runner, ROWS) as service:
        for _ in range(2):
            for number in range(SENT):
                service.data(f"query($id: ID!) {{ user(id: $id) {{ id of{number}: name }} }}", {"id": ANN})
        cache = service.handler.graphql.planner._entries
        assert len(cache) >= SENT
        assert cache.used / len(cache) * cache.entries <= cache.max_bytes
        assert cache.entries == Config().plan_cache
