"""The tables of a statement: rows of a resource, or groups of them, under an alias."""

from __future__ import annotations

from diptych.compile.fragment import Fragment, column
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
        return self.column("id")


class GroupRef(TableRef):
    """The groups of rows in a statement: a sub-select with columns for keys and measures."""

    __slots__ = ("select", "values")

    def __init__(self, resource: ResourceDef, alias: str) -> None:
        super().__init__(resource, alias)
        self.select = Fragment("")
        self.values: dict[Expr, Fragment] = {}
        """Each key and measure, in terms of these columns."""
