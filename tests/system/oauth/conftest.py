"""Stages for the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from diptych.demo.model import model
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase, served
from tests.support.running import Service as Process
from tests.system.oauth.stage import HERE, Stage, staged

Shared = tuple[Stage, list[Process]]


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def stage(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Stage]:
    """A service on each store; a test adds what it changes."""
    with staged(new_database(), runner) as found:
        yield found


@pytest.fixture(scope="module")
def light(runner: asyncio.Runner) -> Iterator[Stage]:
    """A service in memory, where the database does not matter."""
    with staged("sqlite:///:memory:", runner) as found:
        yield found


@pytest.fixture(scope="module")
def local(runner: asyncio.Runner) -> Iterator[Service]:
    """A service that was not told its address."""
    with in_process(model, "sqlite:///:memory:", runner) as found:
        yield found


@pytest.fixture(scope="module")
def shared(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Shared]:
    """A stage, and two served processes on its database."""
    database = new_database()
    with staged(database, runner) as stage, ExitStack() as stack:
        yield (
            stage,
            [stack.enter_context(served(database, "--base-url", HERE, DIPTYCH_REQUEST_TIMEOUT="60")) for _ in range(2)],
        )
