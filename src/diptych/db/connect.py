"""From the address of a database to its store."""

from __future__ import annotations

from diptych.config import Config
from diptych.db.postgres import PostgresStore
from diptych.db.sqlite import SqliteStore
from diptych.db.store import Store
from diptych.errors import StartError


def connect(config: Config) -> Store:
    """The store of `sqlite:///PATH`, `sqlite:///:memory:` or `postgresql://…`; it is not opened yet."""
    url = config.database
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return SqliteStore(url.removeprefix("sqlite:///"), timeout=config.statement_timeout, waiting=config.max_waiting)
    if url.startswith(("postgresql://", "postgres://")):
        timeout, waiting = config.statement_timeout, config.max_waiting
        return PostgresStore(url, size=config.pool_size, timeout=timeout, waiting=waiting)
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        raise StartError("The address of a SQLite database has three slashes and a path: sqlite:///PATH.")
    raise StartError(f"The database address begins with {scheme!r}; use sqlite:///PATH or postgresql://….")
