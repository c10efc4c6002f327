"""Two states → the steps between them, and what has to be asked first.

A rename is never guessed: where a table or column is gone and another is new, that is a question. So is the value of a
new column that must not be null, for the rows that are there, and how values get another type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from diptych.compile.meaning import compatibility
from diptych.errors import StartError
from diptych.migrate.ddl import quote, value_ddl
from diptych.migrate.key_steps import add_check, add_key, drop_check, drop_key, set_search
from diptych.migrate.state import COUNTER, Column, State, Table
from diptych.migrate.step import MigrationStep
from diptych.migrate.table_steps import (
    add_column,
    alter_column,
    create_table,
    drop_column,
    drop_table,
    rename_column,
    rename_table,
)
from diptych.migrate.value_diff import Members, ValueDiff
from diptych.migrate.value_steps import alter_value


class Answers(Struct):
    """What the owner has said: `posts.title` was renamed to `headline`, `posts.note` is gone, and so on."""

    renames: dict[str, str] = field(default_factory=dict)
    drops: set[str] = field(default_factory=set)
    fills: dict[str, str] = field(default_factory=dict)
    """For each column a JSON value, or `=` and an SQL expression, for the rows that are there."""
    usings: dict[str, str] = field(default_factory=dict)
    """For each column the SQL expression that converts its values."""


class MigrationQuestion(Struct, frozen=True):
    """What has to be known first: the name that an answer is about, and the sentence."""

    kind: str
    name: str
    sentence: str
    candidates: tuple[str, ...] = ()


class ModelDiff(Struct):
    """The steps between two states, or the questions that come first."""

    expand: list[MigrationStep] = field(default_factory=list)
    contract: list[MigrationStep] = field(default_factory=list)
    questions: list[MigrationQuestion] = field(default_factory=list)


def difference(old: State, new: State, answers: Answers) -> ModelDiff:
    """The steps from one state to another."""
    finder = _Finder(old, new, answers)
    finder.find()
    if not finder.diff.questions:
        reached = finder.state
        for step in finder.diff.contract:
            reached = step.change(reached)
        if reached.hash != new.hash:
            raise StartError("These changes of the model cannot be made a migration; please report the two models.")
    return finder.diff


class _Finder:
    def __init__(self, old: State, new: State, answers: Answers) -> None:
        self.state, self.new, self.answers = old, new, answers
        self.diff = ModelDiff()

    def find(self) -> None:
        self._rename_tables()
        kept = [name for name in self.new.tables if name in self.state.tables]
        for name in kept:
            self._rename_columns(name)
        if self.diff.questions:
            return
        for name in kept:
            self._remove(name)
        for name, table in self.new.tables.items():
            if name not in self.state.tables:
                self._do(create_table(name, table))
        for name in kept:
            self._columns(name)
        for name in kept:
            self._complete(name)
        for name in kept:
            for gone in [
                column for column in self.state.tables[name].columns if column not in self.new.tables[name].columns
            ]:
                self.diff.contract.append(drop_column(name, gone))
        self.diff.contract += [drop_table(name) for name in self.state.tables if name not in self.new.tables]

    def _do(self, step: MigrationStep) -> None:
        self.diff.expand.append(step)
        self.state = step.change(self.state)

    def _ask(self, kind: str, name: str, sentence: str, *candidates: str) -> None:
        self.diff.questions.append(MigrationQuestion(kind, name, sentence, candidates))

    # names

    def _rename_tables(self) -> None:
        fresh = [name for name in self.new.tables if name not in self.state.tables]
        for gone in [name for name in self.state.tables if name not in self.new.tables]:
            renamed = self.answers.renames.get(gone)
            if renamed is not None:
                if renamed not in fresh:
                    raise StartError(f"--rename {gone}={renamed}: the model has no new table {renamed}.")
                self._open(gone)
                self._do(rename_table(gone, renamed))
            elif fresh and gone not in self.answers.drops:
                new = ", ".join(fresh)
                self._ask("rename", gone, f"the table {gone} is gone, and {new} is new: was it renamed?", *fresh)

    def _rename_columns(self, table: str) -> None:
        new = self.new.tables[table]
        was = next((old for old, name in self.answers.renames.items() if name == table), table)
        fresh = [name for name in new.columns if name not in self.state.tables[table].columns]
        for gone in [name for name in self.state.tables[table].columns if name not in new.columns]:
            said = {self.answers.renames.get(f"{owner}.{gone}") for owner in (table, was)} - {None}
            column = self.state.tables[table].columns[gone]
            alike = [name for name in fresh if new.columns[name].kind == column.kind]
            if said:
                renamed = str(said.pop()).rpartition(".")[2]
                if renamed not in fresh:
                    raise StartError(f"--rename {table}.{gone}={renamed}: the model has no new column {renamed} there.")
                self._open(table)
                self._do(rename_column(table, gone, renamed))
                fresh.remove(renamed)
            elif alike and f"{table}.{gone}" not in self.answers.drops:
                sentence = f"{table}.{gone} is gone, and {', '.join(alike)} is new: was it renamed?"
                self._ask("rename", f"{table}.{gone}", sentence, *alike)

    def _open(self, table: str) -> None:
        """Take away what names a table or column that gets another name; it is made anew afterwards."""
        there = self.state.tables[table]
        if there.search:
            self._do(set_search(table, ()))
        for name in there.checks:
            self._do(drop_check(table, name))
        for key in there.keys:
            if key.sqlite:
                self._do(drop_key(table, key))

    # tables that stay

    def _remove(self, table: str) -> None:
        old, new = self.state.tables[table], self.new.tables[table]
        if old.search and old.search != new.search:
            self._do(set_search(table, ()))
        for name, check in old.checks.items():
            if new.checks.get(name) != check:
                self._do(drop_check(table, name))
        for key in old.keys:
            if key not in new.keys:
                self._do(drop_key(table, key))

    def _columns(self, table: str) -> None:
        old, new = self.state.tables[table], self.new.tables[table]
        for name, column in new.columns.items():
            if name not in old.columns:
                self._add(table, name, column)
            elif old.columns[name] != column:
                self._alter(table, name, old.columns[name], column)
        for name, column in old.columns.items():
            is_counter = column.generated.startswith(COUNTER)  # what the model does not have is not counted for it
            filled = column.default is not None or (column.generated and not is_counter)
            if name not in new.columns and not (column.nullable or filled):
                self._do(alter_column(table, name, msgspec.structs.replace(column, nullable=True)))

    def _add(self, table: str, name: str, column: Column) -> None:
        said = self.answers.fills.get(f"{table}.{name}")
        if said is None or column.nullable:
            if not (column.nullable or column.default is not None or column.generated):
                sentence = f"{table}.{name} is new and must not be null: what do the rows that are there get?"
                self._ask("fill", f"{table}.{name}", sentence)
            self._do(add_column(table, name, column))
        elif said.startswith("="):
            self._do(add_column(table, name, column, fill=said[1:].strip()))
        else:
            value = _value(table, name, column, said)
            self._do(add_column(table, name, msgspec.structs.replace(column, default=value)))
            self.diff.contract.append(alter_column(table, name, column))

    def _alter(self, table: str, name: str, was: Column, now: Column) -> None:
        if name == "id":
            raise StartError(f"The ids of {table} change from {was.type} to {now.type}; that is not migrated.")
        fill = self.answers.fills.get(f"{table}.{name}", "") if was.nullable and not now.nullable else ""
        filled: str | dict[str, str] = fill[1:].strip()
        if fill and not fill.startswith("="):
            value = _value(table, name, now, fill)
            filled = {"sqlite": value_ddl(now, value, "sqlite"), "postgres": value_ddl(now, value, "postgres")}
        using: str | dict[str, str] = self.answers.usings.get(f"{table}.{name}", "")
        if not using and was.kind != now.kind:
            if was.type == now.type == "Decimal":
                using = _rescaled(name, was, now)
            elif was.type[:1] == now.type[:1] == "{" and self._alter_value(table, name, was, now):
                pass
            elif "other" in (compatibility(was, now, "sqlite"), compatibility(was, now, "postgres")):
                sentence = f"{table}.{name} was {was} and is {now}: how is a value converted?"
                self._ask("using", f"{table}.{name}", sentence)
        if using:
            kept = {member: getattr(was, member) for member in ("target", "on_delete", "nullable")}
            self._do(alter_column(table, name, msgspec.structs.replace(now, **kept), using=using))
        if self.state.tables[table].columns[name] != now:
            self._do(alter_column(table, name, now, fill=filled))

    def _alter_value(self, table: str, name: str, was: Column, now: Column) -> bool:
        """Change the members of a value object; False if only the owner can say how."""
        members = ValueDiff(f"{table}.{name}", was.type, now.type, self.answers, self._ask).find()
        if members is None:
            return False
        if members != Members():
            column = msgspec.structs.replace(now, nullable=was.nullable)
            self._do(alter_value(table, name, column, members.renames, tuple(members.drops), members.fills))
        return True

    def _complete(self, table: str) -> None:
        for step in _missing(table, self.state.tables[table], self.new.tables[table]):
            self._do(step)


def _missing(table: str, old: Table, new: Table) -> Iterator[MigrationStep]:
    for key in new.keys:
        if key not in old.keys:
            yield add_key(table, key)
    for name, check in new.checks.items():
        if name not in old.checks:
            yield add_check(table, name, check)
    if new.search != old.search:
        yield set_search(table, new.search)


def _value(table: str, name: str, column: Column, text: str) -> Any:
    try:
        value = json.loads(text)
        value_ddl(column, value, "sqlite")
    except ValueError as error:
        hint = "write a JSON value, or = and an SQL expression"
        raise StartError(f"--fill {table}.{name}={text}: {error}; {hint}.") from None
    return value


def _rescaled(name: str, was: Column, now: Column) -> str | dict[str, str]:
    """How a decimal gets another scale: SQLite has it as a whole number, PostgreSQL converts."""
    column = quote(name)
    if was.scale == now.scale:
        return ""
    if now.scale > was.scale:
        return {"sqlite": f"{column} * {10 ** (now.scale - was.scale)}", "postgres": column}
    factor = 10 ** (was.scale - now.scale)
    half = f"CASE WHEN {column} < 0 THEN -{factor // 2} ELSE {factor // 2} END"  # round() has no more than 53 bits
    return {"sqlite": f"({column} + {half}) / {factor}", "postgres": column}
