"""The default model under attack by callers who may plan as much as they like: it is what each attack costs that is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych.demo.model import model
from tests.contract.http import data
from tests.proof.attacks.scene import Scene
from tests.support.in_process import in_process
from tests.support.running import Postgres


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="session")
def elsewhere(runner: asyncio.Runner, postgres: Postgres) -> Iterator[Scene]:
    """On PostgreSQL."""
    with in_process(model, postgres.create(), runner, data.ROWS, planning_share=0.0) as service:
        yield Scene(service)


@pytest.fixture(scope="session")
def scene(runner: asyncio.Runner) -> Iterator[Scene]:
    """On SQLite, in memory."""
    with in_process(model, "sqlite:///:memory:", runner, data.ROWS, planning_share=0.0) as service:
        yield Scene(service)
