"""Model → indexes: those that it wants, and which of them a database lacks.

Every key of a relation and every field with `Index()` has an index on (column, id): the rows of one value are
in the order of their ids. An index is recognised by its columns and not by its name, so that an index that its owner
made is as good as ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from diptych.compile.fragment import identifier
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.read.name_clashes import names_beside

_LONGEST = 63
"""Bytes of the longest name that PostgreSQL keeps whole."""


@dataclass(frozen=True, slots=True)
class ExistingIndex:
    """An index as a database has it."""

    name: str
    table: str
    columns: tuple[str, ...]
    """None, if it is about some rows only; one that is no plain column is ""."""
    unique: bool


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """An index that the model wants on a column, and the statement that makes it."""

    resource: ResourceDef
    field: FieldDef
    unique: bool
    create: str


def wanted_indexes(model: Model) -> list[DeclaredIndex]:
    """The indexes of a new database. (Those of ids and unique values come with the tables.)"""
    return [index for index in _wanted(model, set()) if not index.unique]


def missing_indexes(model: Model, have: Collection[ExistingIndex]) -> list[DeclaredIndex]:
    """The indexes that a database lacks, those of unique values included."""
    of_table: dict[str, list[ExistingIndex]] = {}
    for present in have:
        of_table.setdefault(present.table, []).append(present)
    wanted = _wanted(model, {present.name for present in have})
    return [index for index in wanted if not _is_there(index, of_table.get(index.resource.table, ()))]


def _is_there(wanted: DeclaredIndex, have: Iterable[ExistingIndex]) -> bool:
    """One that begins with the column finds rows by it; to keep values unique it must have no other."""
    column = wanted.field.column
    return any(
        index.unique and index.columns == (column,) if wanted.unique else index.columns[:1] == (column,)
        for index in have
    )


def _wanted(model: Model, taken: set[str]) -> Iterator[DeclaredIndex]:
    resources = model.resources.values()
    names = {*taken, *(resource.table for resource in resources)}
    beside = {name for resource in resources for name in names_beside(resource)}
    for resource in resources:
        for field in resource.fields.values():
            for unique in (True, False):
                if field.unique if unique else field.indexed:
                    name = _name(resource.table, field.column + "_key" * unique, names, set() if unique else beside)
                    names.add(name)
                    yield DeclaredIndex(resource, field, unique, _create(name, resource, field, unique))


def _create(name: str, resource: ResourceDef, field: FieldDef, unique: bool) -> str:
    index, columns = ("UNIQUE INDEX", "") if unique else ("INDEX", ", id")
    table, column = identifier(resource.table).text, identifier(field.column).text
    return f"CREATE {index} {identifier(name).text} ON {table} ({column}{columns})"


def _name(table: str, column: str, *taken: Collection[str]) -> str:
    """The name of an index: one that is too long, or that another has, ends in a mark of its own."""
    name = f"{table}_{column}"
    if len(name) <= _LONGEST and not any(name in names for names in taken):
        return name
    mark = hashlib.sha256(f"{table}.{column}".encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9]}_{mark}"
