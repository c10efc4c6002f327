"""What tests share: one PostgreSQL for the session, and databases of both kinds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.running import NewDatabase, Postgres

STORES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL."""
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def new_sqlite(tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Makes SQLite files."""
    folder = tmp_path_factory.mktemp("sqlite")
    numbers = itertools.count()
    return lambda: f"sqlite:///{folder}/{next(numbers)}.db"


@pytest.fixture(scope="session", params=STORES)
def new_database(request: pytest.FixtureRequest, new_sqlite: NewDatabase) -> NewDatabase:
    """Makes databases, of each kind in turn."""
    if request.param == "sqlite":
        return new_sqlite
    server: Postgres = request.getfixturevalue("postgres")
    return server.create


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """An empty database for one test, on each store."""
    return new_database()
