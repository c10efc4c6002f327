"""The migrations' status of a database that is open: each state that a migration can be in, on both stores."""

from __future__ import annotations

import asyncio
from pathlib import Path

from diptych import Model
from diptych.config import Config
from diptych.db.connect import connect
from diptych.migrate.status import MigrationStatus, migration_status
from tests.contract.migrate.scene import Project, opened
from tests.support.model_files import model_of
from tests.support.running import NewDatabase

FIRST = model_of("class Post(Resource):\n    title: str\n    old: int = 0\n")
SECOND = model_of("class Post(Resource):\n    title: str\n    rank: int = 3\n")


def status(project: Project, model: Model) -> MigrationStatus:
    async def work() -> MigrationStatus:
        store = connect(Config(database=project.outside.url))
        await store.open(model)
        try:
            return await migration_status(model, store, project.folder)
        finally:
            await store.close()

    return asyncio.run(work())


def states(found: MigrationStatus) -> list[tuple[str, str]]:
    return [(each.name, each.state) for each in found.migrations]


def test_it_follows_a_database_from_migration_to_migration(tmp_path: Path, new_database: NewDatabase) -> None:
    project = Project(tmp_path / "migrations", new_database())
    opened(project.outside.url, FIRST)
    assert status(project, FIRST) == MigrationStatus([], [], model_differs=False)
    project.make(FIRST, "first")
    assert states(status(project, FIRST)) == [("0001_first", "applied")], "by its tables: there is no log"
    project.apply(FIRST)
    project.make(SECOND, "rank", drops={"posts.old"})
    found = status(project, FIRST)
    assert states(found) == [("0001_first", "applied"), ("0002_rank", "pending")]
    assert found.migrations[0].at and not found.migrations[1].at
    assert found.model_differs and any("rank" in each for each in found.differences)
    project.apply(SECOND, expand=True)
    assert states(status(project, SECOND))[1] == ("0002_rank", "expanded")
    project.apply(SECOND, allow_loss=True)
    found = status(project, SECOND)
    assert states(found) == [("0001_first", "applied"), ("0002_rank", "applied")]
    assert (found.differences, found.model_differs) == ([], False)
    project.squash(SECOND)
    assert states(status(project, SECOND)) == [("0002_squashed", "applied")]


def test_files_that_are_not_those_of_the_database_are_named_and_never_executed(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    project = Project(tmp_path / "migrations", new_database())
    opened(project.outside.url, FIRST)
    project.make(FIRST, "first")
    project.apply(FIRST)
    file, trace = project.folder / "0001_first.py", tmp_path / "executed"
    file.write_text(f"{file.read_text()}\nopen({str(trace)!r}, 'w')\n")
    assert states(status(project, FIRST)) == [("0001_first", "edited")]
    file.unlink()
    assert states(status(project, FIRST)) == [("0001_first", "missing")]
    (project.folder / "0002_broken.py").write_text("migration = (")
    assert states(status(project, FIRST)) == [("0002_broken", "pending"), ("0001_first", "missing")]
    assert not trace.exists()


def test_tables_that_someone_has_changed_are_named(tmp_path: Path, new_database: NewDatabase) -> None:
    project = Project(tmp_path / "migrations", new_database())
    opened(project.outside.url, FIRST)
    project.make(FIRST, "first")
    project.apply(FIRST)
    assert status(project, FIRST).differences == []
    project.outside.sql("ALTER TABLE posts DROP COLUMN old")

    async def closed() -> MigrationStatus:
        store = connect(Config(database=project.outside.url))
        await store.open(SECOND, add_columns=True)
        try:
            return await migration_status(SECOND, store, project.folder)
        finally:
            await store.close()

    assert any("old" in each for each in asyncio.run(closed()).differences)
