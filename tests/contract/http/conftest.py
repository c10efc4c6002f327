"""Services for the tests of this folder: the default model and a shelf of every type, on each store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from diptych.demo.model import model as default
from tests.contract.http import data, shelf
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

Fresh = Callable[..., Service]


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="session")
def shop(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    """The default model with the rows of `data`; nobody changes them."""
    with in_process(default, new_database(), runner, data.ROWS) as service:
        yield service


@pytest.fixture(scope="session")
def things(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    """The model and rows of `shelf`; nobody changes them."""
    with in_process(shelf.model, new_database(), runner, shelf.ROWS) as service:
        yield service


@pytest.fixture
def fresh(runner: asyncio.Runner) -> Iterator[Fresh]:
    """Makes services of a test's own, in memory, with the rows of `data` and with settings."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Service:
            return stack.enter_context(in_process(default, "sqlite:///:memory:", runner, data.ROWS, **settings))

        yield make
