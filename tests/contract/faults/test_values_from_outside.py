"""What SQL from outside may leave in a column breaks no answer, in no style: JSON stays JSON, types hold, streams go on.

A database takes more than a type allows: NaN on PostgreSQL, text in an INTEGER column on SQLite. Such a value is null
where the field may be null. Where it may not, the object that would hold it is null in its place, or left out of its
list; a change is told without its row.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, NoReturn

import apsw
import asyncpg
import pytest

from diptych import BigInt, Digits, Json, Model, OnDelete, Resource, computed, grant, inverse
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase, Postgres


class Color(StrEnum):
    red = "red"
    blue = "blue"


class Box(Resource, plural="boxes"):
    name: str
    parcels: list[Parcel] = inverse("box")
    access = (grant("read", "create", "update", "delete"),)


class Parcel(Resource):
    """One of every type, that may be null and that may not."""

    box: Annotated[Box, OnDelete("cascade")]
    labels: list[Label] = inverse("parcel")
    text: str
    maybe_text: str | None = None
    number: int
    maybe_number: int | None = None
    big: BigInt
    maybe_big: BigInt | None = None
    money: Annotated[Decimal, Digits(8, 2)]
    maybe_money: Annotated[Decimal | None, Digits(8, 2)] = None
    whole: Annotated[Decimal, Digits(4, 0)]
    ratio: float
    maybe_ratio: float | None = None
    day: date
    maybe_day: date | None = None
    moment: datetime
    maybe_moment: datetime | None = None
    at: time
    maybe_at: time | None = None
    flag: bool = False
    maybe_flag: bool | None = None
    color: Color
    maybe_color: Color | None = None
    data: Json
    maybe_data: Json | None = None
    access = (grant("read", "create", "update", "delete"),)

    @computed(needs=("moment", "ratio"))
    def year(self) -> int:
        return self.moment.year if self.ratio == self.ratio else 0


class Label(Resource):
    parcel: Annotated[Parcel, OnDelete("cascade")]
    access = (grant("read", "create", "update", "delete"),)


model = Model(Box, Parcel, Label)
ROOM = "00000000-0000-7000-8000-00000000000b"
IDS = [f"00000000-0000-7000-8000-00000000000{n}" for n in range(1, 4)]
VICTIM = IDS[1]
GOOD: dict[str, Any] = {
    "text": "t",
    "number": 2,
    "big": 2,
    "money": Decimal("2.00"),
    "whole": Decimal(2),
    "ratio": 2.0,
    "day": "2026-01-02",
    "moment": "2026-01-02T00:00:00.000000Z",
    "at": "08:30:00.000000",
    "flag": True,
    "color": "red",
    "data": {"a": 1},
}
STAMP = "2026-01-02T00:00:00.000000Z"
SERVER = {"version": 1, "createdAt": STAMP, "updatedAt": STAMP}
ROWS = {
    "Box": [{"id": ROOM, "name": "box", **SERVER}],
    "Parcel": [{"id": each, "boxId": ROOM, **GOOD, **SERVER} for each in IDS],
    "Label": [{"id": each, "parcelId": each, **SERVER} for each in IDS],
}
TYPES: dict[str, Any] = {
    "text": str,
    "number": int,
    "big": str,
    "money": str,
    "whole": str,
    "ratio": (int, float),
    "day": str,
    "moment": str,
    "at": str,
    "flag": bool,
    "color": str,
    "id": str,
    "version": int,
}
HOSTILE = """'a"b\\c'"""
SQLITE = {
    "text": ("x'ff00'", "CAST(x'22ff61' AS TEXT)", "CAST(x'eda080' AS TEXT)", "'a' || char(0) || 'b'", HOSTILE, "7"),
    "number": ("'abc'", "1.5", "x'01'", "5000000000", "9e999", HOSTILE),
    "big": ("'abc'", "1.5", "1e30"),
    "money": ("'abc'", "1.5", "-9223372036854775807 - 1", "99999999999", "9e999"),
    "whole": ("'abc'", "1.5", "123456", HOSTILE),
    "ratio": ("'abc'", "9e999", "-9e999", HOSTILE),
    "day": ("''", HOSTILE, "'infinity'", "5"),
    "moment": ("''", HOSTILE, "'2026-01-02 03:04:05'", "5"),
    "at": ("''", HOSTILE, "'24:00'", "5"),
    "flag": ("7", "'abc'", "0.5", HOSTILE),
    "color": ("'green'", "''", HOSTILE),
    "data": (
        "'{'",
        "'NaN'",
        "''",
        HOSTILE,
        "'[1,,]'",
        "CAST(x'22ff22' AS TEXT)",
        "printf('%.*c', 5000, '[')",
        "'\"\\uD800\"'",
    ),
    "version": ("'abc'",),
    "created_at": (HOSTILE,),
}
POSTGRES = {
    "text": (HOSTILE, "E'\\u0001'"),
    "money": ("'NaN'",),
    "whole": ("'NaN'",),
    "ratio": ("'NaN'", "'Infinity'", "'-Infinity'"),
    "day": ("'infinity'", "'-infinity'", "'0044-03-15 BC'", "'12026-01-01'"),
    "moment": ("'infinity'", "'-infinity'", "'0044-03-15 12:00 BC'", "'12026-01-01'"),
    "at": ("'24:00'",),
    "color": ("'green'", "''", HOSTILE),
    "data": ("""'{"a": "\\u0000"}'""", """'{"a\\ud800": "\\ud800", "b": "\\udc00x"}'""", "'1e400'", """'"\\ud800"'"""),
    "created_at": ("'infinity'",),
}
CASES = {"sqlite": SQLITE, "postgres": POSTGRES}
PLAIN = "id version text number big money whole ratio day moment at flag color data maybeNumber maybeRatio maybeData maybeMoment"


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, new_database(), runner, ROWS) as found:
        yield found


def strict(answer: Answer | bytes) -> Any:
    """The value of JSON that every parser takes: UTF-8, and no NaN."""
    body = answer if isinstance(answer, bytes) else answer.body

    def constant(name: str) -> NoReturn:
        raise AssertionError(f"{name} is no JSON: {body!r}")

    return json.loads(body.decode(), parse_constant=constant)


def columns(store: str) -> Iterator[tuple[str, str]]:
    """Every value that no column should hold, in columns that may be null and in others."""
    for name, values in CASES[store].items():
        for column in (name, f"maybe_{name}"):
            if column in Parcel.__annotations__ or column == name:
                yield from ((column, value) for value in values)


def spoil(service: Service, column: str, value: str) -> bool:
    """Write a value from outside; a database may refuse it."""
    try:
        service.execute(f"UPDATE parcels SET {column} = {value} WHERE id = '{VICTIM}'")
    except (apsw.Error, asyncpg.PostgresError):
        return False
    return True


def mend(service: Service, column: str) -> None:
    service.execute(
        f"UPDATE parcels SET {column} = (SELECT {column} FROM parcels WHERE id = '{IDS[0]}') WHERE id = '{VICTIM}'"
    )


def check(row: Any) -> None:
    """A row has the types that the model says."""
    for name, kind in TYPES.items():
        if name in row:
            assert isinstance(row[name], kind) and (name == "flag" or not isinstance(row[name], bool)), (name, row)
    assert row.get("color") in ("red", "blue", None)


@pytest.mark.slow
def test_a_value_that_no_type_allows_breaks_no_answer(service: Service) -> None:
    store = service.app.store.dialect.name
    faults: dict[tuple[str, str], str] = {}
    for column, value in columns(store):
        try:
            _broken_by(service, column, value, odd=column == "moment" and store == "sqlite")
        except AssertionError as error:
            faults[column, value] = str(error)
    assert not faults


def _broken_by(service: Service, column: str, value: str, odd: bool) -> None:
    """Try everything while a column holds the value. An `odd` one is text to the database, and nothing to Python."""
    told = service.follow(f"subscription {{ parcelChanged {{ kind rowId parcel {{ {PLAIN} year }} }} }}")
    before = service.end_of_changes()
    if spoil(service, column, value):
        try:
            shown = _one(service, odd)
            _lists(service, shown)
            _pages(service, column)
            _nested(service, shown)
            _filters(service, column)
            _written(service, odd)
        finally:
            mend(service, column)
        service.settle()
        assert told.ended is None, "the stream goes on"
        _changes(service, [strict(body) for body in told.bodies], before)
    told.close()
    assert service.get(f"/parcels/{VICTIM}").status == 200


def _one(service: Service, odd: bool) -> bool:
    """Does the row show, by itself?"""
    answer = service.get(f"/parcels/{VICTIM}?fields={','.join(PLAIN.split())}")
    assert answer.status in (200, 404), answer.body
    body = strict(answer)
    if answer.status == 200:
        check(body)
    found = strict(service.query(f'{{ parcel(id: "{VICTIM}") {{ {PLAIN} }} }}'))
    assert found == {"data": {"parcel": body if answer.status == 200 else None}}
    whole = service.get(f"/parcels/{VICTIM}")  # with what Python computes of the moment, which may be none
    assert whole.status in ((200, 404, 500) if odd else (200, 404)) and strict(whole)
    return answer.status == 200


def _lists(service: Service, shown: bool) -> None:
    ids = [each for each in IDS if shown or each != VICTIM]
    listed = service.get(f"/parcels?count=exact&fields={','.join(PLAIN.split())}")
    assert listed.status == 200, listed.body
    rows = strict(listed)["data"]
    assert [row["id"] for row in rows] == ids
    for row in rows:
        check(row)
    parts = f"totalCount nodes {{ {PLAIN} }} edges {{ cursor node {{ {PLAIN} }} }}"
    data = strict(service.query(f"{{ parcels {{ {PLAIN} }} parcelsConnection {{ {parts} }} }}"))["data"]
    assert data["parcels"] == data["parcelsConnection"]["nodes"] == rows
    assert [edge["node"] for edge in data["parcelsConnection"]["edges"]] == rows


def _pages(service: Service, column: str) -> None:
    """One row at a time, a cursor leads to every row once, whatever is sorted by."""
    name = service.app.model.resources["Parcel"].fields
    wire = next(field for field in name.values() if field.stored and field.column == column)
    for direction in ("", "-") if wire.scalar.sortable else ():
        url, seen = f"/parcels?first=1&fields=id&sort={direction}{wire.name}", []
        for _ in range(len(IDS)):
            answer = service.get(url)
            if answer.status == 400 and wire.name in ("text", "maybeText"):
                return  # a cursor cannot hold text that is no Unicode
            assert answer.status == 200, answer.body
            body = strict(answer)
            seen += [row["id"] for row in body["data"]]
            url = f"/parcels?first=1&fields=id&sort={direction}{wire.name}&after={body['page']['next']}"
        assert sorted(seen) == IDS and body["page"]["next"] is None


def _nested(service: Service, shown: bool) -> None:
    document = f"{{ boxes {{ name parcels {{ {PLAIN} }} }} labels {{ id parcel {{ {PLAIN} }} }} }}"
    data = strict(service.query(document))["data"]
    ids = [each for each in IDS if shown or each != VICTIM]
    assert [row["id"] for row in data["boxes"][0]["parcels"]] == ids
    assert [row["parcel"]["id"] for row in data["labels"]] == ids
    label = service.get(f"/labels/{VICTIM}?fields=id,parcel({','.join(PLAIN.split())})")
    assert label.status == (200 if shown else 404) and strict(label)


def _filters(service: Service, column: str) -> None:
    fields = service.app.model.resources["Parcel"].fields.values()
    wire = next(field for field in fields if field.stored and field.column == column)
    for where in ({"isNull": True}, {"isNull": False}):
        answer = service.query("query ($w: ParcelWhere) { parcels(where: $w) { id } }", {"w": {wire.name: where}})
        assert answer.status == 200 and strict(answer)
    answer = service.get('/boxes?where={"parcels":{"some":{"number":{"gt":1},"ratio":{"gte":1}}}}')
    assert answer.status == 200 and strict(answer)


def _written(service: Service, odd: bool) -> None:
    """A change of something else is made, or refused as a whole."""
    body = json.dumps({"maybeText": "new"}).encode()
    answer = service.send("PATCH", f"/parcels/{VICTIM}", headers={"content-type": "application/json"}, body=body)
    assert answer.status in ((200, 409, 500) if odd else (200, 409)), answer.body
    assert strict(answer)


def _changes(service: Service, streamed: list[Any], before: str) -> None:
    log = strict(service.get(f"/parcels/changes?after={before}"))["data"]
    for change in streamed:
        if change["parcel"] is not None:
            check(change["parcel"])
    assert [change["kind"] for change in log] == ["UPDATED"] * len(log) and len(log) == len(streamed) >= 2
    assert streamed[-1]["parcel"] is not None, "the row shows as soon as it is mended"
    for change in log:
        check(change["parcel"] or {})


def test_the_end_of_a_day_is_no_time_on_postgres(postgres: Postgres) -> None:
    """`time` of PostgreSQL goes to 24:00, and a Time to 23:59:59.999999."""
    with asyncio.Runner() as runner, in_process(model, postgres.create(), runner, ROWS) as service:
        service.execute(f"UPDATE parcels SET maybe_at = '24:00' WHERE id = '{VICTIM}'")
        assert service.get(f"/parcels/{VICTIM}?fields=maybeAt").json() == {"maybeAt": None}
        service.execute(f"UPDATE parcels SET at = '24:00' WHERE id = '{VICTIM}'")
        assert service.get(f"/parcels/{VICTIM}?fields=at").status == 404


@pytest.mark.parametrize("name", ['a"b', "a\\b", "é", "x" * 300, "\ud800".encode("utf-8", "surrogatepass")])
def test_an_id_that_is_none_breaks_no_answer_on_sqlite(new_sqlite: NewDatabase, name: str | bytes) -> None:
    raw = name if isinstance(name, bytes) else name.encode()
    with asyncio.Runner() as runner, in_process(model, new_sqlite(), runner, ROWS) as service:
        told = service.follow("subscription { boxChanged { kind rowId box { id name } } }")
        service.execute(f"INSERT INTO boxes (id, name) VALUES (CAST(x'{raw.hex()}' AS TEXT), 'odd')")
        service.execute("INSERT INTO boxes (id, name) VALUES ('1', 'last')")
        for url in ("/boxes", "/boxes?fields=id,parcels(id)", "/boxes/changes", "/parcels?fields=box(id)"):
            assert strict(service.get(url))["data"]
        seen, after = [], ""
        for _ in range(3):
            body = strict(service.get(f"/boxes?first=1&fields=name{after}"))
            seen += [row["name"] for row in body["data"]]
            if body["page"]["next"] is None:
                break
            after = f"&after={body['page']['next']}"
        if not isinstance(name, bytes):
            assert sorted(seen) == ["box", "last", "odd"]
        service.settle()
        assert told.ended is None
        assert [strict(body)["box"]["name"] for body in told.bodies if strict(body)["box"]][-1] == "last"


class Deep(Resource):
    name: str = ""
    data: Json
    access = (grant("read", "create", "update"),)

    @computed(needs="name")
    def size(self) -> int:
        return len(self.name)


@pytest.mark.parametrize("levels", [960, 3_000])
def test_json_that_is_nested_very_deeply_ends_no_stream(new_database: NewDatabase, levels: int) -> None:
    with asyncio.Runner() as runner, in_process(Model(Deep), new_database(), runner) as service:
        kind = {"content-type": "application/json"}
        row = service.send("POST", "/deeps", headers=kind, body=b'{"data":{"a":"]}"}}').json()["id"]
        stream = service.follow("subscription { deepChanged { kind deep { name data size } } }")
        value = "[" * levels + '"\\"]"' + "]" * levels
        service.execute(f"UPDATE deeps SET data = '{value}'")
        assert service.send("PATCH", f"/deeps/{row}", headers=kind, body=b'{"data":{"b":1}}').status in (200, 409)
        for body, patch in ((b'{"name":"x","data":[]}', kind), (b'{"name":"after"}', kind)):
            assert service.send("PATCH", f"/deeps/{row}", headers=patch, body=body).status == 200
        service.settle()
        assert stream.ended is None and [each["kind"] for each in stream.events][-1] == "UPDATED"
        assert stream.events[-1]["deep"] == {"name": "after", "data": [], "size": 5}
        for path in ("/deeps/changes", "/deeps/changes?fields=data,size"):
            assert service.get(path).status == 200
        service.execute(f"UPDATE deeps SET data = '{value}'")
        for path in (f"/deeps/{row}", f"/deeps/{row}?fields=size,data", "/deeps?fields=size,data"):
            assert service.get(path).status in (200, 404), path  # SQLite takes no JSON of more than 1,000 levels


@pytest.mark.parametrize("kind", ["application/merge-patch+json", "application/json-patch+json"])
def test_a_patch_of_json_with_numbers_that_are_no_floats_is_a_conflict(new_sqlite: NewDatabase, kind: str) -> None:
    with asyncio.Runner() as runner, in_process(Model(Deep), new_sqlite(), runner) as service:
        plain = {"content-type": "application/json"}
        row = service.send("POST", "/deeps", headers=plain, body=b'{"data":{}}').json()["id"]
        service.execute("UPDATE deeps SET data = '{\"a\":1e400}'")
        body = b'[{"op":"add","path":"/data/b","value":1}]' if "json-patch" in kind else b'{"data":{"b":1}}'
        answer = service.send("PATCH", f"/deeps/{row}", headers={"content-type": kind}, body=body)
        assert (answer.status, answer.code) == (409, "CONFLICT")
        assert service.send("PATCH", f"/deeps/{row}", headers=plain, body=b'{"data":[1]}').status == 200


def test_blobs_can_be_written_changed_and_deleted_on_sqlite(new_sqlite: NewDatabase) -> None:
    """JSON holds no blob, and the feed is JSON."""
    with asyncio.Runner() as runner, in_process(Model(Deep), new_sqlite(), runner) as service:
        kind = {"content-type": "application/json"}
        row = service.send("POST", "/deeps", headers=kind, body=b'{"data":{}}').json()["id"]
        for blob in ("X'FF00'", "X'6162'"):
            service.execute(f"UPDATE deeps SET name = {blob}")
            assert service.get(f"/deeps/{row}").status == 200
            assert service.get("/deeps/changes").status == 200
            assert service.send("PATCH", f"/deeps/{row}", headers=kind, body=b'{"data":[]}').status == 200
        assert service.get("/deeps/changes").json()["data"][-1]["deep"]["name"] == "ab"
        service.execute("DELETE FROM deeps")
        assert [each["kind"] for each in service.get("/deeps/changes").json()["data"]][-1] == "DELETED"
