"""Services for the tests of this folder: the default model, in memory or on each store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from diptych.demo.model import model
from tests.contract.http import data
from tests.support.in_process import Service, in_process

Fresh = Callable[..., Service]
"""Makes a service with settings; on a database of a test's own, without rows, if that is given."""


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def fresh(runner: asyncio.Runner) -> Iterator[Fresh]:
    with ExitStack() as stack:

        def make(database: str = "sqlite:///:memory:", **settings: Any) -> Service:
            rows = data.ROWS if database.endswith(":memory:") else {}
            return stack.enter_context(in_process(model, database, runner, rows, **settings))

        yield make


@pytest.fixture
def service(fresh: Fresh) -> Service:
    return fresh()
