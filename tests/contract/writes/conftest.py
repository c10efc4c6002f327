"""Services that tests of this folder write to, on each store; their rows are put back before every test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych.demo.model import model as default
from diptych.model.model import Model
from tests.contract.http import data
from tests.contract.writes import vault
from tests.contract.writes.shop import Shop
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(model: Model, database: str) -> Iterator[Service]:
    """A service of the model of a test, which is a fixture of its file."""
    with asyncio.Runner() as own, in_process(model, database, own) as service:
        yield service


@pytest.fixture(scope="session")
def open_shop(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Shop]:
    with in_process(default, new_database(), runner) as service:
        yield Shop(service, data.ROWS)


@pytest.fixture
def shop(open_shop: Shop) -> Shop:
    """The default model with the rows of `tests/contract/http/data.py`."""
    open_shop.refill()
    return open_shop


@pytest.fixture(scope="session")
def open_vault(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Shop]:
    with in_process(vault.model, new_database(), runner) as service:
        yield Shop(service, vault.ROWS)


@pytest.fixture
def safe(open_vault: Shop) -> Shop:
    """The model and rows of `vault`."""
    open_vault.refill()
    return open_vault
