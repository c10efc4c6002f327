"""Steps that change tables and columns."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from diptych.compile.catalogue import Catalogue
from diptych.compile.meaning import TRASH, misfit
from diptych.compile.system.object import DialectName
from diptych.compile.system.searching import SearchIndex
from diptych.errors import StartError
from diptych.migrate import feed
from diptych.migrate.ddl import column_ddl, create_table_ddl, default_ddl, index_ddls, quote
from diptych.migrate.hooks import drop_hooks, rename_hooks
from diptych.migrate.numbering import add_counter, count_on, forget_counter, rename_counter, row_numbers
from diptych.migrate.online import (
    add_reference,
    alter_on_postgres,
    drop_fill,
    fill_nulls,
    follow_rename,
    free_column,
    free_references,
    relax_null,
    set_not_null,
    taken_names,
)
from diptych.migrate.state import Column, State, Table, referring
from diptych.migrate.step import Action, Backfill, Look, MigrationStep, Rebuild, Stored, count_of, of_dialect, unfit


class create_table(MigrationStep, frozen=True):
    """Make a table, with all that belongs to it."""

    name: str
    table: Table

    def change(self, state: State) -> State:
        if self.name in state.tables:
            raise StartError(f"create_table: there is a table {self.name} already.")
        return state.put(self.name, self.table)

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        if "diptych_feed" in have.system_tables:  # it reads all of it: before foreign keys lock what they refer to
            yield from feed.set_aside(self.name, dialect)
        yield create_table_ddl(self.name, self.table, dialect)
        yield from index_ddls(self.name, self.table, dialect, taken_names(have))
        if dialect == "postgres":
            yield from self._references(before, have)
        if self.table.search:
            yield from SearchIndex.over(self.name, self.table.search, dialect).create()
        for name, column in self.table.columns.items():
            if column.generated.startswith("counter"):
                yield from forget_counter(f"{self.name}.{name}", dialect)

    def _references(self, before: State, have: Catalogue) -> Iterator[Action]:
        """The foreign keys of the new table to tables that exist, and theirs to it."""
        for name, column in self.table.columns.items():
            if column.target in before.tables or column.target == self.name:
                yield from _at_once(add_reference(self.name, name, column, have))
        for other, table in before.tables.items():
            for name, column in table.columns.items():
                if column.target == self.name:
                    yield from _at_once(add_reference(other, name, column, have))

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return self.name in have.tables


def _at_once(actions: Iterator[Action]) -> Iterator[Action]:
    """A foreign key of or to a table without rows: nothing has to be validated later."""
    return (action.removesuffix(" NOT VALID") for action in actions if isinstance(action, str))


class drop_table(MigrationStep, frozen=True):
    """Drop a table with its rows, and the webhooks that are rows of it."""

    name: str

    def change(self, state: State) -> State:
        self.table_in(state, self.name)
        return state.put(self.name, None)

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        table = before.tables[self.name]
        if table.search and dialect == "sqlite":
            index = SearchIndex.over(self.name, table.search, dialect)
            yield from index.drop(index.name)
        for reference in have.references:
            if dialect == "postgres" and reference.target == self.name != reference.table:
                yield f'ALTER TABLE {quote(reference.table)} DROP CONSTRAINT "{reference.name}"'
        yield f"DROP TABLE {quote(self.name)}"
        yield from drop_hooks(self.name, table, have)

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return self.name not in have.tables

    @property
    def loses(self) -> bool:
        return True

    def loss(self, before: State, dialect: DialectName) -> Look | None:
        return f"drops the table {self.name} with {{}} rows", count_of(self.name)


class rename_table(MigrationStep, frozen=True):
    """Give a table another name. Its stored changes, the columns that refer to it, and its webhooks follow."""

    old: str
    new: str

    def change(self, state: State) -> State:
        renamed = state.put(self.new, self.table_in(state, self.old), self.old)
        for name, table in renamed.tables.items():
            if any(column.target == self.old for column in table.columns.values()):
                columns = {
                    column_name: msgspec.structs.replace(column, target=self.new)
                    if column.target == self.old
                    else column
                    for column_name, column in table.columns.items()
                }
                renamed = renamed.put(name, table.put(columns=columns))
        return renamed

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        yield f"ALTER TABLE {quote(self.old)} RENAME TO {quote(self.new)}"
        yield from feed.rename_resource(self.old, self.new, dialect)
        yield from rename_hooks(self.old, self.new, before.tables[self.old], have)
        if dialect == "postgres":
            yield from follow_rename(self.new)
        for name, column in before.tables[self.old].columns.items():
            if column.generated.startswith("counter"):
                yield from rename_counter(f"{self.old}.{name}", f"{self.new}.{name}", dialect)

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return self.new in have.tables and self.old not in have.tables

    @property
    def stops(self) -> bool:
        return True


class add_column(MigrationStep, frozen=True):
    """Add a column. `fill` is an SQL expression for the rows that are there, or one for each store."""

    table: str
    name: str
    column: Column
    fill: str | dict[str, str] = ""

    def change(self, state: State) -> State:
        table = self.table_in(state, self.table)
        if self.name in table.columns:
            raise StartError(f"add_column: the table {self.table} has a column {self.name} already.")
        return state.put(self.table, table.put(columns={**table.columns, self.name: self.column}))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        table, name, column, fill = self.table, self.name, self.column, of_dialect(self.fill, dialect)
        open_ = msgspec.structs.replace(column, nullable=True) if fill else column
        there = have.tables.get(table, {}).get(name)
        is_counter = column.generated.startswith("counter")
        if there is None and "diptych_feed" in have.system_tables:
            yield feed.remove_key(table, name, dialect)
        if dialect == "sqlite":
            yield from self._on_sqlite(before, fill, is_counter)
            return
        is_complete = there is not None and there.nullable == column.nullable
        if is_counter and not is_complete:
            yield from add_counter(table, name, column, there=there is not None)
            yield from set_not_null(table, name)
        elif there is None:
            yield from _opened(table, name, open_, dialect, filled=bool(fill))
            if self._needs_trigger(fill):
                yield from fill_nulls(table, name, fill)
        yield from add_reference(table, name, column, have)
        if fill and not is_complete:
            yield Backfill(table, name, fill)
            if not column.nullable:
                yield from set_not_null(table, name)
        stored = self._stored(before, fill, dialect, missing=True)
        if stored:
            yield Stored(stored)

    def _on_sqlite(self, before: State, fill: str, is_counter: bool) -> Iterator[Action]:
        table, name, column = self.table, self.name, self.column
        stored = self._stored(before, fill, "sqlite", missing=False)
        if stored and not is_counter:
            yield stored
        if is_counter or fill or not (column.nullable or column.default is not None):
            value = row_numbers(column) if is_counter else fill or default_ddl(name, column, "sqlite")
            yield from forget_counter(f"{table}.{name}", "sqlite") if is_counter else ()
            yield Rebuild(table, before.tables[table], self.change(before).tables[table], {name: value or "NULL"})
        else:
            yield from _opened(table, name, column, "sqlite", filled=False)
        if stored and is_counter:  # its numbers are in the rows now
            yield stored

    def _stored(self, before: State, fill: str, dialect: DialectName, *, missing: bool) -> str:
        """The statement that gives stored changes a value which must not be null; "" if they need none."""
        table, name, column = self.table, self.name, self.column
        if column.nullable:
            return ""
        value = fill
        if not fill and column.generated in ("now", "today"):
            value = default_ddl(name, column, dialect)
            value = feed.value_of_row(table, name, value) if missing else value
        elif not fill and column.generated.startswith("counter"):
            value = feed.value_of_row(table, name, "0")
        if value:
            return feed.compute_key(name, table, before.tables[table], column, value, dialect, missing=missing)
        return "" if column.default is None else feed.fill_key(table, name, column, column.default, dialect)

    def _needs_trigger(self, fill: object) -> bool:
        """Would a service with the model before write rows without a value?"""
        column = self.column
        return bool(fill) and not column.nullable and column.default is None and not column.generated

    def leftovers(self) -> Iterator[str]:
        if self._needs_trigger(self.fill):
            yield drop_fill(self.table, self.name)

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        there = have.tables.get(self.table, {}).get(self.name)
        if dialect == "postgres" and (self.column.target or not self.column.nullable):
            return False  # its foreign key may not be valid yet, and stored changes may lack a value
        return there is not None and there.nullable == self.column.nullable

    def obstacle(self, before: State, dialect: DialectName) -> Look | None:
        column = self.column
        if self.fill:
            return unfit(self.table, self.name, column, of_dialect(self.fill, dialect))
        if column.nullable or column.default is not None or column.generated:
            return None
        return f"the {{}} rows of {self.table} would have no {self.name}", count_of(self.table)


def _opened(table: str, name: str, column: Column, dialect: DialectName, *, filled: bool) -> Iterator[str]:
    """A new column. One that is filled gets its default afterwards: rows that are there would have it at once."""
    default = default_ddl(name, column, dialect) if filled else ""
    bare = msgspec.structs.replace(column, default=None, generated="") if default else column
    yield f"ALTER TABLE {quote(table)} ADD COLUMN {column_ddl(name, bare, dialect)}"
    if default:
        yield f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(name)} SET DEFAULT {default}"


class drop_column(MigrationStep, frozen=True):
    """Drop a column with its values."""

    table: str
    name: str

    def change(self, state: State) -> State:
        table = self.with_column(state, self.table, self.name)
        columns = {name: column for name, column in table.columns.items() if name != self.name}
        return state.put(self.table, table.put(columns=columns))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        column = before.tables[self.table].columns[self.name]
        if dialect == "sqlite" and column.target:  # it drops no column with a foreign key
            after = self.change(before).tables[self.table]
            yield Rebuild(self.table, before.tables[self.table], after, {})
        else:
            if dialect == "postgres":
                yield free_column(self.table, self.name)
                if column.generated == TRASH:
                    yield from map(free_references, referring(before, self.table))
            yield f"ALTER TABLE {quote(self.table)} DROP COLUMN {quote(self.name)}"

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return self.name not in have.tables.get(self.table, {})

    def obstacle(self, before: State, dialect: DialectName) -> Look | None:
        if before.tables[self.table].columns[self.name].generated != TRASH:
            return None
        there = count_of(self.table, f"{quote(self.name)} IS NOT NULL")
        return f"{{}} rows of {self.table} are in the trash: delete them for good, or restore them", there

    @property
    def loses(self) -> bool:
        return True

    def loss(self, before: State, dialect: DialectName) -> Look | None:
        return f"drops {self.table}.{self.name} with its {{}} values", count_of(
            self.table, f"{quote(self.name)} IS NOT NULL"
        )


class rename_column(MigrationStep, frozen=True):
    """Give a column another name, in stored changes too."""

    table: str
    old: str
    new: str

    def change(self, state: State) -> State:
        table = self.with_column(state, self.table, self.old)
        columns = {self.new if name == self.old else name: column for name, column in table.columns.items()}
        names = {self.old: self.new}
        keys = tuple(
            msgspec.structs.replace(key, columns=tuple(names.get(old, old) for old in key.columns))
            for key in table.keys
        )
        return state.put(self.table, table.put(columns=columns, keys=keys))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        yield feed.remove_key(self.table, self.new, dialect)
        if dialect == "postgres":
            yield free_column(self.table, self.old)
        yield f"ALTER TABLE {quote(self.table)} RENAME COLUMN {quote(self.old)} TO {quote(self.new)}"
        yield feed.rename_key(self.table, self.old, self.new, dialect)
        if before.tables[self.table].columns[self.old].generated.startswith("counter"):
            yield from rename_counter(f"{self.table}.{self.old}", f"{self.table}.{self.new}", dialect)

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        there = have.tables.get(self.table, {})
        return self.new in there and self.old not in there

    @property
    def stops(self) -> bool:
        return True


class alter_column(MigrationStep, frozen=True):
    """Change a column. `fill` is an expression for rows that have null, `using` one that converts each value."""

    table: str
    name: str
    column: Column
    fill: str | dict[str, str] = ""
    using: str | dict[str, str] = ""

    def change(self, state: State) -> State:
        table = self.with_column(state, self.table, self.name)
        was, now = table.columns[self.name], self.column
        if self.using and (self.fill or was.nullable > now.nullable or was.target != now.target):
            raise StartError(f"alter_column {self.table}.{self.name}: `using` is for a step of its own.")
        return state.put(self.table, table.put(columns={**table.columns, self.name: self.column}))

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        table, name, now = before.tables[self.table], self.name, self.column
        was = table.columns[name]
        fill, using = of_dialect(self.fill, dialect), of_dialect(self.using, dialect)
        if using and dialect == "postgres":
            yield f"LOCK TABLE {quote(self.table)}"  # a change between the two would be stored as before
        if using:
            yield feed.compute_key(name, self.table, table, now, using, dialect)
        if fill and dialect == "postgres":
            yield from fill_nulls(self.table, name, fill)
        if fill:
            yield Backfill(self.table, name, fill)
        if fill and dialect == "sqlite":
            yield feed.compute_key(name, self.table, table, now, f"coalesce({quote(name)}, {fill})", dialect)
        if dialect == "sqlite":
            null = msgspec.structs.replace(was, nullable=now.nullable)
            if column_ddl(name, null, dialect) == column_ddl(name, now, dialect) and not using:
                if was.nullable != now.nullable:
                    yield relax_null(self.table, name, nullable=now.nullable)
            else:
                after = self.change(before).tables[self.table]
                yield Rebuild(self.table, table, after, {name: using} if using else {})
            return
        yield from alter_on_postgres(self.table, name, was, now, using, have, count_on(self.table, table, name))
        if fill:
            yield Stored(feed.compute_key(name, self.table, table, now, fill, dialect, missing=True))

    def leftovers(self) -> Iterator[str]:
        if self.fill:
            yield drop_fill(self.table, self.name)

    def is_done(self, have: Catalogue, before: State, dialect: DialectName) -> bool:
        return False  # each of its statements leaves things as they are if they are so already

    def obstacle(self, before: State, dialect: DialectName) -> Look | None:
        was, now, name = before.tables[self.table].columns[self.name], self.column, quote(self.name)
        if was.nullable and not now.nullable and not self.fill:
            return f"{{}} rows of {self.table} have no {self.name}", count_of(self.table, f"{name} IS NULL")
        if self.using:
            return unfit(self.table, self.name, now, of_dialect(self.using, dialect))
        if self.fill:
            value, where = f"coalesce({name}, {of_dialect(self.fill, dialect)})", f"{name} IS NULL"
            return unfit(self.table, self.name, now, value, where if was.kind == now.kind else "")
        odd = misfit(now, self.name, dialect)
        if was.kind != now.kind and odd:
            sentence = f"{{}} rows of {self.table} have a value in {self.name} that is not {now}"
            return sentence, count_of(self.table, odd)
        return None

    def loss(self, before: State, dialect: DialectName) -> Look | None:
        was, now, name = before.tables[self.table].columns[self.name], self.column, quote(self.name)
        if not was.type == now.type == "Decimal" or now.scale >= was.scale:
            return None
        cut = f"{name} % {10 ** (was.scale - now.scale)} <> 0" if dialect == "sqlite" else ""
        cut = cut or f"{name} <> round({name}, {now.scale})"
        return f"rounds {{}} values of {self.table}.{self.name} to {now}", count_of(self.table, cut)

    @property
    def stops(self) -> bool:
        return bool(self.using)
