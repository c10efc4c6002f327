"""What `apply --expand` did can be taken back until contract (PostgreSQL): the database is as before, rows included."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from diptych import Model
from diptych.config import Config
from diptych.db.connect import connect
from diptych.errors import StartError
from diptych.migrate import postgres as applying
from diptych.migrate import runner
from diptych.migrate.files import read_folder
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_kinds import CASES, UUID, model
from tests.support.effort import LONG
from tests.support.running import Postgres
from tests.unit.compile.test_tables import Outside

SHORT = (
    "a class",
    "a required field, by an expression",
    "null forbidden",
    "another check",
    "no field, required before",
    "no counter",
)
KINDS = [name for name, case in CASES.items() if not case.answers.get("usings") and "digits" not in name]


def undo(project: Project, model: Model, **how: bool) -> None:
    store: Any = connect(Config(database=project.outside.url))
    asyncio.run(applying.undo(store, model, read_folder(project.folder), project.told.append, **how))


def expanded(name: str, folder: Path, url: str) -> tuple[Project, Model, Model, list[Any]]:
    """A database with rows after `apply --expand`, both models, and the rows."""
    case = CASES[name]
    old, new = model(*case.old, **case.was), model(*case.new, **case.now)
    project = Project(folder, url)
    project.make(old, "first")
    project.apply(old)
    for number, row in enumerate(case.rows, 1):
        project.outside.sql(f"INSERT INTO things (id, {case.values}) VALUES ('{UUID.format(number)}', {row})")
    rows = project.outside.sql(f"SELECT id, {case.values} FROM things ORDER BY id")
    project.make(new, **case.answers)
    project.apply(new, expand=True, allow_loss=True)
    return project, old, new, rows


@pytest.mark.parametrize("name", KINDS if LONG else SHORT)
def test_it_is_as_before(name: str, tmp_path: Path, postgres: Postgres) -> None:
    project, old, new, rows = expanded(name, tmp_path / "migrations", postgres.create())
    undo(project, new, allow_loss=True)
    assert project.told[-1].endswith(": undone.")
    opened(project.outside.url, old)
    anew = Outside(postgres.create())
    opened(anew.url, old)
    assert structure(project.outside) == structure(anew)
    columns = CASES[name].values
    after = project.outside.sql(f"SELECT id, {columns} FROM things ORDER BY id")
    kept = [
        tuple(now if was is None else was for was, now in zip(*pair, strict=True))
        for pair in zip(rows, after, strict=True)
    ]
    assert after == kept, "but for nulls that were filled, all is as it was"
    with pytest.raises(StartError, match="There is nothing to undo"):
        undo(project, new)
    project.apply(new, allow_loss=True)


@pytest.mark.parametrize("goes_on", ["undo", "apply"])
def test_one_that_was_interrupted_goes_on(
    goes_on: str, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "a required field, by an expression"
    project, old, new, _ = expanded(kind, tmp_path / "migrations", postgres.create())
    reached = structure(project.outside)

    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(applying._Run, "_inverse", interrupted)
        undo(project, new, allow_loss=True)
    if goes_on == "undo":
        undo(project, new, allow_loss=True)
        opened(project.outside.url, old)
        assert project.outside.sql("SELECT title FROM things ORDER BY id") == [("a",), ("b",)]
    else:
        project.apply(new, expand=True)
        assert {**structure(project.outside), "triggers": 0} == {**reached, "triggers": 0}
        assert project.outside.sql("SELECT slug FROM things ORDER BY id") == [("A",), ("B",)]
    assert project.outside.sql("SELECT count(*) FROM diptych_migrations WHERE half = 'undo'") == [(0,)]


def test_what_cannot_be_undone_says_so(tmp_path: Path, postgres: Postgres) -> None:
    project, _, new, _ = expanded("another type", tmp_path / "converted", postgres.create())
    before = structure(project.outside)
    with pytest.raises(StartError, match="0002_next has alter_column, which cannot be undone"):
        undo(project, new)
    assert structure(project.outside) == before
    project, _, new, _ = expanded("a field with a default", tmp_path / "values", postgres.create())
    before = structure(project.outside)
    with pytest.raises(StartError, match=r"drops things\.rank with its 2 values.*--allow-loss"):
        undo(project, new)
    assert structure(project.outside) == before
    project.apply(new)
    with pytest.raises(StartError, match="There is nothing to undo"):
        undo(project, new, allow_loss=True)
    commands = runner.Project(new, project.folder)
    with pytest.raises(StartError, match="diptych restore"):
        commands.undo(Config(database=f"sqlite:///{tmp_path}/a.db"), print)


def test_a_counter_within_a_column_of_another_type_counts_on(tmp_path: Path, postgres: Postgres) -> None:
    """For the services that run, which start nothing anew."""
    n = 'n: Annotated[int, Counter("shelf")] = auto()'
    old, new = model("shelf: int", n), model("shelf: BigInt", n)
    project = Project(tmp_path / "migrations", postgres.create())
    project.make(old, "first")
    project.apply(old)
    project.make(new)
    project.apply(new, expand=True)
    project.outside.sql(f"INSERT INTO things (id, shelf) VALUES ('{UUID.format(1)}', 7)")
    undo(project, new)
    project.outside.sql(f"INSERT INTO things (id, shelf) VALUES ('{UUID.format(2)}', 7)")
    assert project.outside.sql("SELECT n FROM things ORDER BY id") == [(1,), (2,)]
