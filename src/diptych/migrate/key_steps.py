"""Steps that change keys, checks and searches, and those that change data by code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from diptych.compile.catalogue import Catalogue
from diptych.compile.system.object import DialectName
from diptych.compile.system.searching import SearchIndex
from diptych.errors import StartError
from diptych.migrate.ddl import check_ddl, quote, sql_list
from diptych.migrate.online import make_key, names_of_key
from diptych.migrate.state import Check, Key, State
from diptych.migrate.step import Action, Alone, Look, MigrationStep, Rebuild, Validate, count_of


class add_key(MigrationStep, frozen=True):
    """Make a unique key or an index."""

    table: str
    key: Key

    def change(self, state: State) -> State:
        table = self.table_in(state, self.table)
        return state.put(self.table, table.put(keys=(*table.keys, self.key)))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        yield from make_key(self.table, self.key, dialect, have)

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        if dialect == "postgres" and self.key.postgres:  # its name does not show whether it is complete
            return False
        return bool(names_of_key(self.table, self.key, have, dialect))

    def obstacle(self, before: State, dialect: DialectName) -> Look | None:
        if not self.key.unique:
            return None
        conditions = [f"{quote(column)} IS NOT NULL" for column in self.key.columns]
        where = " AND ".join([*conditions, *filter(None, [self.key.where(dialect)])])
        groups = f"SELECT 1 FROM {quote(self.table)} WHERE {where} GROUP BY {sql_list(self.key.columns)}"
        return (
            f"{{}} values of {self.table} ({self.key}) are there more than once",
            f"SELECT count(*) FROM ({groups} HAVING count(*) > 1) AS _d",
        )


class drop_key(MigrationStep, frozen=True):
    """Drop a unique key or an index."""

    table: str
    key: Key

    def change(self, state: State) -> State:
        table = self.table_in(state, self.table)
        if self.key not in table.keys:
            raise StartError(f"drop_key: the table {self.table} has no such key ({self.key}) at this place.")
        return state.put(self.table, table.put(keys=tuple(key for key in table.keys if key != self.key)))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        for name in names_of_key(self.table, self.key, have, dialect):
            if name.startswith("sqlite_autoindex"):
                table = before.tables[self.table]
                yield Rebuild(self.table, table, self.change(before).tables[self.table], {})
                return
            if dialect == "postgres" and self.key.unique:
                yield f'ALTER TABLE {quote(self.table)} DROP CONSTRAINT IF EXISTS "{name}"'
            yield f'DROP INDEX IF EXISTS "{name}"'

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return not names_of_key(self.table, self.key, have, dialect)


class add_check(MigrationStep, frozen=True):
    """Make a CHECK constraint."""

    table: str
    name: str
    check: Check

    def change(self, state: State) -> State:
        table = self.table_in(state, self.table)
        return state.put(self.table, table.put(checks={**table.checks, self.name: self.check}))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        constraint, text = check_ddl(self.table, self.name, self.check, dialect)
        if constraint not in have.checks.get(self.table, ()):
            yield f"ALTER TABLE {quote(self.table)} ADD {text}" + " NOT VALID" * (dialect == "postgres")
        if dialect == "postgres":
            yield Validate(f"ALTER TABLE {quote(self.table)} VALIDATE CONSTRAINT {quote(constraint)}")

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        constraint = check_ddl(self.table, self.name, self.check, dialect)[0]
        return dialect == "sqlite" and constraint in have.checks.get(self.table, ())

    def obstacle(self, before: State, dialect: DialectName) -> Look | None:
        where = f"NOT {self.check.text(dialect)}"
        return f"{{}} rows of {self.table} do not fulfil {self.name}", count_of(self.table, where)


class drop_check(MigrationStep, frozen=True):
    """Drop a CHECK constraint."""

    table: str
    name: str

    def change(self, state: State) -> State:
        table = self.table_in(state, self.table)
        checks = {name: check for name, check in table.checks.items() if name != self.name}
        return state.put(self.table, table.put(checks=checks))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        yield f"ALTER TABLE {quote(self.table)} DROP CONSTRAINT {quote(self._constraint(before, dialect))}"

    def _constraint(self, before: State, dialect: DialectName) -> str:
        return check_ddl(self.table, self.name, before.tables[self.table].checks[self.name], dialect)[0]

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return self._constraint(before, dialect) not in have.checks.get(self.table, ())


class set_search(MigrationStep, frozen=True):
    """Make the index of a full-text search over these columns, in place of the one that is there; none: drop it."""

    table: str
    columns: tuple[str, ...]

    def change(self, state: State) -> State:
        return state.put(self.table, self.table_in(state, self.table).put(search=tuple(self.columns)))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        was = before.tables[self.table].search
        if was:
            index = SearchIndex.over(self.table, was, dialect)
            if index.name in have.searches:
                yield from index.drop(index.name)
        if self.columns:
            index = SearchIndex.over(self.table, self.columns, dialect)
            for statement in index.create():
                if dialect == "postgres" and statement.startswith("CREATE INDEX "):
                    yield Alone(statement.replace("INDEX", "INDEX CONCURRENTLY", 1), index.name)
                else:
                    yield statement

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        if self.columns:  # on PostgreSQL its name does not show whether it is complete
            name = SearchIndex.over(self.table, self.columns, dialect).name
            return dialect == "sqlite" and name in have.searches
        was = before.tables[self.table].search
        return not was or SearchIndex.over(self.table, was, dialect).name not in have.searches


class run(MigrationStep, frozen=True):
    """Change data by a function of the migration file: `async def function(db)`, with `db.rows` and `db.execute`."""

    function: Callable[[Any], Awaitable[None]]

    def change(self, state: State) -> State:
        return state

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        return iter(())
