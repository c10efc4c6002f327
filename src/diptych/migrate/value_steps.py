"""The step that changes the members of a value object in every row, and in stored changes.

alter_value("people", "address", column("{city:String;postcode:String}"), renames={"zip": "postcode"})
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from diptych.compile.catalogue import Catalogue
from diptych.compile.system.object import DialectName
from diptych.migrate.ddl import quote
from diptych.migrate.state import Column, State
from diptych.migrate.step import Action, Look, MigrationStep, count_of
from diptych.migrate.table_steps import alter_column


class alter_value(MigrationStep, frozen=True):
    """Rename, drop and fill members of a value object. A fill is for values that have no such member, or null."""

    table: str
    name: str
    column: Column
    renames: dict[str, str] = msgspec.field(default_factory=dict)
    drops: tuple[str, ...] = ()
    fills: dict[str, Any] = msgspec.field(default_factory=dict)

    def change(self, state: State) -> State:
        return self._altered().change(state)

    def actions(self, before: State, have: Catalogue, dialect: DialectName) -> Iterator[Action]:
        return self._altered().actions(before, have, dialect)

    def loss(self, before: State, dialect: DialectName) -> Look | None:
        if not self.drops:
            return None
        members = [f"{quote(self.name)} ->> '{member}' IS NOT NULL" for member in self.drops]
        sentence = f"drops {', '.join(self.drops)} of {{}} values of {self.table}.{self.name}"
        return sentence, count_of(self.table, " OR ".join(members))

    @property
    def loses(self) -> bool:
        return bool(self.drops)

    @property
    def stops(self) -> bool:
        return True

    def _altered(self) -> alter_column:
        using = {"sqlite": self._on_sqlite(), "postgres": self._on_postgres()}
        return alter_column(self.table, self.name, self.column, using=using)

    def _names(self, member: str) -> list[str]:
        """The names under which a value may have a member: the one before its rename first."""
        return [*(old for old, new in self.renames.items() if new == member), member]

    def _on_sqlite(self) -> str:
        value = quote(self.name)
        gone = ", ".join(f"'$.{member}'" for member in (*self.renames, *self.drops))
        pairs = [
            f"'$.{new}', json(CASE WHEN json_type({value}, '$.{old}') IS NULL THEN {value} -> '$.{new}' "
            f"ELSE {value} -> '$.{old}' END)"
            for old, new in self.renames.items()
            if new not in self.fills
        ]
        for member, fill in self.fills.items():
            held = " ".join(
                f"WHEN {value} ->> '$.{name}' IS NOT NULL THEN {value} -> '$.{name}'" for name in self._names(member)
            )
            pairs.append(f"'$.{member}', json(CASE {held} ELSE {_literal(fill)} END)")
        left = f"json_remove({value}, {gone})" if gone else value
        changed = f"json_set({left}, {', '.join(pairs)})" if pairs else left
        return f"CASE WHEN {value} IS NOT NULL THEN {changed} END"

    def _on_postgres(self) -> str:
        value = quote(self.name)
        gone = ", ".join(f"'{member}'" for member in (*self.renames, *self.drops))
        pairs = [
            f"'{new}', coalesce({value} -> '{old}', {value} -> '{new}')"
            for old, new in self.renames.items()
            if new not in self.fills
        ]
        for member, fill in self.fills.items():
            held = " ".join(
                f"WHEN {value} ->> '{name}' IS NOT NULL THEN {value} -> '{name}'" for name in self._names(member)
            )
            pairs.append(f"'{member}', CASE {held} ELSE {_literal(fill)}::jsonb END")
        left = f"{value} - ARRAY[{gone}]" if gone else value
        return f"({left}) || jsonb_build_object({', '.join(pairs)})" if pairs else left


def _literal(value: Any) -> str:
    """A JSON value as a string literal of SQL."""
    return "'" + json.dumps(value, ensure_ascii=False).replace("'", "''") + "'"
