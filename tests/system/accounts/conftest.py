"""A club on each store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.system.accounts.club import Club, clubbed


@pytest.fixture(scope="package")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def club(database: str, runner: asyncio.Runner) -> Iterator[Club]:
    with clubbed(database, runner) as found:
        yield found
