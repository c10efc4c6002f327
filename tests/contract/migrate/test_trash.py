"""A table that loses its trash, and a relation that leads to another table: rows that refer to them are written as before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych import Model
from diptych.config import Config
from diptych.db.connect import connect
from diptych.migrate import postgres as applying
from diptych.migrate.files import read_folder
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_feed import JSON
from tests.support.in_process import in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase, Postgres
from tests.unit.compile.test_tables import Outside

MODEL = """
class Rack(Resource{}):
    name: str = ""
    access = (grant("read", "create", "delete"),)

class Bin(Resource, trash=timedelta(days=3)):
    name: str = ""
    access = (grant("read", "create", "delete"),)

class Room(Resource):
    name: str = ""
    access = (grant("read", "create", "delete"),)

class Book(Resource):
    rack: {} | None = None
    bin: Bin | None = None
    access = (grant("read", "create"),)
"""
TRASH = ", trash=timedelta(days=3)"
CASES = {"no trash": ("", "Rack", "racks"), "another target": (TRASH, "Room", "rooms")}


def model(trash: str, target: str, *, bins: bool = True) -> Model:
    text = MODEL.format(trash, target)
    return model_of(text if bins else text.replace("    bin: Bin | None = None\n", ""))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def create_books(model: Model, racks: str, url: str, runner: asyncio.Runner) -> list[int]:
    """The statuses of a book in a rack, and of one in a bin that is deleted."""
    with in_process(model, url, runner) as service:

        def post(path: str, **values: Any) -> Any:
            return service.send("POST", f"/{path}", headers=JSON, body=json.dumps(values).encode())

        rack, gone = (json.loads(post(path).body)["id"] for path in (racks, "bins"))
        assert service.send("DELETE", f"/bins/{gone}").status == 204
        given = [{"rackId": rack}] + [{"binId": gone}] * ("bin" in model.resources["Book"].relations)
        return [post("books", **values).status for values in given]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bins", [True, False])
def test_rows_that_refer_to_it_can_be_made(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner, name: str, bins: bool
) -> None:
    trash, target, racks = CASES[name]
    old, new, expected = model(TRASH, "Rack", bins=bins), model(trash, target, bins=bins), [201, 409][: 1 + bins]
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    assert create_books(old, "racks", project.outside.url, runner) == expected
    project.outside.sql("DELETE FROM books")
    project.make(new)
    project.apply(new)
    assert create_books(new, racks, project.outside.url, runner) == expected
    anew = Outside(new_database())
    opened(anew.url, new)
    assert structure(project.outside) == structure(anew)


def test_also_after_a_trash_was_undone(tmp_path: Path, postgres: Postgres, runner: asyncio.Runner) -> None:
    old, new = model("", "Rack"), model(TRASH, "Rack")
    project = Project(tmp_path / "migrations", postgres.create())
    project.make(old, "first")
    project.apply(old)
    project.make(new)
    project.apply(new, expand=True)
    store: Any = connect(Config(database=project.outside.url))
    asyncio.run(applying.undo(store, new, read_folder(project.folder), project.told.append))
    project.outside.sql("INSERT INTO racks (id) VALUES ('00000000-0000-7000-8000-000000000001')")
    rack = "SELECT '00000000-0000-7000-8000-000000000002', id FROM racks"
    project.outside.sql(f"INSERT INTO books (id, rack_id) {rack}")
    assert create_books(old, "racks", project.outside.url, runner) == [201, 409]


def test_other_trashes_are_looked_at_after_a_trash_was_undone(tmp_path: Path, postgres: Postgres) -> None:
    old, new = model("", "Rack"), model(TRASH, "Rack")
    project = Project(tmp_path / "migrations", postgres.create())
    project.make(old, "first")
    project.apply(old)
    gone, book = (f"00000000-0000-7000-8000-00000000000{number}" for number in (1, 2))
    project.outside.sql(f"INSERT INTO bins (id, deleted_at) VALUES ('{gone}', now())")
    project.make(new)
    project.apply(new, expand=True)
    store: Any = connect(Config(database=project.outside.url))
    asyncio.run(applying.undo(store, new, read_folder(project.folder), project.told.append))
    with pytest.raises(Exception, match="the row refers to none"):  # services of before run on, and open nothing
        project.outside.sql(f"INSERT INTO books (id, bin_id) VALUES ('{book}', '{gone}')")
