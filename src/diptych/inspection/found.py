"""The tables that an inspection has found in a database, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct


class FoundColumn(Struct, frozen=True):
    """A column, in the words of its database."""

    name: str
    type: str
    nullable: bool
    default: str = ""
    """The expression of its default; "" if it has none."""
    counted: bool = False
    """Does the database make its values?"""
    computed: bool = False
    """Does the database compute its values from others?"""
    comment: str = ""
    values: tuple[str, ...] = ()
    """The values of an enum."""
    holds: str = ""
    """What the rows of SQLite hold there: a day, a moment, long integers …; "" if nothing special."""


class FoundReference(Struct, frozen=True):
    """A foreign key."""

    columns: tuple[str, ...]
    target: str
    keys: tuple[str, ...]
    """The columns that it refers to."""
    on_delete: str


class FoundTable(Struct, frozen=True):
    """A table or a view."""

    name: str
    columns: Sequence[FoundColumn]
    is_view: bool = False
    key: tuple[str, ...] = ()
    """The columns of the primary key; of a view, a column that is unique in the rows of today."""
    references: Sequence[FoundReference] = ()
    uniques: Sequence[tuple[str, ...]] = ()
    checks: Sequence[str] = ()
    left: Sequence[str] = ()
    """What else it has, and a model cannot express."""
    comment: str = ""


class FoundDatabase(Struct, frozen=True):
    """All tables and views of a database that are not Diptych's own, by name."""

    kind: str
    tables: Mapping[str, FoundTable]
    elsewhere: Mapping[str, int] = {}
    """The number of tables in other schemas of a PostgreSQL database, by their names."""


def likely_keys(columns: Sequence[FoundColumn]) -> list[str]:
    """The columns of a view by which its rows may be known: those that are called an id first."""
    names = [column.name for column in columns]
    return sorted(names, key=lambda name: (not name.lower().endswith("id"), names.index(name)))
