"""The steps of migrations: each turns a state into the next, and has its SQL for both stores.

    add_column("posts", "rank", column("Int", default=3))

A step asks the catalogue whether it is done already (`is_done`), so a run that was interrupted can be repeated. What it
would lose (`loss`), and what is in its way (`obstacle`), are queries that count rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from diptych.compile.catalogue import Catalogue
from diptych.compile.meaning import misfit_of
from diptych.compile.system.object import DialectName
from diptych.errors import StartError
from diptych.migrate.ddl import quote
from diptych.migrate.state import Column, State, Table


class Rebuild(NamedTuple):
    """SQLite: make a table anew, with its rows; `values` are expressions for columns that are not taken as they are."""

    table: str
    before: Table
    after: Table
    values: dict[str, str]


class Backfill(NamedTuple):
    """Give rows a value, as a change that followers see; on PostgreSQL in batches, each with its own commit."""

    table: str
    column: str
    expression: str


class Alone(NamedTuple):
    """PostgreSQL: a statement that runs outside a transaction, and the index that it makes."""

    sql: str
    name: str


class Validate(NamedTuple):
    """PostgreSQL: a statement in a transaction of its own, since it takes long under a weak lock."""

    sql: str


class Stored(NamedTuple):
    """PostgreSQL: an UPDATE of stored changes, in batches by position, each with its own commit.

    It comes after the table was changed: then all changes in the shape of before are committed.
    """

    sql: str


class Number(NamedTuple):
    """PostgreSQL: a statement that numbers rows, in batches, each with its own commit (`numbering.py`)."""

    sql: str


Action = str | Rebuild | Backfill | Alone | Validate | Stored | Number
Look = tuple[str, str]
"""A sentence with {} for the number of rows, and the query that counts them."""


class MigrationStep(msgspec.Struct, frozen=True):
    """What all steps have in common."""

    def change(self, state: State) -> State:
        """The state after it."""
        raise NotImplementedError

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        """The actions by which the step changes a database."""
        raise NotImplementedError

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        """Is the database as this step leaves it?"""
        return False

    def loss(self, before: State, dialect: DialectName) -> Look | None:
        """What would be lost."""
        return None

    @property
    def loses(self) -> bool:
        """May the step lose data?"""
        return False

    def obstacle(self, before: State, dialect: DialectName) -> Look | None:
        """A query for the rows that keep the step from being applied; None if no row can."""
        return None

    @property
    def stops(self) -> bool:
        """Can a service with the model before not go on after it?"""
        return False

    def leftovers(self) -> Iterator[str]:
        """PostgreSQL: the statements that drop what only services with the model before need; `contract` runs them."""
        return iter(())

    def table_in(self, state: State, name: str) -> Table:
        if name not in state.tables:
            raise StartError(f"{type(self).__name__}: there is no table {name} at this place of the migrations.")
        return state.tables[name]

    def with_column(self, state: State, table: str, name: str) -> Table:
        there = self.table_in(state, table)
        if name not in there.columns:
            raise StartError(f"{type(self).__name__}: the table {table} has no column {name} at this place.")
        return there


def count_of(table: str, where: str = "") -> str:
    return f"SELECT count(*) FROM {quote(table)}" + (f" WHERE {where}" if where else "")


def unfit(table: str, name: str, column: Column, value: str, where: str = "") -> Look:
    """The rows for which an expression gives what the column cannot have, as far as both stores can tell before."""
    kinds = {f"is not {column}": misfit_of(column, f"({value})", "postgres")}
    if not column.nullable:
        kinds["is null"] = f"({value}) IS NULL"
    conditions = {words: condition for words, condition in kinds.items() if condition}
    found = " OR ".join(conditions.values()) or "1 = 0"
    query = count_of(table, f"{where} AND ({found})" if where else found)
    return f"{{}} rows of {table} would get a value in {name} that {' or '.join(conditions)}", query


def of_dialect(text: str | dict[str, str], dialect: DialectName) -> str:
    return text if isinstance(text, str) else text[dialect]
