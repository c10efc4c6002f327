"""The default model under attack by callers who may plan as much as they like: it is what each attack costs that is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych.default import model
from tests.attacks.scene import Scene
from tests.http import data
from tests.inside import inside
from tests.running import Postgres


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="session")
def elsewhere(runner: asyncio.Runner, postgres: Postgres) -> Iterator[Scene]:
    """On PostgreSQL."""
    with inside(model, postgres.create(), runner, data.ROWS, planning_share=0.0) as service:
        yield Scene(service)


@pytest.fixture(scope="session")
def scene(runner: asyncio.Runner) -> Iterator[Scene]:
    """On SQLite, in memory."""
    with inside(model, "sqlite:///:memory:", runner, data.ROWS, planning_share=0.0) as service:
        yield Scene(service)
