"""Members of value objects that change: in each row, in stored changes, and by questions where only the owner knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych.errors import StartError
from diptych.migrate.diff import Answers, difference
from diptych.migrate.state import state_of
from diptych.migrate.value_steps import alter_value
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_feed import create
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.in_process import in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

OLD = ("city: str", "zip: str", "floor: int | None = None", "note: str | None = None")
NEW = ("town: str", "zip: str | None = None", "country: str", "note: str")
ANSWERS: dict[str, Any] = {
    "renames": {"things.place.city": "town"},
    "drops": {"things.place.floor"},
    "fills": {"things.place.country": '"N\'O"', "things.place.note": '"-"'},
}


def with_place(*members: str) -> Any:
    more = "\nclass Place(Value):\n    " + "\n    ".join(members)
    return model("title: str", "place: Place | None = None", more=more)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_rows_and_stored_changes_have_the_new_members(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    old, new = with_place(*OLD), with_place(*NEW)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        first = create(service, title="a", place={"city": "Oslo", "zip": "1", "floor": 3, "note": "n"})
        create(service, title="b")
        create(service, title="c", place={"city": "O\"s'lo", "zip": "2"})
    project.make(new, **ANSWERS)
    with pytest.raises(StartError, match=r"drops floor of 1 values of things\.place.*--allow-loss"):
        project.apply(new)
    project.apply(new, allow_loss=True)
    shown = "fields=title,place(town,zip,country,note)"
    expected = [
        {"title": "a", "place": {"town": "Oslo", "zip": "1", "country": "N'O", "note": "n"}},
        {"title": "b", "place": None},
        {"title": "c", "place": {"town": "O\"s'lo", "zip": "2", "country": "N'O", "note": "-"}},
    ]
    with in_process(new, project.outside.url, runner) as service:
        assert service.get(f"/things?{shown}").json()["data"] == expected
        changes = service.changes(f"/things/changes?{shown}")["data"]
        assert [change["thing"] for change in changes][:3] == expected
        assert [first["id"]] == [change["rowId"] for change in changes][:1]
        found = service.get("/things?fields=title&where=" + json.dumps({"place": {"town": {"eq": "Oslo"}}}))
        assert found.json()["data"] == [{"title": "a"}]
    anew = Outside(new_database())
    opened(anew.url, new)
    assert structure(project.outside) == structure(anew)


def test_a_member_that_is_renamed_and_required_keeps_its_values(tmp_path: Path, new_database: NewDatabase) -> None:
    old, new = with_place("city: str", "zip: str | None = None"), with_place("city: str", "postcode: str")
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    for number, place in enumerate(('{"city": "Oslo", "zip": "0150"}', '{"city": "Bergen", "zip": null}'), 1):
        project.outside.sql(f"INSERT INTO things (id, title, place) VALUES ('{UUID.format(number)}', 'a', '{place}')")
    project.make(new, renames={"things.place.zip": "postcode"}, fills={"things.place.postcode": '"?"'})
    project.apply(new)
    places = [json.loads(text) for (text,) in project.outside.sql("SELECT CAST(place AS text) FROM things ORDER BY id")]
    assert places == [{"city": "Oslo", "postcode": "0150"}, {"city": "Bergen", "postcode": "?"}]
    stored = [text for (text,) in project.outside.sql("SELECT CAST(new AS text) FROM diptych_feed ORDER BY position")]
    assert "0150" in stored[0] and "zip" not in "".join(stored)


HIDING = """
class Place(Value):
    city: str
    {0}: str | None = None
class Thing(Resource):
    title: str = "t"
    place: Place
    @allow("read")
    def near(self, viewer: Viewer) -> bool:
        return is_null(self.place.{0})
"""


def test_rows_that_nobody_may_see_are_not_told(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    """With the members of before, a row would have been visible: it would be told that it is not any more."""
    old, new = model_of(HIDING.format("zip")), model_of(HIDING.format("code"))
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    insert = 'INSERT INTO things (id, place) VALUES (\'{}\', \'{{"city": "Oslo", "zip": "1"}}\')'
    project.outside.sql(insert.format(UUID.format(1)))
    project.make(new, renames={"things.place.zip": "code"})
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        assert service.changes("/things/changes?fields=title")["data"] == []
        cursor = service.changes("/things/changes?fields=title")["page"]["last"]
        project.outside.sql('UPDATE things SET place = \'{"city": "Oslo"}\'')
        told = service.changes(f"/things/changes?fields=title&after={cursor}")["data"]
    assert [change["rowId"] for change in told] == [UUID.format(1)], "what comes later is told"


def test_a_step_that_runs_again_changes_nothing(tmp_path: Path, new_database: NewDatabase) -> None:
    """As after a kill between its statement and its entry in the log."""
    new = with_place(*NEW)
    project = Project(tmp_path / "migrations", new_database())
    project.make(new, "first")
    project.apply(new)
    column = state_of(new).tables["things"].columns["place"]
    step = alter_value("things", "place", column, {"city": "town"}, ("floor",), {"country": "NO"})
    sql = step._on_sqlite() if project.outside.is_sqlite else step._on_postgres()
    project.outside.sql(
        "INSERT INTO things (id, title, place) VALUES ('00000000-0000-7000-8000-000000000001', 'a', "
        '\'{"city": "Oslo", "zip": "1", "floor": 2}\')'
    )
    seen = []
    for _ in range(2):
        project.outside.sql(f"UPDATE things SET place = {sql}")
        ((text,),) = project.outside.sql("SELECT CAST(place AS text) FROM things")
        seen.append(json.loads(text))
    assert seen == [{"town": "Oslo", "zip": "1", "country": "NO"}] * 2


def questions(old: tuple[str, ...], new: tuple[str, ...], **answers: Any) -> list[tuple[str, str]]:
    found = difference(state_of(with_place(*old)), state_of(with_place(*new)), Answers(**answers))
    return [(question.kind, question.name) for question in found.questions]


def test_only_the_owner_knows() -> None:
    assert questions(OLD, NEW) == [
        *(("rename", "things.place.city"), ("rename", "things.place.floor")),
        *(("fill", "things.place.town"), ("fill", "things.place.country"), ("fill", "things.place.note")),
    ]
    assert questions(OLD, NEW, **ANSWERS) == []
    assert questions(("city: str",), ("city: int",)) == [("using", "things.place")]
    assert questions(("n: int",), ("n: BigInt", "more: str | None = None")) == []
    assert questions(("city: str", "zip: str"), ("city: str",)) == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"renames": {"things.place.city": "village"}}, "things.place has no new member village"),
        ({**ANSWERS, "fills": {**ANSWERS["fills"], "things.place.country": "7"}}, "that is no JSON value of String"),
        ({**ANSWERS, "fills": {**ANSWERS["fills"], "things.place.country": "x"}}, "that is no JSON value of String"),
    ],
)
def test_answers_that_do_not_fit(answers: dict[str, Any], said: str) -> None:
    with pytest.raises(StartError, match=said):
        questions(OLD, NEW, **answers)


def test_the_file_says_it(tmp_path: Path, new_database: NewDatabase) -> None:
    project = Project(tmp_path / "migrations", new_database())
    project.make(with_place(*OLD), "first")
    project.make(with_place(*NEW), "places", **ANSWERS)
    (file,) = project.folder.glob("*_places.py")
    assert 'renames={"city": "town"}, drops=("floor",), fills={"country": "N\'O", "note": "-"}' in file.read_text()
