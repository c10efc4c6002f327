"""Model → indexes: those that it wants, and which of them a database lacks.

Every key of a relation, every field with `Index()` and every `index(…)` of a class has an index on (columns, id): the
rows of one value are in the order of their ids. An index is recognised by its columns and not by its name, so that an
index that its owner made is as good as ours; only a partial one is recognised by its name, which says what it covers.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from diptych.compile.constraints import condition_text
from diptych.compile.fragment import identifier
from diptych.compile.system.object import DialectName
from diptych.model.defs import DELETED_AT, KeyDef, ResourceDef
from diptych.model.model import Model
from diptych.model.naming import LONGEST
from diptych.model.read.name_clashes import names_beside
from diptych.model.rules.expr import TRUE, not_


class ExistingIndex(Struct, frozen=True):
    """An index as a database has it."""

    name: str
    table: str
    columns: tuple[str, ...]
    """None, if it is about some rows only; one that is no plain column is ""."""
    unique: bool


class DeclaredIndex(Struct, frozen=True):
    """An index that the model wants, and the statement that makes it."""

    resource: ResourceDef
    columns: tuple[str, ...]
    unique: bool
    name: str
    create: str
    where: str = ""
    """The condition on the rows of a partial index."""
    inline: bool = False
    """Does a new table have it without this statement, as a constraint of its column?"""


def wanted_indexes(model: Model, dialect: DialectName) -> list[DeclaredIndex]:
    """The indexes of a new database, in the order in which they are made. (Those of ids come with the tables.)"""
    indexes = list(_wanted(model, dialect, set()))
    return [index for resource in model.managed.values() for index in of_new_table(indexes, resource, dialect)]


def of_new_table(indexes: Iterable[DeclaredIndex], resource: ResourceDef, dialect: DialectName) -> list[DeclaredIndex]:
    """The indexes that are made after the table of the resource, in the order in which they are made.

    SQLite checks the newest unique index first, PostgreSQL the oldest: in this order both report the same violation.
    """
    own = [index for index in indexes if index.resource is resource]
    unique = [index for index in own if index.unique and not index.inline]
    if dialect == "sqlite":
        unique = [index for index in reversed(own) if index.unique] if has_unique_keys(resource) else []
    return [*unique, *(index for index in own if not index.unique)]


def has_unique_keys(resource: ResourceDef) -> bool:
    """Does the resource have unique keys besides its unique fields?

    Then SQLite has all of them as indexes of their own.
    With a trash, all of them are partial.
    """
    return resource.trash > 0 or any(key.unique for key in resource.keys)


def declared_indexes(model: Model, dialect: DialectName) -> list[DeclaredIndex]:
    """All indexes that the model declares, in its order."""
    return list(_wanted(model, dialect, set()))


def missing_indexes(model: Model, have: Collection[ExistingIndex], dialect: DialectName) -> list[DeclaredIndex]:
    """The indexes that a database lacks, those of unique values included."""
    of_table: dict[str, list[ExistingIndex]] = {}
    for present in have:
        of_table.setdefault(present.table, []).append(present)
    wanted = _wanted(model, dialect, {present.name for present in have})
    return [index for index in wanted if not _is_there(index, of_table.get(index.resource.table, ()))]


def _is_there(wanted: DeclaredIndex, have: Iterable[ExistingIndex]) -> bool:
    """One that begins with the columns finds rows by them; to keep values unique it must have no other."""
    if wanted.where:
        return any(index.unique == wanted.unique and index.name == wanted.name for index in have)
    if wanted.unique:
        return any(index.unique and sorted(index.columns) == sorted(wanted.columns) for index in have)
    return any(index.columns[: len(wanted.columns)] == wanted.columns for index in have)


def _wanted(model: Model, dialect: DialectName, taken: set[str]) -> Iterator[DeclaredIndex]:
    resources = model.managed.values()
    names = {*taken, *(resource.table for resource in resources)}
    beside = {name for resource in resources for name in names_beside(resource)}
    for resource in resources:
        for field in resource.fields.values():
            for unique in (True, False):
                if unique and field.unique and resource.trash:
                    continue
                if field.unique if unique else field.indexed:
                    name = free_name(resource.table, field.column + "_key" * unique, names, set() if unique else beside)
                    names.add(name)
                    create = create_index(name, resource.table, (field.column,), unique)
                    yield DeclaredIndex(resource, (field.column,), unique, name, create, inline=unique)
        for key in (*_kept_unique(resource), *resource.keys):
            where = "" if key.where == TRUE else condition_text(key.where, model, resource, dialect)
            if resource.trash and key.unique:  # as statements say it, so that they can use the index
                where = f"{_PRESENT} AND {where}" if where else _PRESENT
            name = _key_name(resource, key, where, {*(names - taken if where else names), *beside})
            names.add(name)
            create = create_index(name, resource.table, key.columns, key.unique, where)
            yield DeclaredIndex(resource, key.columns, key.unique, name, create, where)


_PRESENT = "deleted_at IS NULL"


def _kept_unique(resource: ResourceDef) -> Iterator[KeyDef]:
    """With a trash: its unique fields, which hold among rows that are not deleted, and the index of those that are."""
    if resource.trash:
        for field in resource.fields.values():
            if field.unique:
                yield KeyDef(field.name, (field.name,), (field.column,), unique=True)
        yield KeyDef(DELETED_AT, (DELETED_AT,), ("deleted_at",), unique=False, where=not_(resource.present))


def create_index(name: str, table: str, columns: tuple[str, ...], unique: bool, where: str = "") -> str:
    """The statement that makes an index."""
    index, more = ("UNIQUE INDEX", "") if unique else ("INDEX", ", id")
    quoted, listed = identifier(table).text, ", ".join(identifier(column).text for column in columns)
    return f"CREATE {index} {identifier(name).text} ON {quoted} ({listed}{more})" + (f" WHERE {where}" if where else "")


def _key_name(resource: ResourceDef, key: KeyDef, where: str, taken: Collection[str]) -> str:
    return index_name(resource.table, key.columns, key.unique, where, taken)


def index_name(table: str, columns: tuple[str, ...], unique: bool, where: str, taken: Collection[str]) -> str:
    """The name of the index of a key; that of a partial one contains a hash of its condition."""
    mark = "_" + hashlib.sha256(where.encode()).hexdigest()[:8] if where else ""
    return free_name(table, "_".join(columns) + "_key" * unique + mark, taken)


def free_name(table: str, column: str, *taken: Collection[str]) -> str:
    """The name of an index or a constraint: one that is too long, or that another has, ends in a mark of its own."""
    name = f"{table}_{column}"
    if len(name) <= LONGEST and not any(name in names for names in taken):
        return name
    texts = (f"{table}.{column}{number or ''}" for number in itertools.count())
    marked = (f"{name[: LONGEST - 9]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}" for text in texts)
    return next(each for each in marked if not any(each in names for names in taken))
