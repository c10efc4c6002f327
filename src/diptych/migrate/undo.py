"""Takes back the first half of the last migration, while its second half is not applied (PostgreSQL).

Each step has its inverse, and they run in the opposite order. While they run, the log has an entry `undo` in place of
those of the half: a run that was interrupted is finished by `undo`, or by `apply`, which then does the steps again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diptych.errors import StartError
from diptych.migrate.files import Loaded
from diptych.migrate.key_steps import add_check, add_key, drop_check, drop_key, set_search
from diptych.migrate.log import WHOLE, Entry
from diptych.migrate.state import State
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

UNDO = "undo"
"""The half of an entry that says that undoing has begun."""
BEGIN = "DELETE FROM diptych_migrations WHERE name = $1 AND half = 'expand'"
END = "DELETE FROM diptych_migrations WHERE name = $1 AND half = 'undo'"


def undone(chain: Sequence[Loaded], entries: Sequence[Entry]) -> Loaded:
    """The migration whose first half can be taken back; raises if there is none."""
    begun = {name for name, _, half, _ in entries if half in ("expand", UNDO)}
    ended = {name for name, _, half, step in entries if (half, step) == ("contract", WHOLE)}
    contracted = {name for name, _, half, _ in entries if half == "contract"}
    for loaded in reversed(chain):
        if loaded.name in ended:
            break
        if loaded.name in contracted:
            raise StartError(f"{loaded.name} is contracted in part; finish it by `diptych migrate apply`.")
        if loaded.name in begun:
            return loaded
    raise StartError(
        "There is nothing to undo: no migration is expanded and not contracted. What is contracted comes back from a "
        "backup, or by a new migration."
    )


def inverses(migration: Loaded) -> list[tuple[MigrationStep, State]]:
    """The steps that take a first half back, each with the state before it."""
    return [
        (_inverse(migration.name, step, before), step.change(before))
        for step, before in reversed(migration.steps("expand"))
    ]


def _inverse(migration: str, step: MigrationStep, before: State) -> MigrationStep:
    given: Any = step
    match step:
        case create_table(name, _):
            return drop_table(name)
        case add_column(table, name):
            return drop_column(table, name)
        case rename_table(old, new):
            return rename_table(new, old)
        case rename_column(table, old, new):
            return rename_column(table, new, old)
        case add_key(table, key):
            return drop_key(table, key)
        case drop_key(table, key):
            return add_key(table, key)
        case add_check(table, name, _):
            return drop_check(table, name)
        case drop_check(table, name):
            return add_check(table, name, before.tables[table].checks[name])
        case set_search(table, _):
            return set_search(table, before.tables[table].search)
        case alter_column(table, name) if not given.using:
            return alter_column(table, name, before.tables[table].columns[name])
    raise StartError(f"{migration} has {type(step).__name__}, which cannot be undone. Restore a backup, or go on.")
