"""A database gets what it lacks: without a log it is recognised by its tables; what was cut off is repeated."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from diptych.errors import StartError
from diptych.migrate import postgres as on_postgres
from diptych.migrate.files import Loaded
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.running import NewDatabase, Postgres
from tests.unit.compile.test_tables import Outside

SIZE = "size: Annotated[Decimal, Digits({}, {})]"
CASES = {
    "another scale": ((SIZE.format(8, 2),), (SIZE.format(10, 4),), ("size", "1025", "10.25"), ("102500", "10.2500")),
    "a search": (("title: str",), ("title: str", 'search = Search("title")'), ("title", "'a'", "'a'"), ("a", "a")),
}


@pytest.mark.parametrize("name", CASES)
def test_what_it_lacks_is_applied(tmp_path: Path, new_database: NewDatabase, name: str) -> None:
    old, new, (column, *values), expected = CASES[name]
    project = Project(tmp_path / "migrations", new_database())
    project.open(model(*old))  # `diptych serve` or `diptych dev` made it
    on_sqlite = project.outside.is_sqlite
    project.outside.sql(f"INSERT INTO things (id, {column}) VALUES ('{UUID.format(1)}', {values[not on_sqlite]})")
    project.make(model(*old), "first")
    project.make(model(*new))
    project.apply(model(*new))
    assert project.outside.sql(f"SELECT CAST({column} AS text) FROM things") == [(expected[not on_sqlite],)]
    anew = Outside(new_database())
    opened(anew.url, model(*new))
    assert structure(project.outside) == structure(anew)


def test_a_start_that_is_killed_while_it_writes_the_log_is_repeated(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a new database the tables are made as the last migration leaves them, and no step is taken."""
    project, log = Project(tmp_path / "migrations", postgres.create()), on_postgres._Run._log
    project.make(model("title: str"), "first")
    project.make(model("title: str", name="Item"), renames={"things": "items"})
    left = 2

    async def killed(self: on_postgres._Run, migration: Loaded, half: str, step: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise StartError("killed")
        await log(self, migration, half, step)

    monkeypatch.setattr(on_postgres._Run, "_log", killed)
    with pytest.raises(StartError, match="killed"):
        project.apply(model("title: str", name="Item"))
    monkeypatch.undo()
    project.apply(model("title: str", name="Item"))
    assert project.outside.sql("SELECT count(*) FROM items") == [(0,)]


def test_a_connection_that_is_lost_is_one_sentence(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, execute = Project(tmp_path / "migrations", postgres.create()), on_postgres._Run._execute
    project.make(model("title: str"), "first")
    project.apply(model("title: str"))
    project.make(model("title: str", "size: int = 3"))

    async def cut(self: on_postgres._Run, statement: str) -> None:
        if "ADD COLUMN" in statement:
            end = f"SELECT pg_terminate_backend({self.connection.get_server_pid()})"
            await asyncio.to_thread(project.outside.sql, end)
        await execute(self, statement)

    monkeypatch.setattr(on_postgres._Run, "_execute", cut)
    with pytest.raises(StartError, match="what was done before is logged: run it again"):
        project.apply(model("title: str", "size: int = 3"))
    monkeypatch.undo()
    project.apply(model("title: str", "size: int = 3"))


def test_a_file_that_is_missing_is_no_connection_that_is_lost(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "migrations", postgres.create())
    project.make(model("title: str"), "first")

    async def read(self: on_postgres._Run, statement: str) -> None:
        (tmp_path / "rows.csv").read_text()

    monkeypatch.setattr(on_postgres._Run, "_execute", read)
    with pytest.raises(FileNotFoundError):
        project.apply(model("title: str"))
