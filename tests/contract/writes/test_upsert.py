"""Upserts: a row is found by a unique key and updated or kept; or else it is created."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest

from diptych import Model, ReadBy, Resource, Role, Unique, Viewer, allow, grant, not_, unique
from diptych.api.reply import Reply
from diptych.serve.http.request import Request
from tests.support.emptied import emptied
from tests.support.in_process import Answer, Service

boss = Role("boss")


class Person(Resource, plural="people"):
    """Has a key that some may not read."""

    email: Annotated[str, Unique()]
    name: str = "?"
    secret: Annotated[str | None, Unique(), ReadBy(boss)] = None
    hidden: bool = False

    access = (grant("create"), grant("read", "update", to=boss))

    @allow("read", "update")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)

    @allow("read", field="secret")
    def revealed(self, viewer: Viewer) -> bool:
        return self.name == "open"


class Seat(Resource, ids="integer"):
    """Has a key of two fields, and a role that may only create."""

    person: Person
    row: int
    note: str | None = None

    keys = (unique("person", "row"),)
    access = (grant("read", "create"), grant("update", to=boss))


class Bare(Resource, plural="bares"):
    """Has no unique key."""

    name: str = ""

    access = (grant("read", "create", "update"),)


MODEL = Model(Person, Seat, Bare)
shared, service = emptied(MODEL, "seats", "people")


def send(service: Service, url: str, body: Any, token: str | None = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"content-type": "application/json", **named}
    return service.send("POST", url, body=json.dumps(body).encode(), headers=sent, token=token)


def test_it_is_created_and_then_updated(service: Service) -> None:
    made = send(service, "/people?by=email&fields=id,name,version", {"email": "zoe@x", "name": "Zoe"})
    assert made.status == 201, made.body
    assert made.headers["location"] == f"/people/{made.json()['id']}"
    again = send(service, "/people?by=email&fields=id,name,version", {"email": "zoe@x", "name": "Zed"})
    assert (again.status, again.json()) == (200, {"id": made.json()["id"], "name": "Zed", "version": 2})
    assert "location" not in again.headers and again.headers["etag"].startswith('"2.')
    document = """mutation($by: PersonUpsertKey!, $how: OnConflict!) {
        upsertPerson(by: $by, input: {email: "zoe@x"}, onConflict: $how) { id name version } }"""
    kept = service.data(document, {"by": "email", "how": "KEEP"})["upsertPerson"]
    assert kept == again.json()
    updated = service.data(document, {"by": "email", "how": "UPDATE"})["upsertPerson"]
    assert updated == {**kept, "version": 3}  # what is not given keeps its value


def test_keeping_changes_and_publishes_nothing(service: Service) -> None:
    url = "/people?by=email&onConflict=keep&fields=name,version"
    end = service.end_of_changes()
    assert send(service, url, {"email": "a@x", "name": "A"}).status == 201
    kept = send(service, url, {"email": "a@x", "name": "B"})
    assert (kept.status, kept.json()) == (200, {"name": "A", "version": 1})
    assert send(service, "/people?by=email", {"email": "a@x", "name": "C"}).status == 200
    kinds = [change["kind"] for change in service.changes(f"/people/changes?after={end}")["data"]]
    assert kinds == ["CREATED", "UPDATED"]


def test_a_key_of_several_fields_and_references_to_steps(service: Service) -> None:
    person = {"id": "p", "method": "POST", "url": "/people?by=email&fields=id", "body": {"email": "p@x"}}
    seat = {"method": "POST", "url": "/seats?by=personId_row&onConflict=keep&fields=id,note"}
    steps = [person, {**seat, "body": {"personId": "$p", "row": 1, "note": "n"}}]
    first, second = (send(service, "/batch", {"requests": steps}) for _ in range(2))
    assert [each["status"] for each in first.json()["responses"]] == [201, 201], first.body
    assert [each["status"] for each in second.json()["responses"]] == [200, 200]
    assert [each["body"] for each in first.json()["responses"]] == [each["body"] for each in second.json()["responses"]]


def test_arrays(service: Service) -> None:
    rows = [{"email": f"{name}@x", "name": name} for name in "aab"]
    made = send(service, "/people/batch?by=email&fields=name,version", rows)
    assert made.status == 201, made.body
    assert made.json() == [{"name": "a", "version": 1}, {"name": "a", "version": 2}, {"name": "b", "version": 1}]
    assert send(service, "/people?by=email&fields=id", rows[1:]).status == 200
    wrong = send(service, "/people?by=email", [{"email": "c@x"}, {"name": "x"}])
    assert (wrong.status, wrong.places) == (422, ["/1/email"])


@pytest.mark.parametrize("how", ["update", "keep"])
def test_a_hidden_row_is_a_conflict_as_on_create(service: Service, how: str) -> None:
    boss_token = service.token(None, "boss")
    body = {"email": "h@x", "name": "H", "hidden": True}
    assert send(service, "/people", body, boss_token).status == 201
    created = send(service, "/people", {"email": "h@x", "name": "I"})
    upserted = send(service, f"/people?by=email&onConflict={how}", {"email": "h@x", "name": "I"})
    assert created.status == 409
    assert (upserted.status, upserted.json()) == (409, created.json())


@pytest.mark.parametrize("how", ["UPDATE", "KEEP"])
def test_a_row_with_a_hidden_key_is_not_found_by_it(service: Service, how: str) -> None:
    token = service.token(None, "boss")
    for name in ("closed", "open"):
        body = {"email": f"{name}@x", "name": name, "secret": f"of {name}"}
        assert send(service, "/people", body, token).status == 201
    given = '{email: "b@x", secret: "of %s"}'
    document = f"mutation {{ upsertPerson(by: secret, input: {given}, onConflict: {how}) {{ email }} }}"
    conflict = service.query(document % "closed")
    created = service.query(f"mutation {{ upsertPerson: createPerson(input: {given % 'closed'}) {{ email }} }}")
    assert conflict.code == "CONFLICT" and conflict.json() == created.json()
    found = service.data(document % "open")["upsertPerson"]
    assert found == {"email": "b@x" if how == "UPDATE" else "open@x"}


def test_whichever_happens_is_judged_by_its_own_rules(service: Service) -> None:
    person = send(service, "/people", {"email": "a@x"}).json()["id"]
    seat = {"personId": person, "row": 1}
    for url in ("/seats?by=personId_row", "/seats?by=personId_row&onConflict=update"):
        assert send(service, url, seat).status == 401  # nobody without a role updates a seat
    assert send(service, "/seats?by=personId_row&onConflict=keep", seat).status == 201
    token = service.token(None, "boss")
    changed = send(service, "/seats?by=personId_row&fields=note", {**seat, "note": "x"}, token)
    assert (changed.status, changed.json()) == (200, {"note": "x"})


def test_what_is_wrong_with_it(service: Service) -> None:
    assert send(service, "/people?by=name", {"email": "a@x"}).status == 400
    assert send(service, "/people?by=email&onConflict=other", {"email": "a@x"}).status == 400
    assert send(service, "/people?onConflict=keep", {"email": "a@x"}).status == 400
    assert send(service, "/bares?by=name", {}).status == 400
    token = service.token(None, "boss")
    wrong = send(service, "/people?by=secret", {"email": "a@x"}, token)
    assert (wrong.status, wrong.places) == (422, ["/secret"])
    null = service.query(
        'mutation { upsertPerson(by: secret, input: {email: "a@x", secret: null}) { id } }', token=token
    )
    assert (null.code, null.places) == ("BAD_USER_INPUT", ["/upsertPerson/input/secret"])
    assert "upsertBare" not in service.data("{ __schema { mutationType { fields { name } } } }").__repr__()


@pytest.mark.parametrize("body", [None, 5, "x"])
def test_of_a_body_that_is_no_object_nothing_else_is_reported(service: Service, body: Any) -> None:
    """As of a create: no field is missing in what has none."""
    document = "mutation($i: PersonCreate!) { upsertPerson(by: email, input: $i) { id } }"
    assert service.query(document, {"i": body}).places == ["/variables/i"]
    assert send(service, "/people?by=email", body).places == send(service, "/people", body).places == [""]
    request = {"method": "POST", "url": "/people?by=email", "body": body}
    assert send(service, "/batch", {"requests": [request]}).places == ["/requests/0/body"]


def test_its_reply_is_kept_for_retries(service: Service) -> None:
    token = service.token("0190a000-0000-7000-8000-000000000001", "boss")
    url, body = "/people?by=email&fields=version", {"email": "k@x"}
    first, second = (send(service, url, body, token, Idempotency_Key="one") for _ in range(2))
    assert (first.status, second.status, second.json()) == (201, 201, {"version": 1})
    assert "idempotency-replayed" in second.headers


def test_its_price(service: Service) -> None:
    answer = send(service, "/people?by=email&fields=id", {"email": "a@x"}, prefer="cost")
    assert "3" in str(answer.headers), answer.headers


WRITERS = 64


def test_writers_of_one_key_make_one_row(service: Service) -> None:
    async def one(number: int) -> Reply:
        async def read(most: int) -> bytes:
            return json.dumps({"email": "race@x", "name": str(number)}).encode()

        headers = {b"content-type": b"application/json"}
        return await service.handler.handle(Request("POST", "/people", "by=email&fields=id,version", headers, read))

    async def race() -> list[Reply]:
        return list(await asyncio.gather(*map(one, range(WRITERS))))

    replies = service.runner.run(race())
    assert sorted(reply.status for reply in replies) == [*[200] * (WRITERS - 1), 201], [each.body for each in replies]
    answers = [json.loads(reply.body) for reply in replies]
    assert len({answer["id"] for answer in answers}) == 1
    assert sorted(answer["version"] for answer in answers) == list(range(1, WRITERS + 1))
    (row,) = service.rows("/people?fields=version")
    assert row["version"] == WRITERS
