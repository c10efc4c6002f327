"""A model changes over a database that has data: what means the same is applied or recorded, all else is refused.

A case is an old line of a class, values that were written under it, and a new line; then what `serve` and `dev` do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from diptych import Model
from diptych.compile import differences
from diptych.compile.meaning import Meaning
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.fitting import Fitted
from diptych.errors import StartError
from diptych.identity.owner import fixed_owner
from diptych.webhooks import manage
from tests.support.in_process import Answer, Service, in_process
from tests.support.model_files import model_of
from tests.support.running import Command, NewDatabase
from tests.unit.compile.test_tables import Outside

HEAD = """
class Colour(StrEnum):
    red = "red"
    blue = "blue"

class Colours(StrEnum):
    red = "red"
    blue = "blue"
    green = "green"

class Group(Resource):
    access = (grant("read", "create", "delete"),)

class Band(Resource):
    access = (grant("read", "create"),)

class Thing(Resource{options}):
    {lines}
    access = (grant("read", "create", "update", "delete"),)
"""
KEY = "00000000-0000-7000-8000-000000000001"


def model(*lines: str, options: str = "") -> Model:
    return model_of(HEAD.format(lines="\n    ".join(lines) or "pass", options=options))


def fitted(model: Model, outside: Outside, **how: bool) -> Fitted:
    """What opening a database for a model did to it."""

    async def work() -> Fitted:
        store = connect(Config(database=outside.url))
        try:
            return await store.open(model, **how)
        finally:
            await store.close()

    return asyncio.run(work())


def report_of(model: Model, outside: Outside, **how: bool) -> str:
    """What was done, or what differs; "" if nothing."""
    try:
        return " ".join(fitted(model, outside, **how).done)
    except StartError as error:
        return str(error).splitlines()[0].removeprefix("The database does not fit the model: ")


@pytest.fixture
def outside(database: str) -> Outside:
    return Outside(database)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def post(service: Service, path: str, value: Any) -> Answer:
    headers = {"content-type": "application/json"}
    return service.send("POST", path, headers=headers, body=json.dumps(value).encode())


def fill(service: Service, *values: Any) -> None:
    for value in values:
        answer = post(service, "/things", value)
        assert answer.status == 201, answer.body


class Case(NamedTuple):
    """`serve` and `dev` are what they say on SQLite and PostgreSQL; one text is for both."""

    old: str
    values: list[Any]
    new: str
    serve: str | tuple[str, str]
    dev: str | tuple[str, str]
    read: list[Any] | None = None
    """The values afterwards, if they are not as they were written."""


MONEY = "a: Annotated[Decimal | None, Digits(8, 2)] = None"
MORE = MONEY.replace("8, 2", "10, 4")
SCALE = "the column things.a holds values of the type Decimal(8,2), and the model has Decimal(10,4)."


def typed(old: str, new: str) -> str:
    return f"the column things.a is {old} and should be {new}."


CASES = {
    "a decimal gets more fraction digits": Case(
        MONEY,
        ["12.50"],
        MORE,
        (SCALE, typed("numeric(8,2)", "numeric(10,4)")),
        (SCALE, "Made the column things.a numeric(10,4)."),
        ["12.5000"],
    ),
    "a decimal gets fewer fraction digits": Case(
        MORE,
        ["12.5000"],
        MONEY,
        (
            "the column things.a holds values of the type Decimal(10,4), and the model has Decimal(8,2).",
            typed("numeric(10,4)", "numeric(8,2)"),
        ),
        (
            "the column things.a holds values of the type Decimal(10,4), and the model has Decimal(8,2).",
            typed("numeric(10,4)", "numeric(8,2)"),
        ),
    ),
    "a decimal without values gets more fraction digits": Case(
        MONEY,
        [None, "0.00"],
        MORE,
        (
            "Took the column things.a, which holds no values, for Decimal(10,4). Forgot the changes so far, which hold things.a "
            "with another meaning.",
            typed("numeric(8,2)", "numeric(10,4)"),
        ),
        ("", "Made the column things.a numeric(10,4)."),
        [None, "0.0000"],
    ),
    "a decimal gets more digits before the point": Case(
        MONEY,
        ["12.50"],
        MONEY.replace("8", "9"),
        ("Took the column things.a for Decimal(9,2).", typed("numeric(8,2)", "numeric(9,2)")),
        ("", "Made the column things.a numeric(9,2)."),
    ),
    "a decimal gets too few digits before the point": Case(
        MONEY,
        ["123456.00"],
        MONEY.replace("8", "6"),
        (
            "the column things.a holds values that are not of the type Decimal(6,2).",
            typed("numeric(8,2)", "numeric(6,2)"),
        ),
        (
            "the column things.a holds values that are not of the type Decimal(6,2).",
            typed("numeric(8,2)", "numeric(6,2)"),
        ),
    ),
    "an integer gets 64 bits": Case(
        "a: int",
        [7],
        "a: BigInt",
        ("Took the column things.a for BigInt.", typed("integer", "bigint")),
        ("", "Made the column things.a bigint."),
        ["7"],
    ),
    "an integer of 64 bits gets 32": Case(
        "a: BigInt",
        ["7000000000"],
        "a: int",
        ("the column things.a holds values that are not of the type Int.", typed("bigint", "integer")),
        ("the column things.a holds values that are not of the type Int.", typed("bigint", "integer")),
    ),
    "an integer becomes a boolean": Case(
        "a: int",
        [2],
        "a: bool",
        ("the column things.a holds values of the type Int, and the model has Boolean.", typed("integer", "boolean")),
        ("the column things.a holds values of the type Int, and the model has Boolean.", typed("integer", "boolean")),
    ),
    "an integer becomes a float": Case(
        "a: int",
        [2],
        "a: float",
        (typed("INTEGER", "REAL"), typed("integer", "double precision")),
        (typed("INTEGER", "REAL"), typed("integer", "double precision")),
    ),
    "text becomes JSON": Case(
        "a: str",
        ["x"],
        "a: Json",
        (
            "the column things.a holds values of the type String, and the model has JSON.",
            typed('text COLLATE "C"', "json"),
        ),
        (
            "the column things.a holds values of the type String, and the model has JSON.",
            typed('text COLLATE "C"', "json"),
        ),
    ),
    "text becomes an enum that has all values": Case(
        "a: str", ["red"], "a: Colour", "Took the column things.a for one of red, blue.", ""
    ),
    "text becomes an enum that has not all values": Case(
        "a: str",
        ["red", "green"],
        "a: Colour",
        "the column things.a holds values that are not one of red, blue.",
        "the column things.a holds values that are not one of red, blue.",
    ),
    "an enum gets a value": Case(
        "a: Colour", ["red"], "a: Colours", "Took the column things.a for one of red, blue, green.", ""
    ),
    "an enum loses a value that no row has": Case(
        "a: Colours", ["red"], "a: Colour", "Took the column things.a for one of red, blue.", ""
    ),
    "an enum loses a value that a row has": Case(
        "a: Colours",
        ["green"],
        "a: Colour",
        "the column things.a holds values that are not one of red, blue.",
        "the column things.a holds values that are not one of red, blue.",
    ),
    "an enum becomes text": Case("a: Colour", ["red"], "a: str", "Took the column things.a for String.", ""),
    "a value may be null": Case(
        "a: str",
        ["x"],
        "a: str | None",
        "the column things.a must not be null and may be null.",
        "Let the column things.a be null.",
    ),
    "a value must not be null, and is not": Case(
        "a: str | None",
        ["x"],
        "a: str",
        "the column things.a may be null and must not be null.",
        "Made the column things.a NOT NULL.",
    ),
    "a value must not be null, and is": Case(
        "a: str | None",
        ["x", None],
        "a: str",
        "the column things.a may be null and must not be null, and rows have null there.",
        "the column things.a may be null and must not be null, and rows have null there.",
    ),
    "a value becomes unique": Case(
        "a: str | None",
        ["x", "y", None, None],
        "a: Annotated[str | None, Unique()]",
        "the database does not keep things.a unique.",
        "Made things.a unique.",
    ),
    "a value becomes unique over equal ones": Case(
        "a: str",
        ["x", "x"],
        "a: Annotated[str, Unique()]",
        "the database does not keep things.a unique, and rows have equal values there.",
        "the database does not keep things.a unique, and rows have equal values there.",
    ),
    "an index is wanted": Case("a: str", ["x"], "a: Annotated[str, Index()]", "", "Made an index on things.a."),
    "an index is not wanted any more": Case("a: Annotated[str, Index()]", ["x"], "a: str", "", ""),
    "what may be written is less": Case("a: str", ["long"], "a: Annotated[str, MaxLen(2), Pattern('[a-z]+')]", "", ""),
    "the default is another one": Case("a: int = 1", [1], "a: int = 2", "", ""),
    "an integer id becomes an UUID": Case(
        "a: str\n    id: Id = auto()",
        ["x"],
        "a: str #ids",
        ("the column things.id is TEXT and should be INTEGER.", "the column things.id is uuid and should be bigint."),
        ("the column things.id is TEXT and should be INTEGER.", "the column things.id is uuid and should be bigint."),
    ),
}


def of_store(text: str | tuple[str, str], outside: Outside) -> str:
    return text if isinstance(text, str) else text[not outside.is_sqlite]


@pytest.mark.parametrize("name", CASES)
def test_a_line_changes(outside: Outside, runner: asyncio.Runner, name: str) -> None:
    case = CASES[name]
    with in_process(model(case.old), outside.url, runner) as service:
        fill(service, *({"a": value} for value in case.values))
    new = model(case.new, options=", ids='integer'" if case.new.endswith("#ids") else "")
    before = outside.sql("SELECT name, columns FROM diptych_schema ORDER BY name")
    said = report_of(new, outside)
    assert said == of_store(case.serve, outside)
    refused = said[:3] == "the"
    if refused:
        assert outside.sql("SELECT name, columns FROM diptych_schema ORDER BY name") == before
    assert report_of(new, outside, add_columns=True) == of_store(case.dev, outside)
    if of_store(case.dev, outside)[:3] == "the":
        return  # and it is still served as it was
    assert report_of(new, outside) == "" == report_of(new, outside, add_columns=True)
    with in_process(new, outside.url, runner) as service:
        assert [row["a"] for row in service.rows("/things?fields=a&sort=id")] == (case.read or case.values)


@pytest.mark.parametrize("name", [name for name in CASES if of_store(CASES[name].dev, Outside("sqlite:"))[:3] == "the"])
def test_a_refused_database_is_served_as_before(outside: Outside, runner: asyncio.Runner, name: str) -> None:
    case = CASES[name]
    with in_process(model(case.old), outside.url, runner) as service:
        fill(service, *({"a": value} for value in case.values))
    said = report_of(model(case.new, options=", ids='integer'" if case.new.endswith("#ids") else ""), outside)
    assert said[:3] == "the"
    with in_process(model(case.old), outside.url, runner) as service:
        assert [row["a"] for row in service.rows("/things?fields=a&sort=id")] == case.values


# money


def test_money_is_never_read_with_another_scale(
    outside: Outside, runner: asyncio.Runner, command: Command, tmp_path: Path
) -> None:
    """What happened: "12.50" was answered as "0.1250", and then both scales stood in one column."""
    with in_process(model(MONEY), outside.url, runner) as service:
        fill(service, {"a": "12.50"})
        before = service.end_of_changes()
    if not outside.is_sqlite:
        assert report_of(model(MORE), outside, add_columns=True) == "Made the column things.a numeric(10,4)."
    else:
        for how in ({}, {"add_columns": True}, {"accept": False}):
            assert report_of(model(MORE), outside, **how) == SCALE
        with pytest.raises(StartError, match=r'- run UPDATE "things" SET "a" = "a" \* 100, and then `diptych check'):
            fitted(model(MORE), outside)
        outside.sql('UPDATE "things" SET "a" = "a" * 100')
        assert report_of(model(MORE), outside) == SCALE  # until its owner says that this is what it means now
        assert (
            report_of(model(MORE), outside, accept=True)
            == "Forgot the changes so far, which hold things.a with another meaning."
        )
    with in_process(model(MORE), outside.url, runner) as service:
        fill(service, {"a": "1.2345"})
        assert [row["a"] for row in service.rows("/things?fields=a&sort=id")] == ["12.5000", "1.2345"]
        answer = service.get(f"/things/changes?after={before}")
        if outside.is_sqlite:
            assert (answer.status, answer.code) == (410, "RESUME_GAP")
        else:
            assert [each["thing"]["a"] for each in answer.json()["data"]] == ["1.2345"]


def test_a_column_without_values_takes_another_scale_and_its_older_changes_are_forgotten(
    outside: Outside, runner: asyncio.Runner
) -> None:
    """No row has an amount of the old scale, and the feed has one."""
    money, more = (f"a: Annotated[Decimal | None, Digits({digits})] = None" for digits in ("8, 2", "10, 4"))
    with in_process(model(money), outside.url, runner) as service:
        fill(service, {"a": "12.50"})
        (row,) = service.rows("/things?fields=id")
        patch = {"content-type": "application/json"}
        assert service.send("PATCH", f"/things/{row['id']}", headers=patch, body=b'{"a":null}').status == 200
        before = service.changes("/things/changes?first=1")["page"]["next"]
        followed = service.handler.live.watch_engine
        runner.run(manage.add(followed, "all", "https://example.org/", "things", "fields=id", fixed_owner([])))
    fitted(model(more), outside, add_columns=True)
    assert outside.sql("SELECT position FROM diptych_webhooks") == [(0 if outside.is_sqlite else 2,)]
    with in_process(model(more), outside.url, runner) as service:
        told = [each["thing"]["a"] for each in service.changes("/things/changes")["data"]]
        assert told == ([] if outside.is_sqlite else ["12.5000", None])
        assert service.get(f"/things/changes?after={before}").status == (410 if outside.is_sqlite else 200)


def test_a_comparison_that_ignores_the_scale_is_found(
    new_sqlite: NewDatabase, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Outside(new_sqlite())
    with in_process(model(MONEY), outside.url, runner) as service:
        fill(service, {"a": "12.50"})
    monkeypatch.setattr(Meaning, "kind", property(lambda self: self.type))
    with in_process(model(MORE), outside.url, runner) as service:
        assert service.rows("/things?fields=a") == [{"a": "0.1250"}]


def test_accepting_looks_at_what_the_values_can_tell(outside: Outside, runner: asyncio.Runner) -> None:
    with in_process(model("a: Colours"), outside.url, runner) as service:
        fill(service, {"a": "green"})
    assert (
        report_of(model("a: Colour"), outside, accept=True)
        == "the column things.a holds values that are not one of red, blue."
    )
    assert report_of(model("a: Colour", "b: int = 0"), outside, accept=True).startswith(
        "the column things.a holds values"
    )
    assert "things.b" in report_of(model("a: Colours", "b: int = 0"), outside, accept=True)
    outside.sql("UPDATE things SET a = 'blue'")
    assert report_of(model("a: Colour"), outside, accept=True) == ""


def test_a_column_whose_type_its_owner_has_changed_is_taken_as_the_model_has_it(
    outside: Outside, runner: asyncio.Runner
) -> None:
    with in_process(model("a: str", "b: int = 0"), outside.url, runner) as service:
        fill(service, {"a": "7"})
    if outside.is_sqlite:
        for (trigger,) in outside.sql("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'things'"):
            outside.sql(f"DROP TRIGGER {trigger}")
        outside.sql("ALTER TABLE things ADD COLUMN c INTEGER NOT NULL DEFAULT 0")
        outside.sql("UPDATE things SET c = CAST(a AS INTEGER)")
        outside.sql("ALTER TABLE things DROP COLUMN a")
        outside.sql("ALTER TABLE things RENAME COLUMN c TO a")
    else:
        outside.sql("ALTER TABLE things ALTER COLUMN a TYPE integer USING a::integer")
    assert report_of(model("a: int", "b: int = 0"), outside) == "Took the column things.a for Int."
    with in_process(model("a: int", "b: int = 0"), outside.url, runner) as service:
        assert service.rows("/things?fields=a") == [{"a": 7}]
        assert service.get("/things/changes").status == 200


# tables, columns, foreign keys


def test_a_new_class_gets_its_table_while_developing(outside: Outside, runner: asyncio.Runner) -> None:
    fitted(model("a: str"), outside)
    extra = (
        "\nclass Extra(Resource):\n    thing: Thing\n    word: Annotated[str, Unique()]\n    kind: Annotated[str, Index()] = ''\n"
        "    pair: list[Pair] = inverse('extra')\n    access = (grant('read', 'create'),)\n"
        "\nclass Pair(Resource):\n    extra: Extra\n    thing: Thing\n    access = (grant('read', 'create'),)\n"
    )
    new = model_of(HEAD.format(lines="a: str", options="") + extra)
    assert report_of(new, outside) == "the table extras is missing; the table pairs is missing."
    assert report_of(new, outside, add_columns=True) == "Made the table extras. Made the table pairs."
    assert report_of(new, outside) == ""
    assert asyncio.run(connect(Config(database=outside.url)).look(new)) == []  # indexes and keys are there too
    with in_process(new, outside.url, runner) as service:
        fill(service, {"a": "x"})
        (thing,) = service.rows("/things?fields=id")
        body = {"thingId": thing["id"], "word": "w"}
        assert [post(service, "/extras", body).status for _ in range(2)] == [201, 409]
        assert [change["rowId"] for change in service.changes("/extras/changes")["data"]] != []


def test_a_renamed_class_does_not_begin_empty_without_a_word(outside: Outside) -> None:
    fitted(model_of("class Post(Resource):\n    a: str\n"), outside)
    renamed = model_of("class Article(Resource):\n    a: str\n")
    with pytest.raises(
        StartError, match=r"the table articles is missing\.\nIt has the tables of another model: posts\."
    ):
        fitted(renamed, outside)
    assert report_of(renamed, outside, add_columns=True) == "Made the table articles."
    assert outside.sql("SELECT count(*) FROM posts") == [(0,)]


def test_a_renamed_field_is_told(outside: Outside, runner: asyncio.Runner) -> None:
    with in_process(model("a: str", "b: int"), outside.url, runner) as service:
        fill(service, {"a": "x", "b": 1})
    rename = 'ALTER TABLE "things" RENAME COLUMN "a" TO "title"'
    for how in ({}, {"add_columns": True}):
        with pytest.raises(StartError, match=rename) as caught:
            fitted(model("title: str", "b: int"), outside, **how)
        assert "the column things.title" in str(caught.value)
    outside.sql(rename)
    with in_process(model("title: str", "b: int"), outside.url, runner) as service:
        assert service.rows("/things?fields=title,b") == [{"title": "x", "b": 1}]
        assert service.get("/things/changes").status == 200
    assert report_of(model("name: str | None", "b: int"), outside, add_columns=True) == (
        'Added the column things.name (if it is title under another name: ALTER TABLE "things" RENAME COLUMN "title" TO "name"). '
        "Kept the column things.title, which the model no longer has, and let it be null."
    )


def test_a_column_that_needs_a_value_is_added_where_there_are_no_rows(outside: Outside, runner: asyncio.Runner) -> None:
    fitted(model("a: str"), outside)
    new = model(
        "a: str", "b: int", "group: Group", "code: Annotated[str, Unique()]", "c: Annotated[str | None, Unique()]"
    )
    assert report_of(new, outside, add_columns=True) == (
        "Added the column things.b. Added the column things.group_id. Added the column things.code. Added the column things.c. "
        "Made things.code unique. Made an index on things.group_id. Made things.c unique."
    ).replace(
        "Made things.code unique. Made an index on things.group_id.",
        "Made an index on things.group_id. Made things.code unique.",
    )
    assert report_of(new, outside) == ""
    with in_process(new, outside.url, runner) as service:
        group = post(service, "/groups", {}).json()["id"]
        body = {"a": "x", "b": 1, "groupId": group, "code": "k"}
        assert [post(service, "/things", body).status for _ in range(2)] == [201, 409]


CASCADE = 'group: Annotated[Group | None, OnDelete("cascade")] = None'


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (CASCADE, "the column things.group_id has ON DELETE RESTRICT and should have ON DELETE CASCADE."),
        ("group: Band | None = None", "the column things.group_id refers to groups and should refer to bands."),
    ],
)
def test_a_foreign_key_that_changes_is_applied_or_refused(
    outside: Outside, runner: asyncio.Runner, new: str, said: str
) -> None:
    with in_process(model("group: Group | None = None"), outside.url, runner) as service:
        group = post(service, "/groups", {}).json()["id"]
        fill(service, {} if "Band" in new else {"groupId": group})
    assert report_of(model(new), outside) == said
    if outside.is_sqlite:
        assert report_of(model(new), outside, add_columns=True) == said
        return
    assert report_of(model(new), outside, add_columns=True) == "Made the foreign key of things.group_id anew."
    assert report_of(model(new), outside) == ""
    if new is CASCADE:
        with in_process(model(new), outside.url, runner) as service:
            assert service.send("DELETE", f"/groups/{group}").status == 204
            assert service.rows("/things?fields=id") == []


def test_a_table_of_sqlite_can_be_made_anew_by_hand(new_sqlite: NewDatabase, runner: asyncio.Runner) -> None:
    """As docs/reference/model.md has it."""
    outside = Outside(new_sqlite())
    with in_process(model("group: Group | None = None"), outside.url, runner) as service:
        group = post(service, "/groups", {}).json()["id"]
        fill(service, {"groupId": group})
    ((text,),) = outside.sql("SELECT sql FROM sqlite_schema WHERE name = 'things'")
    outside.sql(
        "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; BEGIN; ALTER TABLE things RENAME TO old_things; "
        f"{text.replace('RESTRICT', 'CASCADE')}; INSERT INTO things SELECT * FROM old_things; DROP TABLE old_things; COMMIT"
    )
    assert report_of(model(CASCADE), outside, add_columns=True) == "Made an index on things.group_id."
    with in_process(model(CASCADE), outside.url, runner) as service:
        assert service.send("DELETE", f"/groups/{group}").status == 204
        assert service.rows("/things?fields=id") == []
        assert [each["kind"] for each in service.changes("/things/changes")["data"]] == ["CREATED", "DELETED"]


def test_a_foreign_key_over_rows_that_it_forbids_is_refused(outside: Outside, runner: asyncio.Runner) -> None:
    with in_process(model("group: Group | None = None"), outside.url, runner) as service:
        fill(service, {"groupId": post(service, "/groups", {}).json()["id"]})
    said = report_of(model("group: Band | None = None"), outside, add_columns=True)
    assert said.startswith("the column things.group_id refers to groups and should refer to bands")
    assert outside.is_sqlite or said.endswith(", and rows refer to groups.")


def test_a_foreign_key_to_another_table_is_not_made_over_equal_ids(outside: Outside, runner: asyncio.Runner) -> None:
    """Both tables have a row 1, and they are not the same thing."""
    head = (
        "\nclass Group(Resource, ids='integer'):\n    access = (grant('read', 'create'),)\n"
        "\nclass Band(Resource, ids='integer'):\n    access = (grant('read', 'create'),)\n"
        "\nclass Thing(Resource):\n    group: {}\n    access = (grant('read', 'create'),)\n"
    )
    with in_process(model_of(head.format("Group")), outside.url, runner) as service:
        assert post(service, "/bands", {}).json()["id"] == post(service, "/groups", {}).json()["id"] == "1"
        fill(service, {"groupId": "1"})
    said = report_of(model_of(head.format("Band")), outside, add_columns=True)
    assert said.startswith("the column things.group_id refers to groups and should refer to bands")


# nodes of different ages, and databases of earlier versions


def test_an_older_node_leaves_what_a_newer_one_has_added(outside: Outside, runner: asyncio.Runner) -> None:
    """It starts, and makes no triggers that would forget the new columns."""
    old, new = model("a: str"), model("a: str", "extra: str = 'x'", "mark: Annotated[str | None, Unique()] = None")
    fitted(old, outside)
    fitted(new, outside, add_columns=True)
    before = outside.catalogue()
    assert report_of(old, outside) == "" == report_of(old, outside, add_columns=True)
    assert outside.catalogue() == before
    with in_process(new, outside.url, runner) as service:
        fill(service, {"a": "x", "extra": "NEW"})
        (change,) = service.changes("/things/changes?fields=extra")["data"]
        assert change["thing"] == {"extra": "NEW"}
    assert report_of(new, outside) == ""


def forget(outside: Outside) -> None:
    outside.sql("DROP TABLE diptych_schema")


def test_a_database_without_a_record_gets_one_from_the_model(outside: Outside, runner: asyncio.Runner) -> None:
    with in_process(model(MONEY, "b: Colour"), outside.url, runner) as service:
        fill(service, {"a": "12.50", "b": "red"})
    forget(outside)
    found = fitted(model(MONEY, "b: Colour"), outside)
    assert found.done == ()
    assert len(found.doubts) == outside.is_sqlite
    assert all("things.a as Decimal(8,2)" in doubt for doubt in found.doubts)
    assert fitted(model(MONEY, "b: Colour"), outside).doubts == ()
    assert report_of(model(MORE, "b: Colour"), outside)[:3] == "the"


def test_a_database_without_a_record_is_looked_through_for_values_that_no_enum_has(
    outside: Outside, runner: asyncio.Runner
) -> None:
    with in_process(model("b: Colours"), outside.url, runner) as service:
        fill(service, {"b": "green"})
    forget(outside)
    assert report_of(model("b: Colour"), outside) == "the column things.b holds values that are not one of red, blue."


def test_a_record_of_a_later_form_is_refused(outside: Outside) -> None:
    fitted(model("a: str"), outside)
    outside.sql("UPDATE diptych_schema SET format = 99")
    with pytest.raises(StartError, match="by a later version of Diptych"):
        fitted(model("a: str"), outside)


def test_processes_that_start_at_once_change_the_database_once(outside: Outside) -> None:
    fitted(model("a: str"), outside)
    new = model("a: str", "b: int = 3", "c: Annotated[str | None, Unique()] = None")

    async def work() -> list[Fitted]:
        stores = [connect(Config(database=outside.url)) for _ in range(4)]
        try:
            return await asyncio.gather(*(store.open(new, add_columns=True) for store in stores))
        finally:
            await asyncio.gather(*(store.close() for store in stores))

    assert sorted(len(each.done) for each in asyncio.run(work())) == [0, 0, 0, 3]


def test_the_record_says_all_that_the_model_means(outside: Outside) -> None:
    fitted(
        model(
            MONEY,
            "b: Annotated[Colour, Index()] = Colour.red",
            'group: Annotated[Group | None, OnDelete("set null")]',
            "c: Annotated[str, MaxLen(3), Unique()]",
        ),
        outside,
    )
    ((text,),) = outside.sql("SELECT columns FROM diptych_schema WHERE name = 'things'")
    found = json.loads(text)
    assert {name: found[name] for name in ("id", "a", "b", "group_id", "c")} == {
        "id": {"type": "ID"},
        "a": {"type": "Decimal", "precision": 8, "scale": 2, "nullable": True},
        "b": {"type": "Enum", "values": ["red", "blue"], "indexed": True, "default": "red"},
        "group_id": {"type": "ID", "nullable": True, "indexed": True, "target": "groups", "on_delete": "set null"},
        "c": {"type": "String", "unique": True, "rules": ["MaxLen(length=3)"]},
    }


# the commands


FILE = """from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from diptych import Digits, Model, Resource, grant


class Invoice(Resource):
    total: Annotated[Decimal, Digits({})]
    access = (grant("read"),)


model = Model(Invoice)
"""


def test_every_command_that_opens_a_database_refuses_it(
    command: Command, tmp_path: Path, new_sqlite: NewDatabase
) -> None:
    outside = Outside(new_sqlite())
    (tmp_path / "new_invoices.py").write_text(FILE.format("10, 4"))
    fitted(model_of("class Invoice(Resource):\n    total: Annotated[Decimal, Digits(8, 2)]\n"), outside)
    outside.sql(f"INSERT INTO invoices (id, total) VALUES ('{KEY}', 1250)")
    said = "The database does not fit the model: the column invoices.total holds values of the type Decimal(8,2), and the model has Decimal(10,4)."
    to = ("--database", outside.url)
    for arguments in (
        ("check", "new_invoices:model"),
        ("serve", "new_invoices:model"),
        ("dev", "new_invoices:model"),
        ("token", "new_invoices:model"),
        ("account", "list", "--model", "new_invoices:model"),
    ):
        done = command(*arguments, *to)
        assert (done.returncode, done.stderr.splitlines()[:1]) == (2, [said]), done
    outside.sql("UPDATE invoices SET total = total * 100")
    done = command("check", "new_invoices:model", *to, "--accept")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [
        "Forgot the changes so far, which hold invoices.total with another meaning.",
        "The database has it on record what the model means by its columns.",
    ]
    assert command("check", "new_invoices:model", *to).stdout.count("\n") == 1


def test_accept_needs_a_database_that_is_there(command: Command, tmp_path: Path) -> None:
    done = command("check", "--accept")
    assert (done.returncode, done.stderr) == (2, "--accept is about a database: name it by --database URL.\n")
    done = command("check", "--accept", "--database", "sqlite:///none.db")
    assert done.returncode == 2 and not (tmp_path / "none.db").exists()


def test_the_table_of_differences_is_the_one_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "model.md").read_text()
    assert "## Changing the model" in page and "### Changing a database by hand" in page
    assert "Changing a database by hand" in differences._BY_HAND
