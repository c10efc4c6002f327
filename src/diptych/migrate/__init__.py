"""Migrations: the model changes, the files in `migrations/` say how the tables follow, and databases are brought there.

    model → state → diff with migrations/state.json → steps → migrations/0007_rank.py → SQL of either store

A state (`state.py`) is what the tables of a model are, as plain data. A step (`step.py`) turns a state into the next
one, and has its SQL for both stores (`ddl.py`, `feed.py`). `diff.py` finds the steps between two states, `files.py`
writes and reads them, `sqlite.py` and `postgres.py` apply them. It comes after `db` in the pipeline; the command
line imports it, and the console reads `status.py`.

A migration file imports what it needs from here:

    from diptych.migrate import Migration, add_column, column
"""

from diptych.migrate.files import Migration
from diptych.migrate.key_steps import add_check, add_key, drop_check, drop_key, run, set_search
from diptych.migrate.state import Check, Key, Table, column
from diptych.migrate.table_steps import (
    add_column,
    alter_column,
    create_table,
    drop_column,
    drop_table,
    rename_column,
    rename_table,
)
from diptych.migrate.value_steps import alter_value

__all__ = [
    "Check",
    "Key",
    "Migration",
    "Table",
    "add_check",
    "add_column",
    "add_key",
    "alter_column",
    "alter_value",
    "column",
    "create_table",
    "drop_check",
    "drop_column",
    "drop_key",
    "drop_table",
    "rename_column",
    "rename_table",
    "run",
    "set_search",
]
