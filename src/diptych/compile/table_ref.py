"""The tables of a statement: rows of a resource, or groups of them, under an alias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diptych.compile.fragment import Fragment, column, identifier, join, sql
from diptych.model.defs import ResourceDef
from diptych.model.rules.expr import Expr


class TableRef:
    """A table in a statement: the resource, the alias of its row, and the tables that are joined to it."""

    __slots__ = ("alias", "joins", "resource")

    def __init__(self, resource: ResourceDef, alias: str) -> None:
        self.resource = resource
        self.alias = alias
        self.joins: list[Fragment] = []

    def column(self, name: str) -> Fragment:
        return column(self.alias, name)

    @property
    def id(self) -> Fragment:
        """The id; of a key of several columns, their texts with a comma between."""
        columns = [self.column(name) for name in self.resource.key_columns]
        return columns[0] if len(columns) == 1 else key_text(columns)


_KEY_PART = "replace(replace(CAST({} AS text), '%', '%25'), ',', '%2C')"
"""A column of such a key: a comma in it is not the one between two columns."""


def key_text(columns: Iterable[Fragment]) -> Fragment:
    """The id of a row whose key has several columns."""
    return sql("({})", join(" || ',' || ", (sql(_KEY_PART, column) for column in columns)))


def same_key(left: TableRef, columns: Iterable[str], right: TableRef, others: Iterable[str]) -> Fragment:
    """Are the columns of one row equal to those of the other?"""
    pairs = zip(columns, others, strict=True)
    return join(" AND ", (sql("{} = {}", left.column(mine), right.column(theirs)) for mine, theirs in pairs))


class BareRef(TableRef):
    """A row whose columns have no alias: in a constraint, or in RETURNING."""

    __slots__ = ()

    def column(self, name: str) -> Fragment:
        return identifier(name)


class GroupRef(TableRef):
    """The groups of rows in a statement: a sub-select with columns for keys and measures."""

    __slots__ = ("select", "values")

    def __init__(self, resource: ResourceDef, alias: str) -> None:
        super().__init__(resource, alias)
        self.select = Fragment("")
        self.values: dict[Expr, Fragment] = {}
        """Each key and measure, in terms of these columns."""


class NewRow(TableRef):
    """The row as it would become: its columns are the new values, and where there are none, those of the old row."""

    __slots__ = ("_old", "_values")

    def __init__(self, resource: ResourceDef, values: Mapping[str, Fragment], old: TableRef | None) -> None:
        super().__init__(resource, old.alias if old else "")
        self._values = values
        self._old = old

    def column(self, name: str) -> Fragment:
        if name in self._values:
            return self._values[name]
        if self._old is None:  # the one column that no new row has a value for
            assert name == "deleted_at"
            return Fragment("NULL")
        return self._old.column(name)
