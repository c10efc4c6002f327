"""The house, served from each store in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.inside import Service, inside
from tests.rules import house
from tests.running import NewDatabase


@pytest.fixture
def served(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, inside(house.model, new_database(), runner, house.rows()) as service:
        house.GROUPS.clear()
        yield service
