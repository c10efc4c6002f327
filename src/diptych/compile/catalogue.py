"""The catalogue of a database as plain data: tables and columns, indexes, foreign keys, and the record of its columns.

`db/catalogue.py` reads it, `compile/differences.py` compares it with a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from diptych.compile.indexes import ExistingIndex
from diptych.compile.meaning import Meaning
from diptych.compile.system.upgrade import SystemVersion
from diptych.model.model import Model


class CatalogueColumn(Struct, frozen=True):
    """A column as a database has it."""

    type: str
    nullable: bool
    filled: bool = False
    """Does the database fill it where an INSERT leaves it out?"""


class ExistingReference(Struct, frozen=True):
    """A foreign key of one column, as a database has it."""

    name: str
    """The name of the constraint; SQLite has none."""
    table: str
    column: str
    target: str
    on_delete: str
    """In the words of the model; "no action" is "restrict"."""
    key: str = "id"
    """The column that it refers to; "" if that is the primary key."""


class CompositeReference(Struct, frozen=True):
    """A foreign key of several columns, as a database has it."""

    table: str
    columns: tuple[str, ...]
    target: str
    keys: tuple[str, ...]
    """The columns that it refers to; empty names if those are the primary key."""
    on_delete: str


TableColumns = Mapping[str, Mapping[str, CatalogueColumn]]


class Catalogue(Struct, frozen=True):
    """The tables of a database that are not Diptych's own, with their foreign keys, and all indexes."""

    tables: TableColumns
    indexes: Sequence[ExistingIndex] = ()
    references: Sequence[ExistingReference] = ()
    checks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The names of the CHECK constraints of each table."""
    searches: frozenset[str] = frozenset()
    """The names of what full-text searches use."""
    views: TableColumns = field(default_factory=dict)
    recorded: Mapping[str, Mapping[str, Meaning]] = field(default_factory=dict)
    """The meaning of each column of each table, as it was recorded when the tables were made or last changed."""
    composites: Sequence[CompositeReference] = ()
    """The foreign keys of several columns, which only tables of others have."""
    system_tables: TableColumns = field(default_factory=dict)
    """Diptych's own tables."""
    system_version: SystemVersion | None = None
    """Their version; None if none is recorded."""

    @property
    def has_system_tables(self) -> bool:
        """Has Diptych opened it before? A log of migrations is made before the other system tables."""
        return "diptych_keys" in self.system_tables

    def has_any_of(self, model: Model) -> bool:
        return any(
            resource.table in (self.views if resource.is_view else self.tables) for resource in model.resources.values()
        )

    def is_new_to(self, model: Model) -> bool:
        """Does the database have none of the tables of the model?

        Then all of them are made when the database is opened.
        """
        return not self.recorded and not any(resource.table in self.tables for resource in model.managed.values())
