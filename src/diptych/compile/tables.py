"""Model → tables: the DDL that makes and extends them.

Every resource is a table, every field a column, every to-one relation a foreign key. The database itself fills
`version`, `created_at`, `updated_at` and an integer id where an INSERT from outside leaves them out. Indexes are
in `indexes.py`, system tables and triggers in `system/`, and the comparison with existing tables in `differences.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from diptych.compile.catalogue import Catalogue, CatalogueColumn, TableColumns
from diptych.compile.constraints import check_constraints, literal
from diptych.compile.existing_triggers import existing_table
from diptych.compile.fragment import identifier
from diptych.compile.indexes import ExistingIndex, has_unique_keys, wanted_indexes
from diptych.compile.system.audit import audit_objects
from diptych.compile.system.counters import number_existing_rows
from diptych.compile.system.object import NOW, DialectName, FeedTable
from diptych.compile.system.objects import system_objects
from diptych.compile.system.searching import search_indexes
from diptych.compile.system.trash import trash_objects
from diptych.compile.system.upgrade import RETIRED, added_columns
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import INTEGER_ID, JSON, STRING, Scalar

RESERVED_PREFIX = "diptych_"


def wanted(model: Model, dialect: DialectName) -> dict[str, dict[str, CatalogueColumn]]:
    """The tables that the model wants, by name."""
    return {
        resource.table: {
            field.column: CatalogueColumn(column_type(field.scalar, dialect), field.nullable)
            for field in resource.fields.values()
            if field.stored
        }
        for resource in model.managed.values()
    }


def column_type(scalar: Scalar, dialect: DialectName) -> str:
    """The type of a column, as the catalogue of the database shows it."""
    return scalar.sqlite if dialect == "sqlite" else scalar.postgres


def create(model: Model, dialect: DialectName) -> list[str]:
    """The statements that create all tables of a model, in an order in which references hold."""
    tables = [_create_table(model, resource, dialect) for resource in model.managed.values()]
    indexes = [index.create for index in wanted_indexes(model, dialect)]
    references = [statement for resource in model.managed.values() for statement in _references(model, resource)]
    searches = [made for index in search_indexes(model.managed.values(), dialect) for made in index.create()]
    return [*tables, *(references if dialect == "postgres" else ()), *indexes, *searches]


def create_missing(
    model: Model, dialect: DialectName, parts_there: Mapping[str, str | None], have: Catalogue
) -> list[str]:
    """The statements that make the system tables, columns of them, and triggers that a database lacks.

    `parts_there` are those that it has, with their text in its catalogue.
    """
    followed = [resource for resource in model.resources.values() if resource.followed]
    tables = [(_for_triggers if resource.managed else existing_table)(resource, have) for resource in followed]
    needed = system_objects(tables, dialect)
    needed += trash_objects(model.resources, dialect)
    needed += audit_objects(dialect) if model.audited else ()
    made: list[str] = []
    for part in needed:
        is_there = part.is_in(parts_there)
        made += added_columns(part.create[0], have.system_tables) if is_there else part.create
    return [*made, *(f"DROP INDEX {name}" for name in RETIRED if name in parts_there)]


def _for_triggers(resource: ResourceDef, have: Catalogue) -> FeedTable:
    """A table as its triggers need it: with all columns of the model, and those that another model has added.

    So an older node that starts after a column was added makes the same triggers as a newer one.
    """
    there = have.tables.get(resource.table, {})
    stored = {field.column: field.unique for field in resource.fields.values() if field.stored}
    record = {name: meaning.unique for name, meaning in have.recorded.get(resource.table, {}).items() if name in there}
    columns = [name for name in there if name in stored or name in record]
    columns += [name for name in stored if name not in there]
    unique = [name for name in columns if name != "id" and (stored.get(name) or record.get(name))]
    keys = {key.columns for key in resource.keys if key.unique}
    keys |= {index.columns for index in have.indexes if index.table == resource.table and _is_key(index, columns)}
    together = sorted({tuple(sorted(key)) for key in keys} - {(name,) for name in unique})
    kinds = {name: meaning.type for name, meaning in have.recorded.get(resource.table, {}).items()}
    kinds |= {field.column: "[" if field.scalar.is_json else field.scalar.name for field in resource.fields.values()}
    texts = [
        name for name in columns if kinds[name] in (STRING.name, JSON.name) or kinds[name][0] in "[{"
    ]  # as `FeedRow` looks for them
    types = {field.column: field.scalar.sqlite for field in resource.fields.values() if field.stored}
    types |= {name: column.type for name, column in there.items()}
    textual = [name for name in columns if types[name] == "TEXT"]
    counters = [(field.column, _within(resource, field)) for field in resource.counters.values()]
    return FeedTable(resource.table, columns, [*((name,) for name in unique), *together], texts, counters, textual)


def _within(resource: ResourceDef, counter: FieldDef) -> str:
    """The column within which a counter counts; "" for all rows."""
    return resource.fields[counter.counts].column if counter.counts else ""


def _is_key(index: ExistingIndex, columns: Collection[str]) -> bool:
    """Does an index keep several columns unique together?"""
    return index.unique and len(index.columns) > 1 and set(columns) >= set(index.columns)


def add_server_defaults(model: Model, have: TableColumns) -> list[str]:
    """The statements that let PostgreSQL fill the server's own columns, in tables that were made without."""
    return [
        statement
        for resource in model.managed.values()
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


def new_table(model: Model, resource: ResourceDef, dialect: DialectName) -> tuple[str, tuple[str, ...]]:
    """The statement that makes one table, and those for when all that it refers to is there."""
    references = _references(model, resource) if dialect == "postgres" else ()
    return _create_table(model, resource, dialect), tuple(references)


def new_column(model: Model, resource: ResourceDef, field: FieldDef, dialect: DialectName) -> tuple[str, ...]:
    """The statements that add a column to a table that is there. (If it is unique, an index follows.)"""
    if field.counts is not None:
        return _new_counter(resource, field, dialect)
    reference = reference_of(model, resource, field)
    if dialect == "sqlite" and field.generated:  # it adds no column whose default is not constant
        field = replace(field, generated="")
    if dialect == "postgres" or field.nullable or field.default is not None:
        return (
            f"ALTER TABLE {_name(resource.table)} ADD COLUMN {column_text(field, dialect, unique=False)}{reference}",
        )
    open_ = replace(field, nullable=True)  # SQLite adds no column that must not be null, even if there are no rows
    return (*new_column(model, resource, open_, dialect), set_null(resource, field.column, nullable=False))


def _new_counter(resource: ResourceDef, field: FieldDef, dialect: DialectName) -> tuple[str, ...]:
    """The statements that add a counter to a table, and number the rows that are there."""
    column = column_text(field, dialect, unique=False)
    number = number_existing_rows(resource.table, field.column, _within(resource, field))
    if dialect == "sqlite":
        return f"ALTER TABLE {_name(resource.table)} ADD COLUMN {column}", number
    add = f"ALTER TABLE {_name(resource.table)} ADD COLUMN {column.removesuffix(' NOT NULL')}"
    return add, number, set_null(resource, field.column, nullable=False)


def set_null(resource: ResourceDef, column: str, *, nullable: bool) -> str:
    """The statement after which a column may, or must not, be null."""
    return f"ALTER TABLE {_name(resource.table)} ALTER COLUMN {_name(column)} {'DROP' if nullable else 'SET'} NOT NULL"


def set_reference(model: Model, resource: ResourceDef, field: FieldDef) -> str:
    """The statement that adds the foreign key of a column to a table of PostgreSQL."""
    reference = reference_of(model, resource, field)
    return f"ALTER TABLE {_name(resource.table)} ADD FOREIGN KEY ({_name(field.column)}){reference}"


def _name(name: str) -> str:
    return identifier(name).text


def _create_table(model: Model, resource: ResourceDef, dialect: DialectName) -> str:
    lines = []
    for field in resource.fields.values():
        if field.stored:
            reference = reference_of(model, resource, field) if dialect == "sqlite" else ""
            lines.append(column_text(field, dialect, unique=not resource.trash) + reference)
    if dialect == "sqlite":
        # it checks the newest index first: so of several that are violated, both databases report the same
        unique = [field.column for field in resource.fields.values() if field.unique and not has_unique_keys(resource)]
        lines += [f"UNIQUE ({_name(column)})" for column in reversed(unique)]
    lines += check_constraints(model, resource, dialect).values()
    return f"CREATE TABLE {_name(resource.table)} (\n  " + ",\n  ".join(lines) + "\n)"


_DEFAULTS: Mapping[str, Mapping[DialectName, str]] = {
    "version": {"sqlite": "1", "postgres": "1"},
    "createdAt": NOW,
    "updatedAt": NOW,
}
_GENERATED: Mapping[str, Mapping[DialectName, str]] = {
    "now": NOW,
    "today": {"sqlite": "(strftime('%Y-%m-%d', 'now'))", "postgres": "((now() AT TIME ZONE 'UTC')::date)"},
}
_COUNTED: Mapping[DialectName, str] = {"sqlite": "AUTOINCREMENT", "postgres": "GENERATED BY DEFAULT AS IDENTITY"}
"""How a database makes integer ids; one that was used never comes back."""


def _is_counted(field: FieldDef) -> bool:
    return field.name == "id" and field.scalar is INTEGER_ID


def column_text(field: FieldDef, dialect: DialectName, *, unique: bool = True) -> str:
    """What CREATE TABLE says of a column, but for the row that it refers to."""
    words = [_name(field.column), column_type(field.scalar, dialect)]
    if field.name == "id":
        words.append("PRIMARY KEY")
    if _is_counted(field):
        words.append(_COUNTED[dialect])
    if not field.nullable:
        words.append("NOT NULL")
    if field.name in _DEFAULTS:
        words.append(f"DEFAULT {_DEFAULTS[field.name][dialect]}")
    elif field.counts is not None:
        words += ["DEFAULT 0"] if dialect == "sqlite" else []  # a trigger gives the number
    elif field.generated and field.filled:
        words.append(f"DEFAULT {_GENERATED[field.generated][dialect]}")
    elif field.default is not None:
        words.append(f"DEFAULT {literal(field.default, field.scalar, dialect)}")
    if unique and field.unique and dialect == "postgres":
        words.append("UNIQUE")
    return " ".join(words)


_ON_DELETE = {"restrict": "RESTRICT", "cascade": "CASCADE", "set null": "SET NULL"}


def reference_of(model: Model, resource: ResourceDef, field: FieldDef) -> str:
    """What a column says of the row that it refers to; "" if it refers to none."""
    if not field.relation:
        return ""
    relation = resource.relations[field.relation]
    target = model.resources[relation.target]
    key = target.key_columns[0] if target.managed else _name(target.key_columns[0])
    return f" REFERENCES {_name(target.table)} ({key}) ON DELETE {_ON_DELETE[relation.on_delete]}"


def _references(model: Model, resource: ResourceDef) -> Iterable[str]:
    for field in resource.fields.values():
        if field.relation:
            yield set_reference(model, resource, field)
