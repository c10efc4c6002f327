"""The house, served from each store in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.contract.rules import house
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture
def served(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(house.model, new_database(), runner, house.rows()) as service:
        house.GROUPS.clear()
        yield service
