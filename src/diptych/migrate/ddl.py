"""State → DDL of both stores. Names come from the model and constants, and no value of a client gets here."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from typing import Any, cast

from msgspec.structs import replace

from diptych.compile.constraints import literal, name_of_check
from diptych.compile.fragment import identifier
from diptych.compile.indexes import create_index, index_name
from diptych.compile.meaning import SCALARS
from diptych.compile.system.counters import counters
from diptych.compile.system.feed_sqlite import sqlite_feed
from diptych.compile.system.object import DialectName, SystemObject
from diptych.compile.system.object import FeedTable as TriggerTable
from diptych.compile.system.trash import TrashReference, trash_triggers
from diptych.compile.tables import column_text
from diptych.migrate.state import COUNTER, Check, Column, Key, State, Table
from diptych.model.decimal_scalar import decimal
from diptych.model.defs import FieldDef
from diptych.model.scalars import JSON, STRING, Scalar, encode_json

_SERVER_NAMES = {"created_at": "createdAt", "updated_at": "updatedAt"}
_ON_DELETE = {"restrict": "RESTRICT", "cascade": "CASCADE", "set null": "SET NULL"}


def quote(name: str) -> str:
    return identifier(name).text


@functools.cache
def _json_scalar(items: str) -> Scalar:
    """The type of a column that holds lists or value objects."""
    return replace(JSON, name=items, postgres="jsonb", to_sqlite=encode_json, to_postgres=encode_json)


def column_scalar(column: Column) -> Scalar:
    """The type of a column, as far as DDL needs it."""
    if column.type[:1] in ("[", "{"):
        return _json_scalar(column.type)
    if column.type == "Decimal":
        return decimal(column.precision, column.scale)
    return STRING if column.type == "Enum" else SCALARS[column.type]


def field_of(name: str, column: Column) -> FieldDef:
    """The field that has this column."""
    scalar = column_scalar(column)
    counts = column.generated.partition(":")[2] if column.generated.split(":")[0] == COUNTER else None
    value = column.default
    return FieldDef(
        _SERVER_NAMES.get(name, name),
        name,
        name,
        scalar,
        nullable=column.nullable,
        default=value if value is None or scalar.is_json else scalar.parse(value),
        generated=cast(Any, column.generated if column.generated in ("now", "today") else ""),
        counts=counts,
    )


def column_ddl(name: str, column: Column, dialect: DialectName) -> str:
    """What CREATE TABLE and ADD COLUMN say of a column."""
    text = column_text(field_of(name, column), dialect, unique=False)
    return text + (reference_ddl(column) if dialect == "sqlite" else "")


def type_ddl(column: Column, dialect: DialectName) -> str:
    scalar = column_scalar(column)
    return scalar.sqlite if dialect == "sqlite" else scalar.postgres


def default_ddl(name: str, column: Column, dialect: DialectName) -> str:
    """The default of a column; "" if it has none."""
    return column_text(replace(field_of(name, column), nullable=True), dialect, unique=False).partition(" DEFAULT ")[2]


def value_ddl(column: Column, value: Any, dialect: DialectName) -> str:
    """A JSON value as a literal of the column's type."""
    scalar = column_scalar(column)
    return literal(value if scalar.is_json else scalar.parse(value), scalar, dialect)


def reference_ddl(column: Column) -> str:
    if not column.target:
        return ""
    return f" REFERENCES {quote(column.target)} (id) ON DELETE {_ON_DELETE[column.on_delete]}"


def check_ddl(table: str, name: str, check: Check, dialect: DialectName) -> tuple[str, str]:
    """The name of a CHECK constraint, and its text."""
    text = check.text(dialect)
    constraint = name_of_check(table, name, text)
    return constraint, f"CONSTRAINT {quote(constraint)} CHECK ({text})"


def create_table_ddl(name: str, table: Table, dialect: DialectName) -> str:
    lines = [column_ddl(column_name, column, dialect) for column_name, column in table.columns.items()]
    inline = inline_keys(table, dialect)
    lines += [f"UNIQUE ({', '.join(map(quote, key.columns))})" for key in reversed(inline)]
    lines += [check_ddl(name, column_name, check, dialect)[1] for column_name, check in table.checks.items()]
    return f"CREATE TABLE {quote(name)} (\n  " + ",\n  ".join(lines) + "\n)"


def inline_keys(table: Table, dialect: DialectName) -> list[Key]:
    """The keys that are constraints of a new table. (SQLite has all as indexes, if one of them has to be.)"""
    unique = [key for key in table.keys if key.unique]
    if dialect == "sqlite" and not all(key.inline for key in unique):
        return []
    return [key for key in unique if key.inline]


def index_ddls(name: str, table: Table, dialect: DialectName, taken: Collection[str] = ()) -> list[str]:
    """The statements for the indexes of a new table, in the order that both stores check alike."""
    inline = inline_keys(table, dialect)
    unique = [key for key in table.keys if key.unique and key not in inline]
    keys = [*(reversed(unique) if dialect == "sqlite" else unique), *(key for key in table.keys if not key.unique)]
    return [index_ddl(name, key, dialect, taken) for key in keys]


def index_ddl(table: str, key: Key, dialect: DialectName, taken: Collection[str] = ()) -> str:
    return create_index(key_name(table, key, dialect, taken), table, key.columns, key.unique, key.where(dialect))


def key_name(table: str, key: Key, dialect: DialectName, taken: Collection[str] = ()) -> str:
    return index_name(table, key.columns, key.unique, key.where(dialect), taken)


def trigger_table(name: str, table: Table) -> TriggerTable:
    """A table as its triggers need it (`compile/system`)."""
    kinds = {column_name: column_scalar(column) for column_name, column in table.columns.items()}
    fields = {column_name: field_of(column_name, column) for column_name, column in table.columns.items()}
    return TriggerTable(
        name,
        [*table.columns],
        sorted({tuple(sorted(key.columns)) for key in table.keys if key.unique and not key.sqlite}),
        [column_name for column_name, scalar in kinds.items() if scalar is STRING or scalar.is_json],
        [(column_name, field.counts) for column_name, field in fields.items() if field.counts is not None],
        [column_name for column_name, scalar in kinds.items() if scalar.sqlite == "TEXT"],
    )


def our_triggers(state: State, dialect: DialectName) -> Iterator[SystemObject]:
    """The parts that count, and keep references to the trash right; of SQLite, also those that log changes."""
    tables = [trigger_table(name, table) for name, table in state.tables.items()]
    if dialect == "sqlite":
        yield from sqlite_feed(tables)
    yield from counters(tables, dialect)
    trashes = {name: table.trash for name, table in state.tables.items()}
    references = [
        TrashReference(name, column_name, column.target, column.on_delete, table.trash)
        for name, table in state.tables.items()
        for column_name, column in table.columns.items()
        if trashes.get(column.target)
    ]
    yield from trash_triggers(trashes, references, dialect)


def sql_list(names: Iterable[str]) -> str:
    return ", ".join(map(quote, names))
