"""Migrations without the rights for them: a sentence, and nothing is changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from diptych.errors import StartError
from tests.contract.migrate.scene import Project, structure
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.running import Command, Postgres, scratch

OLD, NEW = model("title: str"), model("title: str", "slug: str")
ANSWERS: dict[str, Any] = {"fills": {"things.slug": "= upper(title)"}}
_NOBODY = 65_534


def prepared(folder: Path, url: str) -> Project:
    project = Project(folder, url)
    project.make(OLD, "first")
    project.apply(OLD)
    project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(1)}', 'a')")
    project.make(NEW, **ANSWERS)
    return project


# SQLite


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everyone may look into."""
    folder = Path(scratch())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def said_by_a_stranger(work: Callable[[], None]) -> str:
    """What someone is told who owns none of the files."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        said = "applied"
        try:
            if os.geteuid() == 0:  # nothing is forbidden to root
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
            work()
        except StartError as error:
            said = str(error)
        except BaseException as error:
            said = f"not a sentence: {error!r}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    os.wait()
    return said


@pytest.mark.parametrize("is_open", [False, True])
def test_a_file_that_may_not_be_written(folder: Path, is_open: bool) -> None:
    project = prepared(folder / "migrations", f"sqlite:///{folder}/data.db")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "data.db").chmod(0o666 if is_open else 0o444)
    folder.chmod(0o555)
    before = structure(project.outside), sorted(each.name for each in folder.iterdir())
    said = said_by_a_stranger(lambda: project.apply(NEW))
    assert said.startswith(("The migration failed, and nothing was changed: ", f"{folder}/data.db cannot be copied")), (
        said
    )
    folder.chmod(0o755)
    (folder / "data.db").chmod(0o644)
    assert (structure(project.outside), sorted(each.name for each in folder.iterdir())) == before
    project.apply(NEW)


# PostgreSQL


@pytest.fixture
def role(postgres: Postgres) -> Iterator[str]:
    """A role that may read and write rows, and nothing else."""
    name = "serves_only"
    postgres.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    for (database,) in postgres.execute("SELECT datname FROM pg_database WHERE datallowconn"):
        if database != "template1":
            postgres.execute(f"DROP OWNED BY {name}", database)
    postgres.execute(f"DROP ROLE {name}")


def test_a_role_without_rights_to_the_tables(tmp_path: Path, postgres: Postgres, role: str, command: Command) -> None:
    project = prepared(tmp_path / "migrations", postgres.create())
    outside = project.outside
    host = parse_qs(urlsplit(outside.url).query)["host"][0]
    theirs = Project(project.folder, f"postgresql://{role}@/{urlsplit(outside.url).path[1:]}?host={host}")
    outside.sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    before = structure(outside), outside.sql("SELECT * FROM diptych_migrations ORDER BY 1, 3, 4")
    with pytest.raises(StartError, match=r"The role serves_only may not .*\(.*\)\. Migrate as the owner of the tables"):
        theirs.apply(NEW)
    assert (structure(outside), outside.sql("SELECT * FROM diptych_migrations ORDER BY 1, 3, 4")) == before
    outside.sql(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}")
    with pytest.raises(StartError, match="serves_only may not"):
        theirs.apply(NEW)
    (tmp_path / "shop.py").write_text(
        "from diptych import *\nclass Post(Resource):\n    title: str\nmodel = Model(Post)\n"
    )
    for word in ("status", "plan"):
        shutil.rmtree(tmp_path / "migrations", ignore_errors=True)
        assert command("migrate", "make", "--model", "shop:model").returncode == 0
        done = command("migrate", word, "shop:model", "--database", theirs.outside.url)
        assert (done.returncode, "serves_only may not" in done.stderr) == (2, True), done.stderr
    assert structure(outside) == before[0]
