"""Keys of tables that others made: natural ones, and those of several columns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

import pytest

from diptych import Column, Digits, Id, Model, Resource, Viewer, allow, grant
from diptych.db.postgres.read_batches import ReadBatches
from diptych.serve.http.request import Request
from tests.contract.existing.northwind import MODEL
from tests.support.existing import make_existing, run_sql
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase

ODD = "a,b%"
OWNER = "00000000-0000-7000-8000-000000000001"
OTHERS = [f"00000000-0000-7000-8000-0000000001{number:02d}" for number in range(6)]


@pytest.fixture
def service(new_database: NewDatabase) -> Iterator[Service]:
    database = make_existing(new_database(), "northwind")
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        yield service


def send(service: Service, method: str, url: str, body: Any = None, **headers: str) -> Answer:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    data = b"" if body is None else json.dumps(body).encode()
    return service.send(method, url, body=data, headers=sent, token=service.token(None, "admin"))


def test_a_natural_key_is_the_id(service: Service) -> None:
    assert service.get("/customers/ALFKI?fields=id,company,orders(id)").json() == {
        "id": "ALFKI",
        "company": "Alfreds",
        "orders": [{"id": "1"}],
    }
    assert service.get(f"/customers/{quote(ODD)}?fields=company").json() == {"company": 'Odd "one"'}
    assert service.data('{ customer(id: "nobody") { id } }') == {"customer": None}
    assert service.data('{ orders(where: {customerId: {in: ["BERGS"]}}) { id customer { company } } }') == {
        "orders": [{"id": "2", "customer": {"company": "Berglunds"}}]
    }


@pytest.mark.parametrize("size", [1, 2])
def test_pages_by_a_natural_key(service: Service, size: int) -> None:
    """Also with keys whose characters JSON or a cursor would take for its own."""
    for number, odd in enumerate(('x"y', "\\", "Ä,ö")):
        assert send(service, "POST", "/customers", {"id": odd, "company": str(number)}).status == 201
    expected = sorted(["ALFKI", ODD, "BERGS", 'x"y', "\\", "Ä,ö"])
    seen: list[str] = []
    after = None
    document = """query($size: Int, $after: String) { customersConnection(first: $size, after: $after) {
      edges { cursor node { id } } pageInfo { hasNextPage endCursor } } }"""
    while True:
        page = service.data(document, {"size": size, "after": after})["customersConnection"]
        seen += [edge["node"]["id"] for edge in page["edges"]]
        after = page["pageInfo"]["endCursor"]
        assert after == page["edges"][-1]["cursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert seen == expected
    rest: list[str] = []
    url = f"/customers?fields=id&first={size}"
    while True:
        listed = service.get(url).json()
        rest += [row["id"] for row in listed["data"]]
        if listed["page"]["next"] is None:
            break
        url = f"/customers?fields=id&first={size}&after={listed['page']['next']}"
    assert rest == expected


def test_clients_give_a_natural_key(service: Service) -> None:
    made = send(service, "POST", "/customers?fields=id", {"id": "NEW/1", "company": "New"})
    assert (made.status, made.json()) == (201, {"id": "NEW/1"}), made.body
    assert made.headers["location"] == "/customers/NEW%2F1"
    missing = send(service, "POST", "/customers", {"company": "New"})
    assert (missing.status, missing.places) == (422, ["/id"])
    taken = send(service, "POST", "/customers", {"id": "ALFKI", "company": "New"})
    assert (taken.status, taken.places) == (409, ["/id"])
    for wrong in ("", None):
        assert send(service, "POST", "/customers", {"id": wrong, "company": "New"}).status == 422
    assert send(service, "POST", "/regions?fields=id", {"id": "7", "name": "North"}).json() == {"id": "7"}
    data = service.data(
        'mutation { createRegion(input: {id: "8", name: "South"}) { id name version } }',
        token=service.token(None, "admin"),
    )
    assert (data["createRegion"]["id"], data["createRegion"]["name"]) == ("8", "South")
    changed = send(service, "PATCH", "/regions/8?fields=name", {"name": "S"})
    assert changed.json() == {"name": "S"}
    assert send(service, "PATCH", "/regions/8", {"id": "9"}).status == 422


def test_a_key_of_several_columns(service: Service) -> None:
    assert service.get("/order-lines?fields=id,quantity").json()["data"] == [
        {"id": "1,1", "quantity": 10},
        {"id": "1,2", "quantity": 5},
        {"id": "2,1", "quantity": 1},
    ]
    assert service.get("/order-lines/1,2?fields=quantity").json() == {"quantity": 5}
    changed = send(service, "PATCH", "/order-lines/2,1?fields=id,quantity", {"quantity": 2})
    assert changed.json() == {"id": "2,1", "quantity": 2}
    assert service.get("/order-lines/2").status == service.get("/order-lines/1,2,1").status == 404
    made = send(
        service, "POST", "/order-lines?fields=id,note,version", {"orderId": "2", "productId": "2", "quantity": 3}
    )
    assert (made.status, made.json()["id"], made.json()["note"]) == (201, "2,2", None), made.body
    line = f"/order-lines/{quote('2,2')}"
    changed = send(service, "PATCH", f"{line}?fields=note", {"note": "x"}, if_match=made.headers["etag"])
    assert (changed.status, changed.json()) == (200, {"note": "x"})
    assert send(service, "PATCH", line, {"note": "y"}, if_match=made.headers["etag"]).status == 412
    assert send(service, "PATCH", line, {"productId": "1"}).status in (403, 422)
    taken = send(service, "POST", "/order-lines", {"orderId": "1", "productId": "1", "quantity": 3})
    assert taken.status == 409
    assert send(service, "DELETE", line).status == 204
    assert service.get("/orders/1?fields=lines(id,product(name))").json()["lines"][1] == {
        "id": "1,2",
        "product": {"name": "Tea"},
    }


def test_many_rows_at_once(service: Service) -> None:
    where = quote(json.dumps({"company": {"contains": "e"}}))
    answer = send(service, "PATCH", f"/customers?where={where}&most=9", {"contact": "X"})
    assert answer.status == 200, answer.body
    answer = send(service, "DELETE", "/order-lines?where=" + quote(json.dumps({"quantity": {"gt": 4}})) + "&most=9")
    assert answer.status == 200, answer.body
    assert [row["id"] for row in service.get("/order-lines?fields=id").json()["data"]] == ["2,1"]


def test_changes_are_refused(service: Service) -> None:
    refused = service.get("/customers/changes")
    assert (refused.status, refused.json()["detail"]) == (
        404,
        "Changes of customers are not recorded, and cannot be followed.",
    )
    document = service.get("/openapi.json").json()
    assert "/customers" in document["paths"]
    assert "/customers/changes" not in document["paths"]


class Note(Resource, view="notes", key="code", ids="text"):
    """Its key is not unique, although it must be."""

    owner: Id
    secret: str

    @allow("read")
    def own(self, viewer: Viewer) -> bool:
        return self.owner == viewer.id


class Memo(Resource, table="memos", key="id", ids="text", managed=False):
    """Refers to such a row."""

    note: Annotated[Note | None, Column("note")] = None

    access = (grant("read"),)


def test_a_key_that_is_not_unique_shows_nobody_a_row_of_another(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = new_database()
    rows = ", ".join(f"('k', '{OWNER}', 'hidden {number}')" for number in range(2))
    run_sql(database, "CREATE TABLE kept (code text NOT NULL, owner text NOT NULL, secret text NOT NULL)")
    run_sql(database, f"INSERT INTO kept VALUES {rows}")
    owner = "CAST(owner AS uuid)" if database.startswith("postgres") else "owner"
    run_sql(database, f"CREATE VIEW notes AS SELECT code, {owner} AS owner, secret FROM kept")
    run_sql(database, "CREATE TABLE memos (id text PRIMARY KEY, note text)")
    run_sql(database, "INSERT INTO memos VALUES ('m', 'k')")
    monkeypatch.setattr(ReadBatches, "fast", 60.0)
    monkeypatch.setattr(ReadBatches, "budget", 60.0)

    async def ask(service: Service, user: str) -> int:
        token = service.token(user).encode()
        request = Request("GET", "/notes/k", "", {b"authorization": b"Bearer " + token}, no_body)
        return (await service.handler.handle(request)).status

    async def together(service: Service) -> list[int]:
        return await asyncio.gather(*(asyncio.create_task(ask(service, user)) for user in [OWNER, *OTHERS] * 4))

    with asyncio.Runner() as runner, in_process(Model(Note, Memo), database, runner) as service:
        for _ in range(20):
            assert runner.run(together(service)) == [200, *[404] * len(OTHERS)] * 4
        shown = service.data(
            '{ note(id: "k") { code: id } memo(id: "m") { note { secret } } }', token=service.token(OWNER)
        )
        assert shown["note"] == {"code": "k"} and shown["memo"]["note"]["secret"].startswith("hidden")


async def no_body(size: int) -> bytes:
    return b""


class Card(Resource, table="cards", key="code", ids="text", managed=False):
    """Has a key whose case does not count for its database."""

    owner: Annotated[str, Column("owner")]

    access = (grant("read", "create", "update", "delete"),)


class Slip(Resource, table="slips", key=("code", "number"), managed=False):
    """Has such a key of two columns."""

    code: Annotated[str, Column("code")]
    number: Annotated[int, Column("number")]
    owner: Annotated[str, Column("owner")]

    access = (grant("read", "create", "update", "delete"),)


def test_an_id_is_the_same_characters_whatever_the_collation_of_the_column(new_database: NewDatabase) -> None:
    database = new_database()
    loose = "text COLLATE NOCASE" if database.startswith("sqlite") else "text"
    run_sql(database, f"CREATE TABLE cards (code {loose} PRIMARY KEY NOT NULL, owner text NOT NULL)")
    run_sql(
        database,
        f"CREATE TABLE slips (code {loose} NOT NULL, number integer NOT NULL, owner text NOT NULL, PRIMARY KEY (code, number))",
    )
    run_sql(database, "INSERT INTO cards VALUES ('ALFKI', 'ann')")
    run_sql(database, "INSERT INTO slips VALUES ('ALFKI', 1, 'ann')")
    with asyncio.Runner() as runner, in_process(Model(Card, Slip), database, runner) as service:
        for path in ("/cards/alfki", "/slips/alfki,1"):
            assert service.get(path).status == 404
            for method, body in (("PATCH", {"owner": "x"}), ("DELETE", None)):
                assert send(service, method, path, body).status == 404, (method, path)
        for path in ("/cards/ALFKI", "/slips/ALFKI,1"):
            assert send(service, "PATCH", path, {"owner": "bo"}).json()["owner"] == "bo"
            assert send(service, "DELETE", path).status == 204


class Reading(
    Resource, table="readings", key=("at", "local", "day", "hour", "valid", "level"), managed=False, triggers=True
):
    """Has a key of columns whose texts are others in the database than in a request."""

    at: datetime
    local: datetime
    day: date
    hour: time
    valid: bool
    level: Annotated[Decimal, Digits(8, 2)]
    note: str

    access = (grant("read", "update", "delete"),)


READINGS = {
    "sqlite": (
        "CREATE TABLE readings (at TEXT NOT NULL, local TEXT NOT NULL, day TEXT NOT NULL, hour TEXT NOT NULL, "
        "valid BOOLEAN NOT NULL, level INTEGER NOT NULL, note TEXT NOT NULL, "
        "PRIMARY KEY (at, local, day, hour, valid, level))",
        "INSERT INTO readings VALUES ('2026-01-02T03:04:05.500000Z', '2026-01-02T00:00:00.000000Z', '2026-01-02', "
        "'08:30:00.000000', 1, 150, 'a')",
    ),
    "postgres": (
        "CREATE TABLE readings (at timestamptz, local timestamp, day date, hour time, valid boolean, "
        "level numeric(8, 2), note text NOT NULL, PRIMARY KEY (at, local, day, hour, valid, level))",
        "INSERT INTO readings VALUES ('2026-01-02T03:04:05.5Z', '2026-01-02', '2026-01-02', '08:30', true, 1.5, 'a')",
    ),
}


def test_an_id_that_was_given_is_taken(new_database: NewDatabase) -> None:
    database = new_database()
    for statement in READINGS["sqlite" if database.startswith("sqlite") else "postgres"]:
        run_sql(database, statement)
    with asyncio.Runner() as runner, in_process(Model(Reading), database, runner) as service:
        (row,) = service.get("/readings").json()["data"]
        path, follow = f"/readings/{quote(row['id'])}", "subscription($id: ID) { readingChanged(id: $id) { rowId } }"
        assert service.get(path).json() == row
        assert service.data("query($id: ID!) { reading(id: $id) { note } }", {"id": row["id"]}) == {
            "reading": {"note": "a"}
        }
        for odd in (row["id"].replace(",1", ",x").replace(",true", ",x"), row["id"] + "9" * 30, row["id"] + ",1"):
            assert service.get(f"/readings/{quote(odd)}").status == 404
        stream = service.follow(follow, {"id": row["id"]})
        assert send(service, "PATCH", path, {"note": "b"}).status == 200
        service.settle()
        assert stream.events == [{"rowId": row["id"]}]
        assert send(service, "DELETE", path).status == 204
