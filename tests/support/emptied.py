"""Fixtures of a file whose tests share one service, each with empty tables:

shared, service = emptied(MODEL, "comments", "posts")
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.model.model import Model
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase


def emptied(model: Model, *tables: str) -> tuple[Any, Any]:
    """The fixtures `shared`, a service for a whole file, and `service`, the same with these tables empty."""

    @pytest.fixture(scope="module")
    def shared(new_database: NewDatabase) -> Iterator[Service]:
        with asyncio.Runner() as runner, in_process(model, new_database(), runner) as service:
            yield service

    @pytest.fixture
    def service(shared: Service) -> Service:
        for table in tables:
            shared.execute(f"DELETE FROM {table}")
        return shared

    return shared, service
