"""A library on each store, and everyone who writes to it."""

from __future__ import annotations

import pytest

from tests.contract.feed.scene import Library, model, pairs
from tests.support.running import NewDatabase, Postgres, with_tables


@pytest.fixture(params=[pytest.param(pair, id="-".join(pair)) for pair in pairs()])
def seen(request: pytest.FixtureRequest, new_sqlite: NewDatabase) -> tuple[Library, str]:
    """A new library, and who writes to it."""
    store, writer = request.param
    if store == "sqlite":
        return Library(new_sqlite()), writer
    server: Postgres = request.getfixturevalue("postgres")
    return Library(with_tables(server.create(), model)), writer


@pytest.fixture
def library(database: str) -> Library:
    """A new library on each store."""
    return Library(with_tables(database, model))


@pytest.fixture
def on_sqlite(new_sqlite: NewDatabase) -> Library:
    return Library(new_sqlite())


@pytest.fixture
def on_postgres(postgres: Postgres) -> Library:
    return Library(with_tables(postgres.create(), model))
