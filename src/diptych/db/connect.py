"""From the address of a database to its store."""

from __future__ import annotations

import importlib

from diptych.config import Config
from diptych.db.store import Store
from diptych.errors import StartError


def connect(config: Config) -> Store:
    """The store of `sqlite:///PATH`, `sqlite:///:memory:` or `postgresql://…`; it is not opened yet.

    Its module is imported here, since a process that serves SQLite needs no driver of PostgreSQL.
    """
    url = config.database
    store: Store
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        if config.relay:
            raise StartError("The relay carries notices between nodes of PostgreSQL; SQLite has no nodes.")
        kind = importlib.import_module("diptych.db.sqlite.store").SqliteStore
        store = kind(
            url.removeprefix("sqlite:///"),
            timeout=config.statement_timeout,
            waiting=config.max_waiting,
            only_process=config.workers == 1,
            triggers=config.triggers,
        )
        return store
    if url.startswith(("postgresql://", "postgres://")):
        kind = importlib.import_module("diptych.db.postgres.store").PostgresStore
        store = kind(
            url,
            size=config.pool_size,
            timeout=config.statement_timeout,
            waiting=config.max_waiting,
            triggers=config.triggers,
            pool_mode=config.pool_mode,
            direct=config.direct_database,
            relay=config.relay,
        )
        return store
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        raise StartError("The address of a SQLite database has three slashes and a path: sqlite:///PATH.")
    raise StartError(f"The database address begins with {scheme!r}; use sqlite:///PATH or postgresql://….")
