"""A state as the catalogue of a database that has it, and how a database differs from it."""

from __future__ import annotations

from collections.abc import Iterator

from diptych.compile.catalogue import Catalogue, ExistingReference
from diptych.compile.catalogue import CatalogueColumn as ExistingColumn
from diptych.compile.indexes import ExistingIndex
from diptych.compile.meaning import compatibility
from diptych.compile.system.object import DialectName
from diptych.compile.system.searching import SearchIndex
from diptych.migrate.ddl import check_ddl, default_ddl, inline_keys, key_name, type_ddl
from diptych.migrate.online import names_of_key
from diptych.migrate.state import State


def catalogue_of(state: State, dialect: DialectName) -> Catalogue:
    """The catalogue of a database with these tables."""
    tables = {
        name: {
            column_name: ExistingColumn(
                type_ddl(column, dialect),
                column.nullable,
                default_ddl(column_name, column, dialect) != "" or column_name == "id",
            )
            for column_name, column in table.columns.items()
        }
        for name, table in state.tables.items()
    }
    indexes, references = [], []
    for name, table in state.tables.items():
        for key in table.keys:
            inline = dialect == "sqlite" and key in inline_keys(table, dialect)
            columns = () if key.where(dialect) else key.columns if key.unique else (*key.columns, "id")
            made = "sqlite_autoindex" if inline else key_name(name, key, dialect)
            indexes.append(ExistingIndex(made, name, columns, key.unique))
        references += [
            ExistingReference(f"{name}_{column_name}_fkey", name, column_name, column.target, column.on_delete)
            for column_name, column in table.columns.items()
            if column.target
        ]
    checks = {
        name: frozenset(check_ddl(name, column_name, check, dialect)[0] for column_name, check in table.checks.items())
        for name, table in state.tables.items()
    }
    searches = frozenset(
        SearchIndex.over(name, table.search, dialect).name for name, table in state.tables.items() if table.search
    )
    return Catalogue(tables, indexes, references, checks, searches)


def drift(state: State, have: Catalogue, dialect: DialectName) -> Iterator[str]:
    """The differences of a database from a state: what it lacks, and what it has in another form.

    Further tables and indexes are no difference, nor are columns that an INSERT may leave out.
    """
    want = catalogue_of(state, dialect)
    for name in want.tables:
        if name in have.tables:
            yield from _table_drift(name, state, want, have, dialect)
        else:
            yield f"the table {name} is missing"
    for name, searched in state.tables.items():
        index = SearchIndex.over(name, searched.search, dialect) if searched.search else None
        if index is not None and name in have.tables and index.name not in have.searches:
            yield f"the table {name} has no search index of {', '.join(searched.search)}"
    refers = {(link.table, link.column, link.target, link.on_delete) for link in have.references}
    for reference in want.references:
        table, column, target, on_delete = reference.table, reference.column, reference.target, reference.on_delete
        if table in have.tables and (table, column, target, on_delete) not in refers:
            yield f"the column {table}.{column} has no foreign key to {target} ({on_delete})"


def _table_drift(name: str, state: State, want: Catalogue, have: Catalogue, dialect: DialectName) -> Iterator[str]:
    columns, there = want.tables[name], have.tables[name]
    for column_name, column in columns.items():
        if column_name not in there:
            yield f"the column {name}.{column_name} is missing"
        elif there[column_name].type.lower() != column.type.lower():
            yield f"the column {name}.{column_name} is {there[column_name].type}, not {column.type}"
        elif there[column_name].nullable != column.nullable:
            yield f"the column {name}.{column_name} may{' not' * (not there[column_name].nullable)} be null"
        else:
            was, now = have.recorded.get(name, {}).get(column_name), state.tables[name].columns[column_name]
            if was is not None and compatibility(was, now, dialect) == "other":
                yield f"the column {name}.{column_name} holds values of the type {was}, not {now}"
    for column_name, more in there.items():
        if column_name not in columns and not (more.nullable or more.filled):
            yield f"the column {name}.{column_name} is in no migration, and must not be null"
    for key in state.tables[name].keys:
        if key.unique and not names_of_key(name, key, have, dialect):
            yield f"{name} ({key}) is not kept unique"
