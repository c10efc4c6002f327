"""The log of migrations in a database, the table `diptych_migrations`, and the halves that are left to apply.

    name       hash   half    step  at  by
    0007_rank  9f2c…  expand  0     …   …     a step that is done
    0007_rank  9f2c…  expand  -1    …   …     the half is done

The log says where to go on; whether a step is done, the catalogue says (`step.py`).
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from diptych.compile.catalogue import Catalogue
from diptych.compile.meaning import FORMAT, encode_meaning
from diptych.compile.system.object import DialectName
from diptych.compile.system.upgrade import added_columns
from diptych.errors import StartError
from diptych.migrate.files import Loaded
from diptych.migrate.shape import drift
from diptych.migrate.state import State
from diptych.migrate.step import MigrationStep

CREATE = (
    "CREATE TABLE IF NOT EXISTS diptych_migrations (name {text} NOT NULL, hash {text} NOT NULL, half {text} NOT NULL, "
    "step integer NOT NULL, at {text} NOT NULL, by {text} NOT NULL, PRIMARY KEY (name, half, step))"
)
READ = "SELECT name, hash, half, step FROM diptych_migrations"
INSERT = "INSERT INTO diptych_migrations (name, hash, half, step, at, by) VALUES ({}) ON CONFLICT DO NOTHING"
FORGET, RECORD = "DELETE FROM diptych_schema WHERE name = {}", "INSERT INTO diptych_schema VALUES ({})"
HALVES = ("expand", "contract")
WHOLE = -1
MADE = "The database was new: all tables were made as the last migration leaves them."
Entry = tuple[str, str, str, int]


def create_ddl(dialect: DialectName) -> str:
    return CREATE.format(text="TEXT" if dialect == "sqlite" else 'text COLLATE "C"')


def prepare(have: Catalogue, dialect: DialectName) -> list[str]:
    """The statements that make the log, or the columns that one of an earlier version lacks."""
    return [create_ddl(dialect), *added_columns(create_ddl(dialect), have.system_tables)]


def entry(migration: Loaded, half: str, step: int) -> tuple[Any, ...]:
    """The values of a row of the log."""
    try:
        by = getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        by = ""
    return migration.name, migration.hash, half, step, datetime.now(UTC).isoformat(), by


def record(before: State, after: State) -> list[tuple[str, tuple[Any, ...]]]:
    """The statements that record what the columns mean now (`compile/meaning.py`), with ? for values."""
    names = sorted({*before.tables, *after.tables})
    return [
        *((FORGET, (name,)) for name in names),
        *((RECORD, (name, FORMAT, encode_meaning(table.columns))) for name, table in after.tables.items()),
    ]


class Half(Struct, frozen=True):
    """A half of a migration that is not done, and those of its steps that are."""

    migration: Loaded
    half: str
    done: frozenset[int] = field(default_factory=frozenset)

    @property
    def steps(self) -> Sequence[MigrationStep]:
        """All of its steps."""
        return self.migration.migration.expand if self.half == "expand" else self.migration.migration.contract


def pending(chain: Sequence[Loaded], entries: Iterable[Entry], *, expand: bool = False) -> list[Half]:
    """What is left to do. With `expand`, the last migration's second half is left out.

    Refused if the database has a migration that is not here, or that was edited since.
    """
    known = {loaded.name: loaded for loaded in chain}
    rows = _unsquashed(chain, list(entries))
    for name, digest, _, _ in rows:
        if name not in known:
            raise StartError(f"The database has the migration {name}, which is not here: a later model has changed it.")
        if digest != known[name].hash:
            raise StartError(f"{name}.py was edited after the database had it; undo that, and make a new migration.")
    left = []
    for migration in chain:
        for half in HALVES:
            steps = frozenset(step for name, _, there, step in rows if (name, there) == (migration.name, half))
            if WHOLE not in steps and not (expand and half == "contract" and migration is chain[-1]):
                left.append(Half(migration, half, steps))
    return left


def _unsquashed(chain: Sequence[Loaded], rows: list[Entry]) -> list[Entry]:
    """The log, with a squashed migration in the place of those that it replaces."""
    for migration in chain:
        replaced = {*migration.migration.replaces} - {migration.name}
        ended = {name for name, _, half, step in rows if name in replaced and (half, step) == ("contract", WHOLE)}
        if not ended:
            continue
        last = migration.migration.replaces[-1]
        if last not in ended:
            raise StartError(f"{migration.name} replaces {last}, which the database has not: apply that first.")
        rows = [row for row in rows if row[0] not in {*replaced, migration.name}]
        rows += [(migration.name, migration.hash, half, WHOLE) for half in HALVES]
    return rows


def baseline(chain: Sequence[Loaded], have: Catalogue, dialect: DialectName) -> list[Loaded]:
    """The migrations that a database without a log has, by its tables; refused if it is like none of them."""
    for count in range(len(chain), 0, -1):
        if not list(drift(chain[count - 1].state, have, dialect)):
            return list(chain[:count])
    differences = "; ".join(list(drift(chain[-1].state, have, dialect))[:10])
    raise StartError(
        "The database has tables and no log of migrations, and is not as any of them leaves it. "
        f"It differs from the last one: {differences}."
    )
