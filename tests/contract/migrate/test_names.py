"""The name of what was renamed is free for something new, though its indexes and constraints are called as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diptych import Model
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_kinds import model
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

WORD = "{}: Annotated[str | None, {}] = None"
GROUP = "{}: Group | None = None"
WHOLE = """
class {name}(Resource):
    title: Annotated[str, Unique()]
    size: Annotated[int, Index()] = 1
    n: Annotated[int, Counter()] = auto()
    up: {name} | None = None
    search = Search("title")
    @check("It is more.")
    def more(self):
        return self.size > 0
    @unique("title")
    def only(self):
        return self.size > 3
"""


def check_walk(folder: Path, new_database: NewDatabase, *walk: tuple[Model, dict[str, str]]) -> None:
    """Migrate from one model to the next: the database is as one that was made for the last."""
    project, last = Project(folder / "migrations", new_database()), walk[-1][0]
    for now, renames in walk:
        project.make(now, renames=renames)
        project.apply(now)
    anew = Outside(new_database())
    opened(anew.url, last)
    assert structure(project.outside) == structure(anew)


@pytest.mark.parametrize("marker", ["Unique()", "Index()"])
def test_a_column_with_a_key(tmp_path: Path, new_database: NewDatabase, marker: str) -> None:
    lines = [WORD.format(name, marker) for name in ("title", "headline", "label")]
    walk: list[Any] = [
        (model(lines[0]), {}),
        (model(lines[1]), {"things.title": "headline"}),
        (model(lines[1], lines[0]), {}),
        (model(lines[1], lines[2]), {"things.title": "label"}),
        (model(*lines), {}),
    ]
    check_walk(tmp_path, new_database, *walk)


def test_a_relation(tmp_path: Path, new_database: NewDatabase) -> None:
    group, team = GROUP.format("group"), GROUP.format("team")
    walk: list[Any] = [(model(group), {}), (model(team), {"things.group_id": "team_id"}), (model(team, group), {})]
    check_walk(tmp_path, new_database, *walk)


def test_a_table(tmp_path: Path, new_database: NewDatabase) -> None:
    thing, item = WHOLE.format(name="Thing"), WHOLE.format(name="Item")
    walk: list[Any] = [(model_of(thing), {}), (model_of(item), {"things": "items"}), (model_of(item + thing), {})]
    check_walk(tmp_path, new_database, *walk)
