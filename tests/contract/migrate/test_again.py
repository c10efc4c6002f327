"""A table or a counter with the name of one that is gone begins anew: nothing of the other is told or goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.errors import StartError
from tests.contract.migrate.scene import Project
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.in_process import in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase, Postgres

OTHER = "class Other(Resource):\n    name: str = ''\n"
HIDDEN = """
class Note(Resource{}):
    text: str
    access = ()
"""
OPEN = """
class Note(Resource{}):
    text: str
    access = (grant("read", "create"),)
"""
JSON = {"content-type": "application/json"}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


INTEGER = ', ids="integer"'


@pytest.mark.parametrize(("was", "ids"), [("", ""), ("", INTEGER), (INTEGER, INTEGER)])
def test_changes_of_a_table_that_is_gone_are_not_those_of_a_new_one(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner, was: str, ids: str
) -> None:
    old, without, new = model_of(HIDDEN.format(was) + OTHER), model_of(OTHER), model_of(OPEN.format(ids) + OTHER)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    row = 1 if was else repr(UUID.format(1))
    for _ in range(2):
        project.outside.sql(f"INSERT INTO notes (id, text) VALUES ({row}, 'hidden') ON CONFLICT DO NOTHING")
    project.make(without, "gone", drops={"notes"})
    project.apply(without, allow_loss=True)
    project.make(new, "again")
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        assert service.send("POST", "/notes", headers=JSON, body=b'{"text": "new"}').status == 201
        told = service.changes("/notes/changes?fields=text")["data"]
    assert [change["note"] for change in told] == [{"text": "new"}]


AUDITED = """
class Note(Resource{}, audit=Audited()):
    text: str
    access = (grant("read", "create"),)
"""


def test_a_table_is_dropped_when_all_its_changes_are_in_the_audit_log(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    """As they are when a service has ended, but not when it was killed."""
    old, without = model_of(AUDITED.format("") + OTHER), model_of(OTHER)
    new = model_of(AUDITED.format(INTEGER) + OTHER)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    project.outside.sql(f"INSERT INTO notes (id, text) VALUES ('{UUID.format(1)}', 'a')")
    project.make(without, "gone", drops={"notes"})
    project.make(new, "again")
    with pytest.raises(StartError, match="not come to 1 changes of notes: run `diptych audit head`"):
        project.apply(new, allow_loss=True)
    with in_process(old, project.outside.url, runner):
        pass  # appends what is left, as that command does
    project.apply(new, allow_loss=True)
    assert project.outside.sql("SELECT entry, row_id FROM diptych_audit") == [(1, UUID.format(1))]


POST = """
class Post(Resource):
    text: str
    access = ()
"""


def test_changes_of_a_table_that_is_gone_are_not_those_of_one_that_gets_its_name(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    old, without, new = model_of(HIDDEN.format("") + POST), model_of(POST), model_of(OPEN.format(""))
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    for table in ("notes", "posts"):
        project.outside.sql(f"INSERT INTO {table} (id, text) VALUES ('{UUID.format(1)}', 'in {table}')")
    project.make(without, "gone", drops={"notes"})
    project.apply(without, allow_loss=True)
    project.make(new, "again", renames={"posts": "notes"})
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        told = service.changes("/notes/changes?fields=text")["data"]
    assert [change["note"] for change in told] == [{"text": "in posts"}]


def test_a_new_table_locks_what_it_refers_to_after_all_stored_changes_are_read(
    tmp_path: Path, postgres: Postgres
) -> None:
    project = Project(tmp_path / "migrations", postgres.create())
    old, new = model_of(OTHER), model_of(OTHER + "class Note(Resource):\n    other: Other\n")
    project.make(old, "first")
    project.apply(old)
    project.open(old)
    ((step, before),) = project.make(new)[-1].steps("expand")
    have = asyncio.run(connect(Config(database=project.outside.url)).catalogue())
    words = [str(action).partition(" (")[0] for action in step.actions(before, have, "postgres")]
    assert words[0].startswith("UPDATE diptych_feed SET resource")
    assert "FOREIGN KEY" in words[-1]


LINES = {
    "of another type": ("rank: str", "rank: int = 3", [3, 3, 5]),
    "that may be null": ("rank: str | None = None", "rank: int | None = None", [None, None, 5]),
    "that nobody could read": ("rank: Annotated[str, ReadBy(Role('x'))]", "rank: str | None = None", [None, None, "5"]),
    "a long one": ("rank: str", "rank: str = '-'", ["-", "-", "5"]),
}


@pytest.mark.parametrize("name", LINES)
def test_values_of_a_column_that_is_gone_are_not_those_of_a_new_one(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner, name: str
) -> None:
    was, now, expected = LINES[name]
    old, without, new = model("title: str", was), model("title: str"), model("title: str", now)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    value = "x" * (3000 if name == "a long one" else 3)
    project.outside.sql(f"INSERT INTO things (id, title, rank) VALUES ('{UUID.format(1)}', 't', '{value}')")
    project.outside.sql("UPDATE things SET title = 'u'")
    project.make(without, "gone", drops={"things.rank"})
    project.apply(without, allow_loss=True)
    project.make(new, "again")
    project.apply(new)
    project.outside.sql(f"INSERT INTO things (id, title, rank) VALUES ('{UUID.format(2)}', 't', '5')")
    with in_process(new, project.outside.url, runner) as service:
        told = service.changes("/things/changes?fields=rank")["data"]
    assert [change["thing"]["rank"] for change in told] == expected


def test_values_of_a_column_that_is_gone_are_not_those_of_one_that_gets_its_name(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    lines = "rank: Annotated[str, ReadBy(Role('x'))]", "", "level: str | None = None", "rank: str | None = None"
    old, without, between, new = (model("title: str", line) for line in lines)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    project.outside.sql(f"INSERT INTO things (id, title, rank) VALUES ('{UUID.format(1)}', 't', 'hidden')")
    project.make(without, "gone", drops={"things.rank"})
    project.apply(without, allow_loss=True)
    project.make(between, "level")
    project.apply(between)
    project.outside.sql(f"INSERT INTO things (id, title, level) VALUES ('{UUID.format(2)}', 't', 'shown')")
    project.make(new, "again", renames={"things.level": "rank"})
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        told = service.changes("/things/changes?fields=rank")["data"]
    assert [change["thing"]["rank"] for change in told] == [None, "shown"]


def test_a_counter_of_a_table_that_is_gone_does_not_go_on(tmp_path: Path, new_database: NewDatabase) -> None:
    counted, plain = ("title: str", "n: Annotated[int, Counter()] = auto()"), ("title: str",)
    project = Project(tmp_path / "migrations", new_database())
    walk: list[Any] = [model(*counted), model(*plain), model(*counted), model(name="Other"), model(*counted)]
    for number, now in enumerate(walk):
        project.make(now, drops={"things", "others"})
        project.apply(now, allow_loss=True)
        if number in (0, 2, 4):
            for row in (1, 2, 3):
                project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(row)}', 't')")
            assert project.outside.sql("SELECT n FROM things ORDER BY id") == [(1,), (2,), (3,)]
            project.outside.sql("DELETE FROM things")
