"""Defaults that are taken from the viewer: `from_viewer()`, in both styles and on both databases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from graphql import print_schema

from diptych import Model
from diptych.api.graphql.schema import build_schema
from tests.support.in_process import Answer, Service, in_process
from tests.support.mistakes import assert_reported
from tests.support.model_files import model_of

ANN, BOB, GHOST = (f"00000000-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))
NOTES = """
class Member(Viewer):
    team: str | None = None

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        return cls(id=claims.subject, roles=claims.roles, team="red" if admin.name in claims.roles else None)


class User(Resource):
    name: str
    access = (grant("read"),)


class Note(Resource):
    text: str = ""
    author: Annotated[User, WriteBy(admin)] = from_viewer()
    maker: Annotated[Id, WriteBy()] = from_viewer()
    editor: User | None = from_viewer()
    team: str | None = from_viewer("team")

    @action
    @classmethod
    async def make(cls, tx: Tx) -> Note:
        note = await tx.trusted.save(Note(text="made"))
        assert note.author.id == tx.viewer.id == note.maker
        return note

    access = (grant("read", "create", "update"),)


class Card(Resource):
    owner: User = from_viewer()
    access = (grant("read", "create"),)
"""


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(NOTES)


@pytest.fixture
def service(model: Model, database: str) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, database, runner) as service:
        service.execute(f"INSERT INTO users (id, name) VALUES ('{ANN}', 'Ann'), ('{BOB}', 'Bob')")
        yield service


def sent(service: Service, method: str, path: str, value: Any, token: str | None) -> Answer:
    headers = {"content-type": "application/json"}
    return service.send(method, path, headers=headers, body=json.dumps(value).encode(), token=token)


def test_who_creates_a_row_is_its_author_in_both_styles(service: Service) -> None:
    ann, boss = service.token(ANN), service.token(BOB, "admin")
    document = "mutation { createNote(input: {}) { authorId maker editorId team } }"
    for token, who, team in ((ann, ANN, None), (boss, BOB, "red")):
        expected = {"authorId": who, "maker": who, "editorId": who, "team": team}
        row = sent(service, "POST", "/notes", {}, token).json()
        assert {name: row[name] for name in expected} == expected
        assert service.data(document, token=token)["createNote"] == expected
    assert sent(service, "POST", "/notes/make", {}, ann).json()["authorId"] == ANN


def test_a_value_that_is_sent_counts_null_is_a_value_and_what_is_read_only_stays_so(service: Service) -> None:
    ann, boss = service.token(ANN), service.token(BOB, "admin")
    row = sent(service, "POST", "/notes", {"authorId": ANN, "editorId": None, "team": None}, boss).json()
    assert (row["authorId"], row["editorId"], row["team"], row["maker"]) == (ANN, None, None, BOB)
    assert sent(service, "POST", "/notes", {"authorId": None}, boss).places == ["/authorId"]
    for token, body in ((ann, {"authorId": ANN}), (boss, {"maker": BOB})):
        assert sent(service, "POST", "/notes", body, token).code == "FORBIDDEN"
        document = f"mutation {{ createNote(input: {{{next(iter(body))}: {json.dumps(ANN)}}}) {{ id }} }}"
        assert service.query(document, token=token).status == 400


def test_a_replacement_and_an_update_by_another_keep_it(service: Service) -> None:
    ann, boss = service.token(ANN), service.token(BOB, "admin")
    row = sent(service, "POST", "/notes", {"text": "a"}, ann).json()
    for method in ("PUT", "PATCH"):
        after = sent(service, method, f"/notes/{row['id']}", {"text": method}, boss).json()
        assert (after["text"], after["authorId"], after["editorId"], after["team"]) == (method, ANN, ANN, None)
    document = f'mutation {{ replaceNote(id: "{row["id"]}", input: {{text: "b"}}) {{ text authorId maker }} }}'
    assert service.data(document, token=boss)["replaceNote"] == {"text": "b", "authorId": ANN, "maker": ANN}


def test_a_viewer_without_the_value_must_send_it_or_cannot_create(service: Service, model: Model) -> None:
    anonymous = model.view_as("anonymous")
    text = print_schema(build_schema(anonymous))
    assert "createNote" not in text and "ownerId: ID!" in text[text.index("input CardCreate") :]
    text = print_schema(build_schema(model.view_as("signed_in")))
    card = text[text.index("input CardCreate") :]
    assert '"""If omitted, it is taken from who sends the request."""\n  ownerId: ID\n' in card.replace(
        '"""The id of `owner`. If', '"""If'
    )
    documents = [service.get("/openapi.json", token=token).json() for token in (None, service.token(ANN))]
    schemas = [document["components"]["schemas"]["CardCreate"] for document in documents]
    assert [schema.get("required") for schema in schemas] == [["ownerId"], None]
    assert sent(service, "POST", "/cards", {}, None).places == ["/ownerId"]
    assert sent(service, "POST", "/cards", {"ownerId": BOB}, None).json()["ownerId"] == BOB
    assert sent(service, "POST", "/notes", {}, None).status == 401


def test_a_viewer_who_is_no_row_is_a_conflict(service: Service) -> None:
    ghost = service.token(GHOST)
    refused = sent(service, "POST", "/cards", {}, ghost)
    assert (refused.status, refused.code, refused.places) == (409, "CONFLICT", ["/ownerId"])
    answer = service.query("mutation { createCard(input: {}) { id } }", token=ghost)
    (fault,) = answer.json()["errors"][0]["extensions"]["errors"]
    assert (answer.code, fault["argument"][-1]) == ("CONFLICT", "ownerId")


def test_what_does_not_fit_is_reported() -> None:
    assert_reported("""
class T(Resource):
    text: str = from_viewer()  #! T.text: from_viewer() is an id, and no String | Declare it as a relation
    team: str = from_viewer("team")  #! T.team: the viewer has no field 'team' | Declare it: class Member(Viewer)

    @action
    async def give(self, tx: Tx, to: Id = from_viewer()) -> None:  #! T.give: its argument 'to': the default is from_viewer(), and not a value
        pass
""")
