"""Ids that clients make: `ids="client"`, and PUT with `If-None-Match: *`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from diptych import Model, Resource, Role, Unique, Viewer, allow, grant, not_
from tests.support.emptied import emptied
from tests.support.in_process import Answer, Service

boss = Role("boss")
ONE, TWO = (f"0198f0c2-0000-7000-8000-00000000000{number}" for number in (1, 2))


class Note(Resource, ids="client"):
    """Is made offline."""

    text: Annotated[str, Unique()]
    hidden: bool = False

    access = (grant("create"), grant("read", "update", to=boss))

    @allow("read", "update")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)


class Page(Resource):
    """Has ids of the server."""

    text: str

    access = (grant("read", "create", "update"),)


class Number(Resource, ids="integer"):
    """Has integer ids."""

    text: str

    access = (grant("read", "create", "update"),)


MODEL = Model(Note, Page, Number)
shared, service = emptied(MODEL, "notes", "pages")


def send(service: Service, method: str, url: str, body: Any, token: str | None = None, **headers: str) -> Answer:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    return service.send(method, url, body=json.dumps(body).encode(), headers=sent, token=token)


def test_a_client_makes_the_id(service: Service) -> None:
    made = send(service, "POST", "/notes?fields=id", {"id": ONE, "text": "a"})
    assert (made.status, made.json(), made.headers["location"]) == (201, {"id": ONE}, f"/notes/{ONE}"), made.body
    document = 'mutation($id: ID) { createNote(input: {id: $id, text: "b"}) { id } }'
    assert service.data(document, {"id": TWO})["createNote"] == {"id": TWO}
    own = service.data('mutation { createNote(input: {text: "c"}) { id } }')["createNote"]["id"]
    assert own not in (ONE, TWO)
    again = send(service, "POST", "/notes", {"id": ONE, "text": "d"})
    assert (again.status, again.places) == (409, ["/id"])
    for wrong in ("x", None, 5):
        assert send(service, "POST", "/notes", {"id": wrong, "text": "e"}).status == 422
    assert send(service, "POST", "/pages", {"id": ONE, "text": "e"}).places == ["/id"]


def test_an_upsert_by_id(service: Service) -> None:
    for status, text in ((201, "a"), (200, "b")):
        answer = send(service, "POST", "/notes?by=id&fields=id,text", {"id": ONE, "text": text})
        assert (answer.status, answer.json()) == (status, {"id": ONE, "text": text})
    assert send(service, "POST", "/notes?by=id", {"text": "c"}).places == ["/id"]
    kept = 'mutation { upsertNote(by: id, input: {id: "%s", text: "c"}, onConflict: KEEP) { text } }'
    assert service.data(kept % ONE)["upsertNote"] == {"text": "b"}


@pytest.mark.parametrize("path", ["notes", "pages"])
def test_put_creates_where_there_is_none(service: Service, path: str) -> None:
    body = {"text": "a"}
    made = send(service, "PUT", f"/{path}/{ONE}?fields=id,version", body, if_none_match="*")
    assert (made.status, made.json()) == (201, {"id": ONE, "version": 1}), made.body
    assert made.headers["location"] == f"/{path}/{ONE}" and made.headers["etag"].startswith('"1.')
    again = send(service, "PUT", f"/{path}/{ONE}", body, if_none_match="*")
    assert (again.status, again.code) == (412, "PRECONDITION_FAILED")
    assert send(service, "PUT", f"/{path}/{ONE}?fields=version", body).json() == {"version": 2}
    assert send(service, "PUT", f"/{path}/{TWO}", body).status == 404
    assert send(service, "PUT", f"/{path}/nothing", body, if_none_match="*").status == 404
    wrong = send(service, "PUT", f"/{path}/{TWO}", {**body, "id": TWO}, if_none_match="*")
    assert (wrong.status, wrong.places) == (422, ["/id"])


def test_put_in_a_batch_and_of_a_hidden_row(service: Service) -> None:
    token = service.token(None, "boss")
    hidden = {"id": ONE, "text": "h", "hidden": True}
    assert send(service, "POST", "/notes", hidden, token).status == 201
    assert send(service, "PUT", f"/notes/{ONE}", {"text": "x"}, if_none_match="*").status == 412
    step = {"method": "PUT", "url": f"/notes/{TWO}?fields=id", "headers": {"if-none-match": "*"}, "body": {"text": "t"}}
    done = send(service, "POST", "/batch", {"requests": [step]}).json()["responses"]
    assert (done[0]["status"], done[0]["headers"]["location"]) == (201, f"/notes/{TWO}")
    assert send(service, "POST", "/batch", {"requests": [step]}).status == 412


def test_integers_are_made_by_the_database(service: Service) -> None:
    assert send(service, "PUT", "/numbers/7", {"text": "x"}, if_none_match="*").status == 404
    assert send(service, "PUT", f"/numbers/{ONE}", {"text": "x"}, if_none_match="*").status == 404


def test_its_reply_is_kept_for_retries(service: Service) -> None:
    token = service.token("0190a000-0000-7000-8000-000000000001")
    for _ in range(2):
        made = send(service, "PUT", f"/pages/{ONE}", {"text": "a"}, token, if_none_match="*", idempotency_key="k")
        assert made.status == 201, made.body
    for _ in range(2):
        made = send(service, "POST", "/notes", {"id": ONE, "text": "a"}, token, idempotency_key="l")
        assert made.status == 201, made.body
