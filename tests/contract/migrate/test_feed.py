"""What was told before a migration is told in the new shape; cursors and ETags of before are good after it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych.migrate import postgres as on_postgres
from tests.contract.migrate.scene import Project
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.in_process import Service, in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase, Postgres
from tests.unit.compile.test_tables import Outside


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


JSON = {"content-type": "application/json"}
MERGE = {"content-type": "application/merge-patch+json"}
OLD = ("title: str", "note: str | None = None", "price: Annotated[Decimal, Digits(8, 2)]")
NEW = (
    "headline: str",
    "note: str",
    "price: Annotated[Decimal, Digits(10, 4)]",
    "rank: int = 3",
    "slug: str",
)
ANSWERS: dict[str, Any] = {
    "renames": {"things.title": "headline"},
    "fills": {"things.note": '"-"', "things.slug": "= upper(headline)"},
}


def create(service: Service, **values: Any) -> dict[str, Any]:
    answer = service.send("POST", "/things", headers=JSON, body=json.dumps(values).encode())
    assert answer.status == 201, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_followers_go_on_in_the_new_shape(tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner) -> None:
    old, new = model(*OLD), model(*NEW)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    long = "x" * 3000  # left out of changes that leave it as it is
    with in_process(old, project.outside.url, runner) as service:
        groups = service.send("GET", "/groups")
        row = create(service, title="a", price="1.25", note="n")
        cursor = service.changes("/things/changes?fields=id")["page"]["last"]
        create(service, title="b", price="2.50")
        service.send("PATCH", f"/things/{row['id']}", headers=MERGE, body=json.dumps({"title": long}).encode())
        service.send("PATCH", f"/things/{row['id']}", headers=MERGE, body=b'{"price": "7.77"}')
    project.make(new, **ANSWERS)
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        fields = "headline,note,price,rank,slug"
        told = service.changes(f"/things/changes?fields={fields}&after={cursor}")["data"]
        again = service.send("GET", "/groups", headers={"if-none-match": groups.headers["etag"]})
        now = {each["id"]: each for each in json.loads(service.send("GET", "/things").body)["data"]}
    assert again.status == 304
    first, second, third = [each["thing"] for each in told[:3]]
    assert first == {"headline": "b", "note": "-", "price": "2.5000", "rank": 3, "slug": "B"}
    assert second["headline"] == third["headline"] == long
    assert second["slug"] == third["slug"] == long.upper()
    assert (second["price"], third["price"]) == ("1.2500", "7.7700")
    assert all(each["thing"]["rank"] == 3 and each["thing"]["note"] for each in told)
    assert now[row["id"]]["slug"] == long.upper() and now[row["id"]]["price"] == "7.7700"


def test_an_expression_may_name_its_table(tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner) -> None:
    """As it must, where it looks into another table with columns of the same names."""
    old = model("title: str", "group: Group | None = None")
    new = model("title: str", "group: Group | None = None", "slug: str", "size: str", "day: date = today()")
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        group = service.send("POST", "/groups", headers=JSON, body=b'{"name": "G"}')
        create(service, title="a", groupId=json.loads(group.body)["id"])
    name = "= (SELECT name FROM groups WHERE groups.id = things.group_id)"
    project.make(new, fills={"things.slug": name, "things.size": "= upper(things.title)"})
    project.apply(new)
    assert project.outside.sql("SELECT slug, size FROM things") == [("G", "A")]
    with in_process(new, project.outside.url, runner) as service:
        told = service.changes("/things/changes?fields=slug,size,day")["data"]
    assert (told[0]["thing"]["slug"], told[0]["thing"]["size"]) == ("G", "A") and told[0]["thing"]["day"]


EXTRA = "extra: Json | None = None"
DOCUMENT = {"zz": 1.0, "b": {"q": 1, "c": 1e3}}
SHAPES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "a rename": (("headline: str", EXTRA), {"renames": {"things.title": "headline"}}),
    "a default": (("title: str", EXTRA, "rank: int = 3"), {}),
    "an expression": (("title: str", EXTRA, "slug: str"), {"fills": {"things.slug": "= lower(title)"}}),
    "a column again": (("title: str", EXTRA, "note: int | None = None"), {}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_document_is_told_as_it_was_sent(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner, name: str
) -> None:
    """Its members are in the same order on both stores, as those of the row are."""
    lines, answers = SHAPES[name]
    old, without, new = model("title: str", EXTRA, "note: str | None = None"), model("title: str", EXTRA), model(*lines)
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        create(service, title="a", extra=DOCUMENT, note="n")
    project.make(without, "gone", drops={"things.note"})
    project.make(new, **answers)
    project.apply(new, allow_loss=True)
    with in_process(new, project.outside.url, runner) as service:
        told = service.changes("/things/changes?fields=extra")["data"]
    assert json.dumps(told[0]["thing"]["extra"]) == json.dumps(DOCUMENT)


NAMES = [("old: str = 'o'", "new: bool = True"), ("row_id: str = 'r'",), ("key: str = 'k'", "value: str = 'v'")]


@pytest.mark.parametrize("names", NAMES)
def test_fields_may_have_the_names_of_columns_of_the_feed(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner, names: tuple[str, ...]
) -> None:
    lines = ("title: str", "text: str", *names)
    old, new = model(*lines), model(*lines, "slug: str")
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        row = create(service, title="a", text="x" * 3000)
        service.send("PATCH", f"/things/{row['id']}", headers=MERGE, body=b'{"title": "b"}')  # leaves out the text
    project.make(new, fills={"things.slug": "= title || length(text)"})
    project.apply(new)
    with in_process(new, project.outside.url, runner) as service:
        told = service.changes("/things/changes?fields=slug")["data"]
    assert [change["thing"] for change in told[:2]] == [{"slug": "a3000"}, {"slug": "b3000"}]


AUDITED = """
class Thing(Resource, audit=Audited(masked="code")):
    title: str
    size: int = 1
    code: {}
    access = (grant("read", "create", "update"),)
"""


def test_what_the_audit_log_must_not_have_is_not_put_there(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    old, new = (model_of(AUDITED.format(kind)) for kind in ("int", "str"))
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        row = create(service, title="x" * 3000, code=4711)
        service.send("PATCH", f"/things/{row['id']}", headers=MERGE, body=b'{"size": 2}')  # leaves out the title
    project.make(new, usings={"things.code": "'n' || CAST(code AS text)"})
    project.apply(new)
    assert project.outside.sql("SELECT code FROM things") == [("n4711",)]
    stored = project.outside.sql("SELECT CAST(old AS text), CAST(new AS text) FROM diptych_audit ORDER BY entry")
    assert len(stored) == 2 and "4711" not in str(stored)


def test_a_change_by_another_program_while_values_are_converted(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored changes are converted first: a writer that comes between waits for the table, and is told as it is."""
    old, new, url = model("size: int"), model("size: str"), postgres.create()
    project, execute, writers = (
        Project(tmp_path / "migrations", url),
        on_postgres._Run._execute,
        list[threading.Thread](),
    )
    project.make(old, "first")
    project.apply(old)
    project.make(new, usings={"things.size": "'n' || CAST(size AS text)"})

    def write() -> None:
        Outside(url).sql(f"INSERT INTO things (id, size) VALUES ('{UUID.format(1)}', 7)")

    async def between(self: on_postgres._Run, statement: str) -> None:
        await execute(self, statement)
        if statement.startswith("UPDATE diptych_feed") and not writers:
            writers.append(threading.Thread(target=write))
            writers[0].start()
            await asyncio.sleep(0.3)

    monkeypatch.setattr(on_postgres._Run, "_execute", between)
    project.apply(new)
    writers[0].join()
    assert project.outside.sql("SELECT new ->> 'size' FROM diptych_feed") == project.outside.rows("things", "size")
