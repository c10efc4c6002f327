"""Opens an existing database. Only `diptych dev` and `diptych serve` create one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from diptych.cli.settings import check_lasting
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.model.model import Model

SQLITE = "sqlite:///"
"""How the address of a SQLite database begins."""

_LONGEST = 86_400.0
"""Seconds, which is a day."""


def unhurried(config: Config) -> Config:
    """The settings for a transaction that is as long as its work. Only SQLite has a limit for one: on PostgreSQL, that
    of a statement is no other than in the service, since a role behind a pooler has one setting."""
    return replace(config, statement_timeout=_LONGEST) if config.database.startswith(SQLITE) else config


@asynccontextmanager
async def opened(config: Config, model: Model) -> AsyncIterator[Store]:
    """The store of a database that has tables of the model; a StartError if there is no such database."""
    check_lasting(config)
    path = check_there(config)
    store = connect(config)
    have = await store.catalogue()
    if not have.has_any_of(model):
        name = path if config.database.startswith(SQLITE) else "that PostgreSQL"
        tables = ", ".join(resource.table for resource in model.resources.values())
        raise StartError(f"The database {name} has none of the model's tables ({tables}); is the model another one?")
    await store.open(model)
    try:
        yield store
    finally:
        await store.close()


def check_there(config: Config) -> str:
    """The path of a SQLite database; a StartError if there is none."""
    path = config.database.removeprefix(SQLITE)
    if config.database.startswith(SQLITE) and path and not Path(path).exists():
        raise StartError(f"There is no SQLite database at {path}; diptych serve and diptych dev make one.")
    return path
