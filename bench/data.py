"""The data set in a store: the tables, filled in bulk, once.

The product makes the tables; the types of `rows.py` say how its values stand in each store:

    Column("total", "decimal")      SQLite an integer, scaled by 100      PostgreSQL a decimal

A stamp beside the store holds a digest of what makes it; a store with the right stamp is not filled again.

    python -m bench.data            # fills both stores
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path

import apsw

from bench.home import DATA, open_store
from bench.rows import COLUMNS, COUNTS, Table, Type, Value, rows
from bench.store import Kind, Store, connect_postgres, connect_sqlite
from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model

BATCH = 5_000
OWN_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"


def _same(value: Value) -> object:
    return value


def _datetime_text(value: Value) -> object:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value


def _decimal(value: Value) -> object:
    return Decimal(value).scaleb(-2) if isinstance(value, int) else value


_CONVERT: dict[Kind, dict[Type, Callable[[Value], object]]] = {
    "sqlite": {"datetime": _datetime_text, "bool": int},  # type: ignore[dict-item]  # of one shape
    "postgres": {"decimal": _decimal},
}


def records(kind: Kind, table: Table) -> Iterator[tuple[object, ...]]:
    """The rows of a table as this store takes them."""
    convert = [_CONVERT[kind].get(column.type, _same) for column in COLUMNS[table]]
    for row in rows(table):
        yield tuple(turn(value) for turn, value in zip(convert, row, strict=True))


def create_tables(store: Store) -> None:
    """Makes the empty tables: the product makes its own."""
    asyncio.run(_create_tables(store))


async def _create_tables(store: Store) -> None:
    made = connect(Config(database=store.url))
    await made.open(model)
    await made.close()


class Progress:
    """A bar on stderr, drawn at most ten times a second; only at its end where no one watches."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done, self.drawn = title, total, 0, 0.0

    def add(self, count: int) -> None:
        """Counts rows as done."""
        self.done += count
        now = time.monotonic()
        if (sys.stderr.isatty() and now - self.drawn > 0.1) or self.done >= self.total:
            self.drawn = now
            filled = 40 * self.done // self.total
            bar = "#" * filled + "." * (40 - filled)
            end = "\n" if self.done >= self.total else ""
            line = f"\r{self.title:<10} [{bar}] {self.done:>7}/{self.total}"
            print(line, end=end, file=sys.stderr, flush=True)


def _batches(kind: Kind, table: Table, progress: Progress) -> Iterator[Sequence[tuple[object, ...]]]:
    stream = records(kind, table)
    while batch := list(islice(stream, BATCH)):
        yield batch
        progress.add(len(batch))


def _fill_sqlite(store: Store, progress: Progress) -> None:
    """One transaction, triggers off: the history of a bulk load is not part of what is measured."""
    connection = connect_sqlite(store)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    with connection:
        for table, columns in COLUMNS.items():
            names = ", ".join(column.name for column in columns)
            insert = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
            for batch in _batches("sqlite", table, progress):
                connection.executemany(insert, batch)
    connection.execute("ANALYZE")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


async def _fill_postgres(store: Store, progress: Progress) -> None:
    """COPY, triggers off; then the vacuum and the statistics that autovacuum would bring later."""
    connection = await connect_postgres(store)
    await connection.execute("SET session_replication_role = replica")
    for table, columns in COLUMNS.items():
        names = [column.name for column in columns]
        for batch in _batches("postgres", table, progress):
            await connection.copy_records_to_table(table, records=batch, columns=names)
    await connection.execute("VACUUM (FREEZE, ANALYZE)")
    await connection.execute("CHECKPOINT")
    await connection.close()


def _stamp() -> str:
    here = Path(__file__).parent
    return hashlib.sha256((here / "data.py").read_bytes() + (here / "rows.py").read_bytes()).hexdigest()


def _empty(store: Store) -> None:
    """Removes all, also what a service may have made beside the tables of the model."""
    if store.kind == "sqlite":
        for suffix in ("", "-wal", "-shm"):
            Path(store.path + suffix).unlink(missing_ok=True)
    else:
        asyncio.run(_empty_postgres(store))


async def _empty_postgres(store: Store) -> None:
    connection = await connect_postgres(store)
    for row in await connection.fetch(OWN_SCHEMAS):
        await connection.execute(f"DROP SCHEMA {row['nspname']} CASCADE")
    await connection.execute("CREATE SCHEMA public")
    await connection.close()


def ensure_data(store: Store) -> None:
    """Fills the store, unless a run before did."""
    stamp = DATA / f"{store.kind}.stamp"
    if stamp.exists() and stamp.read_text() == _stamp():
        return
    stamp.unlink(missing_ok=True)
    _empty(store)
    create_tables(store)
    progress = Progress(store.kind, sum(COUNTS.values()))
    if store.kind == "sqlite":
        _fill_sqlite(store, progress)
    else:
        asyncio.run(_fill_postgres(store, progress))
    stamp.write_text(_stamp())


def main() -> None:
    """Fills both stores."""
    for kind in ("sqlite", "postgres"):
        with open_store(kind) as store:
            ensure_data(store)


if __name__ == "__main__":
    main()
