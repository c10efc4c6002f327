"""Applies migrations to a SQLite file: a backup before, then one transaction, which ends as a whole or not at all.

SQLite's own ALTER TABLE is used where it can do it; else a table is made anew, with its rows, indexes, and the triggers
of its owner. Diptych's triggers are dropped first, and made at the end by what opens every database (`db/fitting.py`),
which also refuses the result if it does not fit the model. Foreign keys are off meanwhile, and checked at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from diptych.compile.catalogue import Catalogue
from diptych.compile.indexes import ExistingIndex
from diptych.compile.meaning import misfit
from diptych.compile.system.counters import CREATE_COUNTERS
from diptych.db.catalogue import sqlite_catalogue
from diptych.db.fitting import fit
from diptych.db.nodes import Node, nodes_of, recent_nodes
from diptych.db.sqlite.backup import back_up
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.placeholders import numbered
from diptych.db.sqlite.watchdog import Watchdog
from diptych.errors import StartError
from diptych.migrate import log
from diptych.migrate.ddl import create_table_ddl, index_ddl, our_triggers, quote, sql_list
from diptych.migrate.feed import in_audit_log, not_in_audit_log
from diptych.migrate.files import Loaded
from diptych.migrate.key_steps import run
from diptych.migrate.nodes import refuse_needed
from diptych.migrate.online import names_of_key, taken_names
from diptych.migrate.state import State
from diptych.migrate.step import Action, Backfill, Look, MigrationStep, Rebuild, count_of
from diptych.migrate.table_steps import add_column, alter_column, drop_table
from diptych.model.model import Model

Tell = Callable[[str], None]
_OURS = (
    "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'diptych\\_%' ESCAPE '\\' "
    "AND name NOT LIKE 'diptych\\_search\\_%' ESCAPE '\\'"
)


def read_log(path: str) -> list[log.Entry] | None:
    """The log of a file; None if it has none."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return _entries(db)
    finally:
        db.close()


def read_nodes(path: str) -> list[Node]:
    """The services that run."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return _nodes(db)
    finally:
        db.close()


def _nodes(db: apsw.Connection) -> list[Node]:
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'diptych_nodes'").fetchall():
        return []
    return nodes_of(db.execute(recent_nodes("sqlite")).fetchall())


def apply(
    path: str,
    model: Model,
    chain: Sequence[Loaded],
    tell: Tell,
    *,
    expand: bool = False,
    allow_loss: bool = False,
    ignore_nodes: bool = False,
) -> None:
    """Apply what is pending; a StartError leaves the file as it was."""
    dog = Watchdog()
    try:
        with closing(SqliteConnection(path, dog, write=True)) as connection:
            connection.db.execute("PRAGMA foreign_keys = OFF").fetchall()
            connection.db.execute("PRAGMA recursive_triggers = ON").fetchall()  # a trash may take rows along
            _Run(connection.db, path, model, chain, tell, allow_loss).apply(expand, ignore_nodes)
    except (apsw.Error, OSError) as error:
        cause = str(error).removeprefix(type(error).__name__ + ": ").rstrip(".")
        raise StartError(f"The migration failed, and nothing was changed: {cause}.") from None
    finally:
        dog.close()


def _entries(db: apsw.Connection) -> list[log.Entry] | None:
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'diptych_migrations'").fetchall():
        return None
    return [(name, digest, half, step) for name, digest, half, step in db.execute(log.READ)]


class _Run:
    def __init__(
        self, db: apsw.Connection, path: str, model: Model, chain: Sequence[Loaded], tell: Tell, allow_loss: bool
    ) -> None:
        self.db, self.path, self.model, self.chain, self.tell = db, path, model, chain, tell
        self.allow_loss = allow_loss

    def apply(self, expand: bool, ignore_nodes: bool) -> None:
        db = self.db
        left, _ = self._left(expand)
        if not ignore_nodes:
            refuse_needed(left, _nodes(db))
        if left and sqlite_catalogue(db).tables:  # which may all have other names in the model
            self._backup()
        db.execute("BEGIN IMMEDIATE")
        try:
            left, missing = self._left(expand)
            self._check_log(left)
            for statement in log.prepare(sqlite_catalogue(db), "sqlite"):
                db.execute(statement)
            for migration in missing:
                self._log(migration, *log.HALVES)
            if missing and sqlite_catalogue(db).is_new_to(self.model):
                self.tell(log.MADE)
            if left:
                for (name,) in db.execute(_OURS).fetchall():
                    db.execute(f'DROP TRIGGER "{name}"')
            for half in left:
                self._half(half)
            self._finish(left)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _left(self, expand: bool) -> tuple[list[log.Half], list[Loaded]]:
        """The halves that are not applied yet, and the migrations that the file has without a log."""
        entries, have = _entries(self.db), sqlite_catalogue(self.db)
        there: list[Loaded] = []
        if not entries and self.chain:
            if have.is_new_to(self.model):  # opening it makes all tables
                return [], [*self.chain]
            there = log.baseline(self.chain, have, "sqlite")
            entries = [(migration.name, migration.hash, half, log.WHOLE) for migration in there for half in log.HALVES]
        return log.pending(self.chain, entries or [], expand=expand), there

    def _backup(self) -> None:
        """Write a verified copy of the file, beside it."""
        file, number = Path(f"{self.path}.backup"), 1
        while file.exists():
            number += 1
            file = Path(f"{self.path}.backup{number}")
        back_up(self.path, file)
        self.tell(f"A backup of the database is {file}.")

    def _log(self, migration: Loaded, *halves: str) -> None:
        for half in halves:
            self.db.execute(log.INSERT.format("?1, ?2, ?3, ?4, ?5, ?6"), log.entry(migration, half, log.WHOLE))

    def _half(self, half: log.Half) -> None:
        for step, before in half.migration.steps(half.half):
            have = sqlite_catalogue(self.db)
            if isinstance(step, run):
                self._triggers(before, make=True)
                asyncio.run(_coroutine(step, Handle(self.db)))
                self._triggers(before, make=False)
            elif not step.is_done(have, before, "sqlite"):
                self._check(step, before)
                for action in [*step.actions(before, have, "sqlite")]:
                    self._do(action, before)
                self._check_values(step)
        self._log(half.migration, half.half)
        self.tell(f"{half.migration.name}: {half.half}ed.")

    def _check(self, step: MigrationStep, before: State) -> None:
        for look, word in ((step.obstacle(before, "sqlite"), ""), (step.loss(before, "sqlite"), "--allow-loss")):
            if look is not None and not (word and self.allow_loss):
                self._refuse(step, look, word)

    def _check_log(self, left: Sequence[log.Half]) -> None:
        """Refuse to drop a table before all its changes are in the audit log."""
        if self._has_audit_log():
            for step in dropped((step for half in left for step in half.steps), sqlite_catalogue(self.db)):
                self._refuse(step, not_in_audit_log(step.name), "")

    def _refuse(self, step: MigrationStep, look: Look, word: str) -> None:
        refuse(step, look[0], int(str(self.db.execute(look[1]).fetchall()[0][0])), word)

    def _has_audit_log(self) -> bool:
        return bool(self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'diptych_audit'").fetchall())

    def _check_values(self, step: MigrationStep) -> None:
        """Refuse values of an expression that the column cannot have: SQLite keeps anything anywhere."""
        if not isinstance(step, add_column | alter_column) or not (step.fill or getattr(step, "using", "")):
            return
        odd = misfit(step.column, step.name, "sqlite")
        if odd:
            sentence = f"{{}} rows of {step.table} would have a value in {step.name} that is not {step.column}"
            refuse(step, sentence, int(str(self.db.execute(count_of(step.table, odd)).fetchall()[0][0])), "")

    def _do(self, action: Action, before: State) -> None:
        match action:
            case Rebuild():
                self._rebuild(action)
            case Backfill(table, name, expression):
                self._triggers(before, make=True)
                column = quote(name)
                self.db.execute(f"UPDATE {quote(table)} SET {column} = {expression} WHERE {column} IS NULL")
                self._triggers(before, make=False)
            case str():
                self.db.execute(action)
                if self._has_audit_log():
                    for statement in in_audit_log(action, "sqlite"):
                        self.db.execute(statement)

    def _triggers(self, state: State, *, make: bool) -> None:
        """Make, or drop, our triggers, for statements that change rows."""
        self.db.execute(CREATE_COUNTERS["sqlite"])
        for part in our_triggers(state, "sqlite"):
            for statement in part.create if part.text and make else ():
                self.db.execute(statement)
            if part.text and not make:
                self.db.execute(f'DROP TRIGGER "{part.name}"')

    def _rebuild(self, action: Rebuild) -> None:
        table, before, after, values = action
        db, new = self.db, f"diptych_new_{table}"
        have = sqlite_catalogue(db)
        more = [name for name in have.tables[table] if name not in before.columns]
        if more:
            raise StartError(f"The table {table} has columns that no migration knows: {', '.join(more)}. Drop them.")
        kept: list[Any] = db.execute(_BESIDE, (table,)).fetchall()
        copied = [name for name in after.columns if name in values or name in before.columns]
        shown = ", ".join(values.get(name) or quote(name) for name in copied)
        db.execute(create_table_ddl(table, after, "sqlite").replace(quote(table), quote(new), 1))
        db.execute(f"INSERT INTO {quote(new)} ({sql_list(copied)}) SELECT {shown} FROM {quote(table)}")
        if after.columns["id"].type == "IntegerID":
            for statement in _SEQUENCE:  # an id that was used never comes back
                db.execute(statement, {"new": new, "old": table})
        db.execute("PRAGMA legacy_alter_table = ON").fetchall()  # views and triggers of the owner are left as they are
        db.execute(f"DROP TABLE {quote(table)}")
        db.execute(f"ALTER TABLE {quote(new)} RENAME TO {quote(table)}")
        db.execute("PRAGMA legacy_alter_table = OFF").fetchall()
        made: list[ExistingIndex] = [*sqlite_catalogue(db).indexes]
        columns = {index.name: (index.columns, index.unique) for index in have.indexes}
        there = {(index.columns, index.unique) for index in made if index.table == table}
        for kind, name, sql in kept:
            if kind != "index" or columns[name] not in there or not columns[name][0]:
                db.execute(sql)
        have = sqlite_catalogue(db)
        for key in after.keys:
            if key.unique and not names_of_key(table, key, have, "sqlite"):
                db.execute(index_ddl(table, key, "sqlite", taken_names(have)))

    def _finish(self, left: Sequence[log.Half]) -> None:
        db = self.db
        if left:
            last = left[-1]
            state = last.migration.between if last.half == "expand" else last.migration.state
            is_recorded = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'diptych_schema'").fetchall()
            for sql, values in log.record(left[0].migration.before, state) if is_recorded else ():
                db.execute(sql.format(", ".join("?" * len(values))), values)
        parts = dict(db.execute("SELECT name, sql FROM sqlite_schema"))
        fitting = fit(self.model, sqlite_catalogue(db), parts, "sqlite")
        rows: Any = None
        try:
            while True:
                step = fitting.send(rows)
                rows = db.execute(step.sql, step.parameters).fetchall()
        except StopIteration as end:
            for sentence in end.value.done:
                self.tell(sentence)
        wrong = db.execute("PRAGMA foreign_key_check").fetchall()
        if wrong:
            raise StartError(f"Rows of {wrong[0][0]} would refer to rows of {wrong[0][2]} that are not there.")


_BESIDE = "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name = ? AND type <> 'table' AND sql IS NOT NULL"
"""The indexes and triggers of a table."""
_SEQUENCE = (
    "DELETE FROM sqlite_sequence WHERE name = :new",
    "INSERT INTO sqlite_sequence (name, seq) SELECT :new, seq FROM sqlite_sequence WHERE name = :old",
)


class Handle:
    """The database, as the function of a data step sees it: `$1` for values, in the transaction of the migration."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return [tuple(row) for row in self._db.execute(numbered(sql), values or None).fetchall()]

    async def execute(self, sql: str, *values: Any) -> None:
        """Run a statement."""
        self._db.execute(numbered(sql), values or None).fetchall()


async def _coroutine(step: run, handle: Handle) -> None:
    await step.function(handle)


def dropped(steps: Iterable[MigrationStep], have: Catalogue) -> list[drop_table]:
    """The steps that drop a table that is there."""
    return [step for step in steps if isinstance(step, drop_table) and step.name in have.tables]


def refuse(step: MigrationStep, sentence: str, count: int, word: str) -> None:
    """Raise if rows are in the way, or would be lost without the word that allows it."""
    if not count:
        return
    name = type(step).__name__
    if word:
        raise StartError(f"{name} {sentence.format(count)}. If that is meant, run it again with {word}.")
    raise StartError(f"{name}: {sentence.format(count)}.")
