"""A copy of a store, for the cases that write: the data stays as it is, and every round begins with the same.

    with copied(store) as copy:
        copy.url           # sqlite:///…/bench_copy.sqlite, or the database bench_copy of the same PostgreSQL

No server may be connected to the store meanwhile: PostgreSQL copies only a database that no one uses.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import apsw

from bench.data import create_tables
from bench.home import DATA
from bench.rows import ids
from bench.servers import BenchError
from bench.store import Store, connect_postgres, connect_sqlite

COPY = "bench_copy"
# Ids are made in the order of time, so what a run made stands behind all of the data.
DELETE = f"DELETE FROM orders WHERE id > '{ids('orders')[-1]}'"
TOLD = "SELECT count(*) FROM diptych_feed WHERE resource = 'orders'"
FORGET = (
    "DELETE FROM diptych_feed WHERE position IS NULL OR position < (SELECT max(position) FROM diptych_feed)",
    "UPDATE diptych_feed SET resource = ''",
)


@contextmanager
def copied(store: Store) -> Iterator[Store]:
    """A copy, which is gone at the end; the product adds what it keeps in a database besides the tables."""
    copy = _copy_sqlite(store) if store.kind == "sqlite" else asyncio.run(_copy_postgres(store))
    try:
        create_tables(copy)
        yield copy
    finally:
        if store.kind == "sqlite":
            _remove_sqlite(copy)
        else:
            asyncio.run(_drop_postgres(store))


def remove_orders(store: Store) -> int:
    """Deletes the orders that were made since, so that the next round finds what this one found; how many.

    The feed must have told of each, and is emptied without a word, but for its newest line, which names nothing then.
    """
    made, told = _remove_sqlite_orders(store) if store.kind == "sqlite" else asyncio.run(_remove_postgres_orders(store))
    if made != told:
        raise BenchError(f"{made} orders were made, and the feed tells of {told}")
    return made


def _copy_sqlite(store: Store) -> Store:
    """All of the store in one file, and the copy on disk before anything is measured."""
    connection = connect_sqlite(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    copy = Store("sqlite", f"sqlite:///{DATA / COPY}.sqlite")
    _remove_sqlite(copy)
    Path(copy.path).touch(mode=0o600)
    shutil.copyfile(store.path, copy.path)
    with open(copy.path, "rb+") as written:
        os.fsync(written.fileno())
    return copy


def _remove_sqlite(copy: Store) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(copy.path + suffix).unlink(missing_ok=True)


async def _copy_postgres(store: Store) -> Store:
    name = urlsplit(store.url).path.removeprefix("/")
    connection = await connect_postgres(_database(store, "template1"))
    await connection.execute(f"DROP DATABASE IF EXISTS {COPY} WITH (FORCE)")
    await connection.execute(f"CREATE DATABASE {COPY} TEMPLATE {name} STRATEGY file_copy")
    await connection.execute("CHECKPOINT")
    await connection.close()
    return _database(store, COPY)


async def _drop_postgres(store: Store) -> None:
    connection = await connect_postgres(store)
    await connection.execute(f"DROP DATABASE IF EXISTS {COPY} WITH (FORCE)")
    await connection.close()


def _remove_sqlite_orders(store: Store) -> tuple[int, int]:
    connection = connect_sqlite(store)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    with connection:
        connection.execute(DELETE)
        deleted = connection.changes()
        told: int = connection.execute(TOLD).get
        for statement in FORGET:
            connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return deleted, told


async def _remove_postgres_orders(store: Store) -> tuple[int, int]:
    connection = await connect_postgres(store)
    await connection.execute("SET session_replication_role = replica")
    deleted = int((await connection.execute(DELETE)).removeprefix("DELETE "))
    told: int = await connection.fetchval(TOLD)
    for statement in FORGET:
        await connection.execute(statement)
    await connection.execute("VACUUM orders, diptych_feed")
    await connection.close()
    return deleted, told


def _database(store: Store, name: str) -> Store:
    """Another database of the same server."""
    return replace(store, url=urlunsplit(urlsplit(store.url)._replace(path=f"/{name}")))
