"""Model → tables: the DDL that makes them, and what differs in a database that has others.

Every resource is a table, every field a column, every to-one relation a foreign key. The database itself fills
`version`, `created_at`, `updated_at` and an integer id where an INSERT from outside leaves them out. What a database
needs besides is in `indexes.py` and `parts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from diptych.compile.fragment import identifier
from diptych.compile.indexes import wanted_indexes
from diptych.compile.part import NOW, DialectName, Table
from diptych.compile.parts import parts
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import BOOLEAN, INT, INTEGER_ID, Scalar, encode_json

RESERVED_PREFIX = "diptych_"


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a database has it, or should have it."""

    type: str
    nullable: bool
    filled: bool = False
    """Does the database fill it where an INSERT leaves it out? (Only PostgreSQL is asked.)"""


Schema = Mapping[str, Mapping[str, Column]]


def wanted(model: Model, dialect: DialectName) -> dict[str, dict[str, Column]]:
    """The tables that the model wants, by name."""
    return {
        resource.table: {
            field.column: Column(column_type(field.scalar, dialect), field.nullable)
            for field in resource.fields.values()
            if field.stored
        }
        for resource in model.resources.values()
    }


def column_type(scalar: Scalar, dialect: DialectName) -> str:
    """The type of a column, as the database tells it."""
    return scalar.sqlite if dialect == "sqlite" else scalar.postgres


def create(model: Model, dialect: DialectName) -> list[str]:
    """The statements that create all tables of a model, in an order in which references hold."""
    tables = [_create_table(model, resource, dialect) for resource in model.resources.values()]
    indexes = [index.create for index in wanted_indexes(model)]
    references = [
        statement for resource in model.resources.values() for statement in _references(model, resource)
    ]
    return tables + indexes if dialect == "sqlite" else tables + references + indexes


def complete(model: Model, dialect: DialectName, have: Mapping[str, str | None]) -> list[str]:
    """The statements that make what else a database needs, and lacks: tables of Diptych's own, and triggers.

    `have` are the parts that are there, each with its text as the database tells it.
    """
    needed = parts([_told(resource) for resource in model.resources.values()], dialect)
    return [statement for part in needed if not part.is_in(have) for statement in part.create]


def _told(resource: ResourceDef) -> Table:
    stored = [field for field in resource.fields.values() if field.stored]
    unique = tuple(field.column for field in stored if field.unique and field.name != "id")
    return Table(resource.table, tuple(field.column for field in stored), unique)


def fill(model: Model, have: Schema) -> list[str]:
    """The statements that let PostgreSQL fill the server's own columns, in tables that were made without."""
    return [
        statement
        for resource in model.resources.values()
        for field in (resource.fields[name] for name in SERVER_FIELDS)
        if resource.table in have and not have[resource.table][field.column].filled
        for statement in _fill(resource, field)
    ]


def _fill(resource: ResourceDef, field: FieldDef) -> Iterable[str]:
    change = f"ALTER TABLE {_name(resource.table)} ALTER COLUMN {_name(field.column)}"
    if _is_counted(field):
        yield f"{change} ADD {_COUNTED['postgres']}"
        yield catch_up(resource)
    elif field.name in _DEFAULTS:
        yield f"{change} SET DEFAULT {_DEFAULTS[field.name]['postgres']}"


def catch_up(resource: ResourceDef) -> str:
    """The statement after which PostgreSQL makes integer ids beyond those that are there."""
    table = _name(resource.table)
    return (
        f"SELECT setval(s, top) FROM (SELECT pg_get_serial_sequence('{table}', 'id')::regclass AS s, max(id) AS top "
        f"FROM {table}) AS q WHERE top > coalesce(pg_sequence_last_value(s), 0)"
    )


def add_column(model: Model, table: str, column: str, dialect: DialectName) -> str:
    """The statement that adds one column to a table that is there."""
    resource = next(found for found in model.resources.values() if found.table == table)
    field = next(found for found in resource.fields.values() if found.column == column)
    reference = _inline_reference(model, resource, field)
    return f"ALTER TABLE {_name(table)} ADD COLUMN {_column(field, dialect)}{reference}"


def can_be_added(model: Model, table: str, column: str) -> bool:
    """Can a new column be filled in the rows that are there? It can if it is nullable or has a default."""
    for resource in model.resources.values():
        if resource.table == table:
            return any(
                found.column == column and not found.unique and (found.nullable or found.default is not None)
                for found in resource.fields.values()
            )
    return False


def differences(want: Schema, have: Schema) -> list[str]:
    """What differs between the tables that a model wants and those that are there, a sentence each."""
    found = []
    for table, columns in want.items():
        if table not in have:
            found.append(f"the table {table} is missing")
            continue
        found.extend(_column_differences(table, columns, have[table]))
    return found


def missing_columns(want: Schema, have: Schema) -> list[tuple[str, str]]:
    """The columns that tables lack, as (table, column)."""
    return [(table, column) for table, columns in want.items() if table in have
            for column in columns if column not in have[table]]  # fmt: skip


def _column_differences(table: str, want: Mapping[str, Column], have: Mapping[str, Column]) -> Iterable[str]:
    for name, column in want.items():
        if name not in have:
            yield f"the column {table}.{name} ({column.type}) is missing"
        elif have[name].type.lower() != column.type.lower():
            yield f"the column {table}.{name} is {have[name].type} and should be {column.type}"
        elif have[name].nullable != column.nullable:
            should = "may" if column.nullable else "must not"
            yield f"the column {table}.{name} {_null(have[name])} and {should} be null"
    for name, column in have.items():
        if name not in want and not column.nullable:
            yield f"the column {table}.{name} is not in the model and must not be null"


def _null(column: Column) -> str:
    return "may be null" if column.nullable else "must not be null"


def _name(name: str) -> str:
    return identifier(name).text


def _create_table(model: Model, resource: ResourceDef, dialect: DialectName) -> str:
    lines = []
    for field in resource.fields.values():
        if field.stored:
            reference = _inline_reference(model, resource, field) if dialect == "sqlite" else ""
            lines.append(_column(field, dialect) + reference)
    if dialect == "sqlite":
        # it looks at the newest index first: so of several that are violated, both databases tell the same
        unique = [field.column for field in resource.fields.values() if field.unique]
        lines += [f"UNIQUE ({_name(column)})" for column in reversed(unique)]
    return f"CREATE TABLE {_name(resource.table)} (\n  " + ",\n  ".join(lines) + "\n)"


_DEFAULTS: Mapping[str, Mapping[DialectName, str]] = {
    "version": {"sqlite": "1", "postgres": "1"},
    "createdAt": NOW,
    "updatedAt": NOW,
}
_COUNTED: Mapping[DialectName, str] = {"sqlite": "AUTOINCREMENT", "postgres": "GENERATED BY DEFAULT AS IDENTITY"}
"""How a database makes integer ids; one that was used never comes back."""


def _is_counted(field: FieldDef) -> bool:
    return field.name == "id" and field.scalar is INTEGER_ID


def _column(field: FieldDef, dialect: DialectName) -> str:
    words = [_name(field.column), column_type(field.scalar, dialect)]
    if field.name == "id":
        words.append("PRIMARY KEY")
    if _is_counted(field):
        words.append(_COUNTED[dialect])
    if not field.nullable:
        words.append("NOT NULL")
    if field.name in _DEFAULTS:
        words.append(f"DEFAULT {_DEFAULTS[field.name][dialect]}")
    elif field.default is not None:
        words.append(f"DEFAULT {_literal(field, dialect)}")
    if field.unique and dialect == "postgres":
        words.append("UNIQUE")
    return " ".join(words)


def _literal(field: FieldDef, dialect: DialectName) -> str:
    """A default of the model as a literal: the one place where a value becomes text, and it is the model's own."""
    convert = field.scalar.to_sqlite if dialect == "sqlite" else field.scalar.to_postgres
    value: Any = convert(field.default) if convert else field.default
    if field.scalar is BOOLEAN:
        return ("true" if value else "false") if dialect == "postgres" else str(int(value))
    if field.scalar is INT or isinstance(value, int | float):
        return repr(value)
    shown = value if isinstance(value, str) else encode_json(value)
    return "'" + shown.replace("'", "''") + "'"


_ON_DELETE = {"restrict": "RESTRICT", "cascade": "CASCADE", "set null": "SET NULL"}


def _inline_reference(model: Model, resource: ResourceDef, field: FieldDef) -> str:
    if not field.relation:
        return ""
    relation = resource.relations[field.relation]
    target = model.resources[relation.target]
    return f" REFERENCES {_name(target.table)} (id) ON DELETE {_ON_DELETE[relation.on_delete]}"


def _references(model: Model, resource: ResourceDef) -> Iterable[str]:
    for field in resource.fields.values():
        if field.relation:
            yield (
                f"ALTER TABLE {_name(resource.table)} ADD FOREIGN KEY ({_name(field.column)})"
                + _inline_reference(model, resource, field)
            )
