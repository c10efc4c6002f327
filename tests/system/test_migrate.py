"""`diptych migrate` as a team uses it: files, questions, a database that is brought along, and what goes wrong."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from diptych.compile.system.upgrade import SETTING, SYSTEM_VERSION, SystemVersion
from tests.support.running import Command, NewDatabase
from tests.unit.compile.test_tables import Outside

MODEL = """
from typing import Annotated
from diptych import *

class Post(Resource):
    {}
    access = (grant("read", "create"),)

model = Model(Post)
"""


@pytest.fixture
def project(tmp_path: Path, command: Command, database: str) -> Path:
    """A project with two migrations; its database has the first."""
    write(tmp_path, "title: str")
    assert command("migrate", "make", "--model", "shop:model").returncode == 0
    done = command("migrate", "apply", "shop:model", "--database", database)
    assert "all tables were made" in done.stdout, done.stderr
    return tmp_path


def write(folder: Path, *lines: str) -> None:
    sys.modules.pop("shop", None)  # commands run in this process
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    (folder / "shop.py").write_text(MODEL.format("\n    ".join(lines)))


def said(command: Command, *words: str) -> str:
    done = command(*words)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def test_from_a_change_to_a_database_that_has_it(project: Path, command: Command, database: str) -> None:
    where = ("shop:model", "--database", database)
    write(project, "headline: str", "rank: int")
    assert "run `diptych migrate make` first" in said(command, "migrate", "apply", *where)
    questions = said(command, "migrate", "make", "--model", "shop:model")
    assert "--rename posts.title=headline, or --drop posts.title" in questions
    made = command(
        *("migrate", "make", "shop:model", "--name", "rank"),
        *("--rename", "posts.title=headline", "--fill", "posts.rank=3"),
    )
    assert "rename column posts.title to headline" in made.stdout, made.stderr
    file = project / "migrations" / "0002_rank.py"
    text = file.read_text()
    assert '        rename_column("posts", "title", "headline"),\n' in text
    assert text.count('ADD COLUMN "rank" integer NOT NULL DEFAULT 3') == 1
    assert "0002_rank  pending" in command("migrate", "status", *where).stdout
    assert f"The system tables have version {SYSTEM_VERSION}." in command("migrate", "status", *where).stdout
    assert "`diptych migrate" in said(command, "serve", *where)
    planned = command("migrate", "plan", *where, "--sql").stdout
    assert 'RENAME COLUMN "title" TO "headline";' in planned and "cannot go on" in planned
    assert "without --expand" in said(command, "migrate", "apply", *where, "--expand")
    applied = command("migrate", "apply", *where)
    assert "0002_rank: expanded.\n0002_rank: contracted.\n" in applied.stdout, applied.stderr
    if database.startswith("sqlite"):  # PostgreSQL has backups of its own
        (backup,) = re.findall("A backup of the database is (.+)[.]\n", applied.stdout)
        restored = f"sqlite:///{project}/restored.db"
        assert command("restore", backup, "--database", restored).returncode == 0
        assert "0002_rank  pending" in command("migrate", "status", "shop:model", "--database", restored).stdout
    assert command("migrate", "apply", *where).stdout == "The database has all migrations.\n"
    assert command("migrate", "check", *where).stdout == "2 migrations lead to the model.\n"
    # what goes wrong
    other = project / "migrations" / "0002_other.py"
    other.write_text(text)
    assert "0002_other and 0002_rank both come after 0001_first" in said(command, "migrate", "check", *where)
    other.unlink()
    file.write_text(text.replace('column("Int")', 'column("BigInt")'))
    assert "0002_rank.py was edited: its steps lead to" in said(command, "migrate", "check", *where)
    file.write_text(text + "# more\n")
    assert "0002_rank.py was edited after the database had it" in said(command, "migrate", "apply", *where)
    file.unlink()
    assert "there is no file 0002_rank.py" in said(command, "migrate", "check", *where)
    (project / "migrations" / "state.json").unlink()
    write(project, "title: str")
    assert command("migrate", "make", "--model", "shop:model").stdout.startswith("The model is as the last")
    assert "which is not here: a later model has changed it" in said(command, "migrate", "apply", *where)
    file.write_text(text)
    write(project, "headline: str", "rank: int")
    command("migrate", "make", "--model", "shop:model")
    assert "0002_squashed.py replaces all others" in command("migrate", "squash", "shop:model").stdout
    assert command("migrate", "apply", *where).stdout == "The database has all migrations.\n"


def test_a_new_database_has_no_migration_until_they_are_applied(
    project: Path, command: Command, new_database: NewDatabase
) -> None:
    where = ("shop:model", "--database", new_database())
    Outside(where[2]).sql("CREATE TABLE others (id integer)")
    assert command("migrate", "status", *where).stdout == "0001_first  pending\n"
    assert command("migrate", "plan", *where).stdout.startswith("The database is new: `apply` makes all tables")
    assert "all tables were made" in command("migrate", "apply", *where).stdout
    assert command("migrate", "status", *where).stdout.startswith("0001_first  applied\n")
    assert command("migrate", "plan", *where).stdout == "The database has all migrations.\n"


def test_system_tables_of_another_version_are_named_and_brought_along(
    project: Path, command: Command, database: str
) -> None:
    where, outside = ("shop:model", "--database", database), Outside(database)
    outside.sql(f"DELETE FROM diptych_settings WHERE name = '{SETTING}'")
    pending = f"The system tables have version 1: `apply`, or the next start, brings them to {SYSTEM_VERSION}.\n"
    assert command("migrate", "status", *where).stdout == f"0001_first  applied\n{pending}"
    assert command("migrate", "plan", *where).stdout == f"The database has all migrations.\n{pending}"
    upgraded = f"Upgraded the system tables from version 1 to {SYSTEM_VERSION}: queued jobs have got their turns.\n"
    assert command("migrate", "apply", *where).stdout == upgraded
    assert command("migrate", "apply", *where).stdout == "The database has all migrations.\n"
    assert command("migrate", "plan", *where).stdout == "The database has all migrations.\n"
    for later, said_of_it in ((SYSTEM_VERSION, "can go on."), (SYSTEM_VERSION + 1, "")):
        text = SystemVersion(SYSTEM_VERSION + 1, later).encode()
        outside.sql(f"UPDATE diptych_settings SET value = '{text}' WHERE name = '{SETTING}'")
        if said_of_it:
            assert said_of_it in command("migrate", "status", *where).stdout
            assert command("migrate", "apply", *where).returncode == 0
        else:
            assert f"this version of Diptych knows {SYSTEM_VERSION}" in said(command, "migrate", "apply", *where)
