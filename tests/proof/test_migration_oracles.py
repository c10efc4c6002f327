"""Migrations before tools of others: Alembic compares what they lead to, and squawk judges the locks that they take."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from diptych.migrate.state import state_of
from tests.contract.migrate.scene import Project, opened
from tests.contract.migrate.test_kinds import CASES, UUID, Case, model
from tests.proof.test_migrations import Walk, insert
from tests.support.alembic_diff import alembic_diff
from tests.support.effort import sampled, scaled
from tests.support.running import NewDatabase, Postgres
from tests.unit.compile.test_tables import Outside


def migrated(case: Case, folder: Path, url: str) -> Project:
    """A database with rows that went through one kind of change."""
    old, new = model(*case.old, **case.was), model(*case.new, **case.now)
    project = Project(folder, url)
    project.make(old, "first")
    project.apply(old)
    for number, row in enumerate(case.rows, 1):
        project.outside.sql(f"INSERT INTO things (id, {case.values}) VALUES ('{UUID.format(number)}', {row})")
    project.make(new, **case.answers)
    project.apply(new, allow_loss=case.loss)
    return project


def kinds_for(url: str) -> list[str]:
    """The kinds of change to try: the short form samples them, more closely on SQLite."""
    return sampled(CASES, 5 if url.startswith("sqlite") else 8)


# Alembic


@pytest.mark.timeout(600)
def test_alembic_finds_no_difference_after_each_kind_of_change(tmp_path: Path, new_database: NewDatabase) -> None:
    differing = {}
    for number, name in enumerate(kinds_for(new_database())):
        case = CASES[name]
        project, anew = migrated(case, tmp_path / str(number), new_database()), new_database()
        opened(anew, model(*case.new, **case.now))
        differing[name] = alembic_diff(project.outside.url, anew)
    assert {name: found for name, found in differing.items() if found} == {}


@pytest.mark.timeout(1200)
def test_alembic_finds_no_difference_after_a_random_walk(tmp_path: Path, new_database: NewDatabase) -> None:
    seed = random.randrange(10**6)
    print("SEED", seed)
    walk = Walk(random.Random(seed), {"Alpha": {}, "Beta": {}})
    project = Project(tmp_path / "migrations", new_database())
    now = walk.model()
    project.make(now, "first")
    project.apply(now)
    for number in range(scaled(60, 4)):
        insert(project.outside, walk.random.choice([*now.resources.values()]), number)
        while True:
            answers, _ = walk.change()
            if state_of(walk.model()).hash != state_of(now).hash:
                break
        now = walk.model()
        project.make(now, **answers)
        project.apply(now, allow_loss=True)
    anew = new_database()
    opened(anew, now)
    assert alembic_diff(project.outside.url, anew) == []


FAULTS = {
    "a column that is missing": "ALTER TABLE things DROP COLUMN note",
    "a column too many": "ALTER TABLE things ADD COLUMN more integer",
    "an index that is missing": "DROP INDEX things_title",
    "a unique index too many": "CREATE UNIQUE INDEX extra ON things (size)",
    "a table that is missing": "DROP TABLE things",
}
FAULTS_OF_POSTGRES = {
    "another type": "ALTER TABLE things ALTER COLUMN size TYPE bigint",
    "null where none may be": "ALTER TABLE things ALTER COLUMN size DROP NOT NULL",
    "another default": "ALTER TABLE things ALTER COLUMN size SET DEFAULT 9",
    "another end of a relation": "ALTER TABLE things DROP CONSTRAINT things_group_id_fkey; ALTER TABLE things ADD "
    "CONSTRAINT things_group_id_fkey FOREIGN KEY (group_id) REFERENCES groups (id) ON DELETE CASCADE",
}


def test_alembic_finds_what_differs(new_database: NewDatabase) -> None:
    new = model(
        "title: Annotated[str, Index()]", "size: int = 1", "note: str | None = None", "group: Group | None = None"
    )
    anew = new_database()
    opened(anew, new)
    is_sqlite = anew.startswith("sqlite")
    for fault, statement in (FAULTS if is_sqlite else FAULTS | FAULTS_OF_POSTGRES).items():
        outside = Outside(new_database())
        opened(outside.url, new)
        assert alembic_diff(outside.url, anew) == []
        for trigger in triggers(outside):  # they name columns
            outside.sql(trigger)
        outside.sql(statement)
        assert alembic_diff(outside.url, anew), fault


def triggers(outside: Outside) -> list[str]:
    if not outside.is_sqlite:
        return []
    return [
        f'DROP TRIGGER "{name}"' for (name,) in outside.sql("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    ]


# squawk

SQUAWK = Path(sys.executable).with_name("squawk")
_BRIEF = "a change of the catalogue alone: the lock is held for a moment, and an attempt waits for it 100 ms at first"
_ASKED = "loses data or stops older services: only with --allow-loss, in the second half, or when they are stopped"
JUSTIFIED = {
    "ban-drop-column": _ASKED,
    "ban-drop-table": _ASKED,
    "renaming-column": _ASKED,
    "renaming-table": _ASKED,
    "ban-drop-constraint": _BRIEF,
    "ban-drop-default": _BRIEF,
    "ban-drop-function": "it is one that the migration itself made, for its trigger",
    "ban-drop-not-null": _BRIEF,
    "require-concurrent-index-deletion": _BRIEF,
    "prefer-bigint-over-int": "the range of Int is that of GraphQL, 32 bits",
    "prefer-robust-stmts": "a step asks the catalogue first, and drops an index that was left invalid",
    "changing-column-type": "the documentation says that the table is rewritten, and locked for that time",
}
"""The rules of squawk that migrations break, and why."""
JUSTIFIED_STATEMENTS = {
    'ALTER TABLE "things" ALTER COLUMN "n" SET NOT NULL;': "a counter numbers all rows at once, so that no two are equal",
    'ALTER TABLE "things" ADD COLUMN "day" date NOT NULL DEFAULT ((now() AT TIME ZONE \'UTC\')::date);': "the default is "
    "stable, so it is evaluated once, and no row is written",
}
_RUN = re.compile(r"(BEGIN|COMMIT|SET |ALTER |CREATE |DROP |UPDATE |DO )", re.IGNORECASE)


@contextmanager
def recorded() -> Iterator[list[str]]:
    """The statements that are executed meanwhile, as they are sent to PostgreSQL."""
    statements: list[str] = []
    execute = asyncpg.Connection.execute

    async def record(self: Any, sql: str, *values: Any, **how: Any) -> Any:
        if not values and _RUN.match(sql.strip()):
            statements.append(sql.strip().rstrip(";") + ";")
        return await execute(self, sql, *values, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncpg.Connection, "execute", record)
        yield statements


def findings(statements: list[str], file: Path) -> list[tuple[str, str]]:
    """What squawk says of a file with these statements: the rule, and the line that breaks it."""
    file.write_text("\n".join(statements) + "\n", "utf-8")
    command = [str(SQUAWK), "--reporter", "json", "--pg-version", "14", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = file.read_text("utf-8").splitlines()
    return [(each["rule_name"], lines[each["line"]]) for each in json.loads(done.stdout)]


def test_squawk_finds_no_unsafe_lock(tmp_path: Path, postgres: Postgres) -> None:
    unsafe = {}
    for number, name in enumerate(kinds_for(postgres.create())):
        with recorded() as statements:
            migrated(CASES[name], tmp_path / str(number), postgres.create())
        for rule, line in findings(statements, tmp_path / f"{number}.sql"):
            if rule not in JUSTIFIED and line not in JUSTIFIED_STATEMENTS:
                unsafe[name, rule] = line
    assert unsafe == {}


UNSAFE = {
    "require-concurrent-index-creation": 'CREATE INDEX "i" ON "things" ("size");',
    "ban-concurrent-index-creation-in-transaction": 'BEGIN; CREATE INDEX CONCURRENTLY "i" ON "things" ("size"); COMMIT;',
    "constraint-missing-not-valid": 'ALTER TABLE "things" ADD CONSTRAINT "c" CHECK ("size" > 0);',
    "adding-foreign-key-constraint": 'ALTER TABLE "things" ADD CONSTRAINT "f" FOREIGN KEY ("a") REFERENCES "groups" (id);',
    "adding-not-nullable-field": 'ALTER TABLE "things" ALTER COLUMN "size" SET NOT NULL;',
    "disallowed-unique-constraint": 'ALTER TABLE "things" ADD CONSTRAINT "u" UNIQUE ("size");',
}


@pytest.mark.parametrize("rule", UNSAFE)
def test_squawk_finds_what_would_hold_up_a_service(rule: str, tmp_path: Path) -> None:
    assert rule not in JUSTIFIED
    assert rule in {found for found, _ in findings([UNSAFE[rule]], tmp_path / "unsafe.sql")}
