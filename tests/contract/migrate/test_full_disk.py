"""A disk that fills up while a table is made anew: a sentence, and nothing is changed."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from diptych.errors import StartError
from tests.contract.migrate.scene import Project, structure
from tests.contract.migrate.test_kinds import UUID, model


def said_within(limit: int, project: Project) -> str:
    """What `apply` says in a process whose files may have this many bytes."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        said = "applied"
        try:
            project.apply(model("title: str", "slug: str"))
        except StartError as error:
            said = str(error)
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    os.wait()
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [(-1_000_000, "cannot be copied: the disk is full or cannot be written"), (100_000, "and nothing was changed: ")],
)
def test_a_full_disk_changes_nothing(tmp_path: Path, more: int, said: str) -> None:
    path = tmp_path / "full.db"
    project = Project(tmp_path / "migrations", f"sqlite:///{path}")
    project.make(model("title: str"), "first")
    project.apply(model("title: str"))
    for number in range(200):
        values = f"'{UUID.format(number)}', '{'x' * 6000}'"
        project.outside.sql(f"INSERT INTO things (id, title) VALUES ({values})")
    look = "SELECT count(*), sum(length(title)) FROM things"
    before = structure(project.outside), project.outside.sql(look)
    project.make(model("title: str", "slug: str"), fills={"things.slug": "= title"})
    assert said in said_within(path.stat().st_size + more, project)
    assert (structure(project.outside), project.outside.sql(look)) == before
    assert said_within(path.stat().st_size * 10, project) == "applied"
