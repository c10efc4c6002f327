"""Services for the tests of this folder, on each store; their rows are put back before every test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych.demo.model import model as default
from tests.contract.calls import press
from tests.contract.faults import club
from tests.contract.faults.scene import Scene
from tests.contract.http import data
from tests.support.in_process import in_process
from tests.support.running import NewDatabase


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="session")
def open_shop(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Scene]:
    with in_process(default, new_database(), runner) as service:
        yield Scene(service, data.ROWS)


@pytest.fixture
def shop(open_shop: Scene) -> Scene:
    """The default model with the rows of `tests/contract/http/data.py`."""
    open_shop.fill(data.ROWS)
    return open_shop


@pytest.fixture(scope="session")
def open_club(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Scene]:
    with in_process(club.model, new_database(), runner) as service:
        yield Scene(service, club.ROWS)


@pytest.fixture
def members(open_club: Scene) -> Scene:
    """The model and rows of `club`."""
    open_club.fill(club.ROWS)
    return open_club


@pytest.fixture(scope="session")
def open_press(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Scene]:
    with in_process(press.model, new_database(), runner) as service:
        yield Scene(service, press.ROWS)


@pytest.fixture
def desk(open_press: Scene) -> Scene:
    """The model and rows of `tests/contract/calls/press.py`, which has actions."""
    open_press.fill(press.ROWS)
    return open_press
