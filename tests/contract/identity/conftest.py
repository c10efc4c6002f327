"""Desks at a database of each kind, and a service whose desk shares its process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from diptych.demo.model import model
from tests.contract.http import data
from tests.contract.identity.desk import Desk, Hasher, NewDesk, desk, desk_of
from tests.support.in_process import Service, in_process


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def new_desk(database: str, runner: asyncio.Runner) -> Iterator[NewDesk]:
    """Opens desks at one database."""
    with ExitStack() as stack:

        def make(**given: Any) -> Desk:
            return stack.enter_context(desk(database, runner, **given))

        yield make


@pytest.fixture
def one(new_desk: NewDesk) -> Desk:
    """A desk."""
    return new_desk()


@pytest.fixture
def shop(database: str, runner: asyncio.Runner) -> Iterator[Service]:
    """The default model with the rows of `data`."""
    with in_process(model, database, runner, data.ROWS) as service:
        yield service


@pytest.fixture
def at_shop(shop: Service) -> Desk:
    """A desk in the process of the shop."""
    return desk_of(shop.app.store, shop.runner, Hasher(), shop.handler.context.revoked)
