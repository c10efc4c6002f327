"""The system tables of each version: a change of them without a new version, or one that is not additive, fails here.

After a change, raise SYSTEM_VERSION (`compile/system/upgrade.py`), add a step if a default is not enough for rows that
are there (`db/upgrades.py`), and run `python -m tests.unit.db.test_upgrades`, which records the new version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from diptych.compile.system.audit import audit_objects
from diptych.compile.system.object import DialectName, FeedTable
from diptych.compile.system.objects import system_objects
from diptych.compile.system.upgrade import COMPATIBLE_FROM, RETIRED, SYSTEM_VERSION, added_columns, columns_of
from diptych.db.upgrades import STEPS
from diptych.migrate.log import create_ddl

FILE = Path(__file__).parent / "system_tables.json"
DIALECTS: tuple[DialectName, ...] = ("sqlite", "postgres")
Shape = dict[str, list[str]]
"""The statements that make each table and index."""


def current(dialect: DialectName) -> Shape:
    """What this code makes."""
    made = [*system_objects([FeedTable("t", ("id",), counters=(("n", ""),))], dialect), *audit_objects(dialect)]
    kept = {part.name: [*part.create] for part in made if part.create[0].startswith(("CREATE TABLE", "CREATE INDEX"))}
    kept |= {part.name: [*part.create] for part in made if part.create[0].startswith("CREATE UNIQUE INDEX")}
    return {**kept, "diptych_migrations": [create_ddl(dialect)]}


def recorded(dialect: DialectName) -> dict[int, Shape]:
    """Every version; the file has the first one, and of each later one what differs (null: it is gone)."""
    shapes: dict[int, Shape] = {}
    shape: dict[str, Any] = {}
    for version, changes in json.loads(FILE.read_text()).items():
        shape = {name: made for name, made in {**shape, **changes[dialect]}.items() if made is not None}
        shapes[int(version)] = shape
    return shapes


def columns(made: list[str]) -> dict[str, str]:
    return columns_of(made[0].partition(" (")[2])


def is_table(made: list[str]) -> bool:
    return made[0].startswith("CREATE TABLE")


def test_the_system_tables_are_those_of_their_version() -> None:
    for dialect in DIALECTS:
        shapes = recorded(dialect)
        assert [*shapes] == [*range(1, SYSTEM_VERSION + 1)], "record the new version"
        assert current(dialect) == shapes[SYSTEM_VERSION], "the system tables changed: see the top of this file"


def test_versions_are_additive() -> None:
    """So processes of the version before go on, and a database gets what it lacks by a comparison."""
    for dialect in DIALECTS:
        shapes = recorded(dialect)
        for version in range(2, SYSTEM_VERSION + 1):
            before, after = shapes[version - 1], shapes[version]
            assert {*before} - {*after} <= {*RETIRED}, "a table, or an index that is not dropped when it is opened"
            for name in {*before} & {*after}:
                if not is_table(before[name]):
                    assert before[name] == after[name], f"give the index {name} another name"
                    continue
                was, now = columns(before[name]), columns(after[name])
                text = after[name][0]
                for definition in (now[column] for column in now if column not in was):
                    assert "NOT NULL" not in definition or " DEFAULT " in definition, definition
                    assert "UNIQUE" not in definition and "PRIMARY KEY" not in definition, definition
                    text = text.replace(f", {definition}", "", 1)
                assert [text, *after[name][1:]] == before[name], f"{name}: what is there stays"


def test_numbers_of_steps_are_versions() -> None:
    assert {*STEPS} <= {*range(2, SYSTEM_VERSION + 1)}
    assert 1 <= COMPATIBLE_FROM <= SYSTEM_VERSION
    assert not {*RETIRED} & {*current("sqlite"), *current("postgres")}


def test_columns_are_read_from_the_text_that_makes_a_table() -> None:
    create = "CREATE TABLE t (a text DEFAULT f(1, g(2)), b int NOT NULL DEFAULT 0, PRIMARY KEY (a, b)) WITH (x = 1)"
    assert columns([create]) == {"a": "a text DEFAULT f(1, g(2))", "b": "b int NOT NULL DEFAULT 0"}
    assert [*added_columns(create, {"t": {"a"}})] == ["ALTER TABLE t ADD COLUMN b int NOT NULL DEFAULT 0"]
    assert [*added_columns(create, {})] == []
    assert [*added_columns("CREATE INDEX t ON u (a)", {"t": {"a"}, "u": set()})] == []


def record() -> None:
    """Record what is there as the shape of the current version."""
    versions = json.loads(FILE.read_text())
    versions.pop(str(SYSTEM_VERSION), None)
    FILE.write_text(json.dumps(versions))
    changes: dict[str, Any] = {}
    for dialect in DIALECTS:
        before, now = recorded(dialect)[SYSTEM_VERSION - 1], current(dialect)
        changes[dialect] = {name: made for name, made in now.items() if before.get(name) != made}
        changes[dialect] |= dict.fromkeys([name for name in before if name not in now])
    FILE.write_text(json.dumps({**versions, str(SYSTEM_VERSION): changes}, indent=1) + "\n")


if __name__ == "__main__":
    record()
