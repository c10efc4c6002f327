"""Alembic as an oracle: what it finds to differ between two databases.

    alembic_diff(migrated, fresh)                   []
    alembic_diff(migrated, fresh)                   ["modify_nullable things.note"]

It reflects the second one, and compares the first with that, so it shares nothing with the catalogue and the diff of
`diptych.migrate`. It sees columns, types, nullability, defaults, indexes, unique and foreign keys; triggers and checks it
does not see. Tables of Diptych itself are left out.
"""

from __future__ import annotations

import asyncio
import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import asyncpg
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, create_engine
from sqlalchemy.exc import SAWarning
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

_SQLITE = "sqlite:///"


def alembic_diff(url: str, wanted: str) -> list[str]:
    """How a database differs from the one that is wanted, by Alembic; names of indexes do not count."""
    metadata = MetaData()

    def reflect(connection: Connection) -> None:
        metadata.reflect(connection, only=lambda name, _: not name.startswith("diptych_"))

    def compare(connection: Connection) -> Any:
        options = {"compare_type": True, "compare_server_default": _defaults_differ, "include_name": _is_of_model}
        with warnings.catch_warnings():  # tables that refer to each other have no order, and need none here
            warnings.filterwarnings("ignore", "Cannot correctly sort tables", SAWarning)
            return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    _in_database(wanted, reflect)
    return sorted(_without_names(_in_database(url, compare)))


def _in_database(url: str, work: Any) -> Any:
    if url.startswith(_SQLITE):
        engine = create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(url.removeprefix(_SQLITE)), poolclass=NullPool
        )
        with engine.connect() as connection:
            return work(connection)

    async def connected() -> Any:
        engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url), poolclass=NullPool
        )
        async with engine.connect() as connection:
            return await connection.run_sync(work)

    return asyncio.run(connected())


def _is_of_model(name: str | None, kind: str, parents: Any) -> bool:
    return kind != "table" or not str(name).startswith("diptych_")


def _defaults_differ(context: Any, has: Any, wants: Any, *rendered: Any) -> bool:
    """Both are reflected, so their text is the same; to evaluate them, as Alembic does, finds that a random id differs."""
    return _default(has) != _default(wants)


def _default(column: Any) -> str | None:
    """Its text, without the parentheses that Alembic puts around some."""
    default = column.server_default
    return None if default is None else str(getattr(default, "arg", "generated")).strip("()")


def _without_names(diffs: Iterable[Any]) -> Iterator[str]:
    """The differences as text. A key that is removed and added with the same columns has another name, or is an index instead
    of a constraint: a renamed table keeps the names of its indexes."""
    added: list[str] = []
    removed: list[str] = []
    for diff in diffs:
        if isinstance(diff, list):  # the changes of one column
            yield from (f"{kind} {table}.{name}" for kind, _, table, name, *_ in diff)
        elif diff[0] in ("add_index", "add_constraint"):
            added.append(_key(diff[1]))
        elif diff[0] in ("remove_index", "remove_constraint"):
            removed.append(_key(diff[1]))
        else:
            yield " ".join(map(_text, diff))
    for key in (*added, *removed):
        if not (key in added and key in removed):
            yield f"{'lacks' if key in added else 'has'} {key}"


def _key(key: Any) -> str:
    columns = [str(each) for each in getattr(key, "expressions", None) or key.columns]
    unique = getattr(key, "unique", True)
    names = [column.rpartition(".")[2] for column in columns]
    options = {
        name: str(value["where"]) for name, value in key.dialect_options.items() if value.get("where") is not None
    }
    return (
        f"{'unique ' * bool(unique)}{key.table.name} ({', '.join(sorted(names) if unique else names)}) {options or ''}"
    )


def _text(part: Any) -> str:
    return str(getattr(part, "fullname", None) or getattr(part, "name", None) or part)
