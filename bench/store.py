"""A database under test, as a plain value: a kind and a URL.

So it travels through a command line to every server under test. Here is also how the floor and the bulk load
connect; `home.py` says where the stores live and starts PostgreSQL.

    store_of_url("sqlite:///bench.sqlite")      # Store(kind="sqlite", url=…)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import apsw
import asyncpg

Kind = Literal["sqlite", "postgres"]

# The same for every SQLite connection of the bench: floor and peer.
BUSY_MS = 10_000
"""The other servers have work in the background, and what a round has made is deleted."""
SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA mmap_size=268435456",
    "PRAGMA cache_size=-65536",
    "PRAGMA foreign_keys=ON",
)


@dataclass(frozen=True)
class Store:
    """A database under test. `pid` is PostgreSQL's own process, the parent of its backends."""

    kind: Kind
    url: str
    pid: int | None = None

    @property
    def path(self) -> str:
        """The file of a SQLite store."""
        return self.url.removeprefix("sqlite:///")


def store_of_url(url: str) -> Store:
    """The store that a database URL names."""
    return Store("sqlite" if url.startswith("sqlite:") else "postgres", url)


def connect_sqlite(store: Store) -> apsw.Connection:
    """A connection as the floor and the bulk load use it."""
    connection = apsw.Connection(store.path)
    connection.set_busy_timeout(BUSY_MS)
    for pragma in SQLITE_PRAGMAS:
        connection.execute(pragma).fetchall()
    return connection


async def connect_postgres(store: Store) -> asyncpg.Connection[Any]:
    """A connection as the floor and the bulk load use it: no JIT, which costs more than it brings here."""
    return await asyncpg.connect(store.url, server_settings={"jit": "off"})
