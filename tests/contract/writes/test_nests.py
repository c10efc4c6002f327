"""Nested writes: a row and the rows of its relations in one request, in both styles."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest

from diptych import (
    Json,
    MaxLen,
    Model,
    OnDelete,
    Resource,
    Role,
    Tx,
    Unique,
    Viewer,
    action,
    allow,
    grant,
    inverse,
    not_,
    signed_in,
    some,
)
from tests.contract.writes.shop import JSON_PATCH, MERGE
from tests.support.emptied import emptied
from tests.support.in_process import Answer, Service, in_process

NOBODY = "00000000-0000-7000-8000-00000000000a"


class Author(Resource):
    """Has books."""

    name: Annotated[str, Unique(), MaxLen(20)]
    extra: Json | None = None
    books: list[Book] = inverse("author")
    debts: list[Debt] = inverse("author")

    access = (grant("read", "create", "update", "delete"),)

    @action
    async def rename(self, tx: Tx, name: str) -> Author:
        """Rename it."""
        self.name = name
        return await tx.save(self)


class Book(Resource, ids="integer"):
    """Has an author, who may be unknown, and chapters."""

    author: Author | None = None
    title: Annotated[str, MaxLen(20)]
    locked: bool = False
    chapters: list[Chapter] = inverse("book")

    access = (grant("read", "create", "delete"),)

    @allow("update")
    def unlocked(self, viewer: Viewer) -> bool:
        return not_(self.locked)


class Chapter(Resource, ids="integer"):
    """Belongs to a book and, by `parent`, to another chapter."""

    book: Annotated[Book, OnDelete("cascade")]
    parent: Annotated[Chapter | None, OnDelete("cascade")] = None
    number: int
    parts: list[Chapter] = inverse("parent")

    access = (grant("read", "create", "update", "delete"),)


class Debt(Resource):
    """Nobody but an accountant knows that authors may have some."""

    author: Author

    access = (grant("read", to=Role("accountant")),)


class Team(Resource):
    """Needs a member from the beginning: its creator. Only members see it."""

    name: str
    members: list[Member] = inverse("team")

    access = (grant("update", to=signed_in),)

    @allow("create", "read")
    def own(self, viewer: Viewer) -> bool:
        return some(self.members, lambda member: member.user.id == viewer.id)


class Member(Resource):
    """A user of a team."""

    team: Annotated[Team, OnDelete("cascade")]
    user: Author

    access = (grant("read", "create", to=signed_in),)


MODEL = Model(Author, Book, Chapter, Debt, Team, Member)
shared, service = emptied(MODEL, "chapters", "books", "members", "teams", "authors")


def send(service: Service, method: str, path: str, body: Any, token: str | None = None, **headers: str) -> Answer:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return service.send(method, path, body=json.dumps(body).encode(), headers=sent, token=token)


BOOKS = "fields=name,version,books[first=9;sort=id](title,chapters[first=9;sort=id](number))"


def new_author(service: Service, **books: Any) -> Any:
    answer = send(service, "POST", "/authors?fields=id,version,books(id,version)", {"name": "Ann", "books": books})
    assert answer.status == 201, answer.body
    return answer.json()


def test_new_rows_to_any_depth(service: Service) -> None:
    body = {
        "name": "Zoe",
        "books": {"create": [{"title": "A", "chapters": {"create": [{"number": 1}, {"number": 2}]}}, {"title": "B"}]},
    }
    answer = send(service, "POST", f"/authors?{BOOKS}", body)
    assert answer.status == 201, answer.body
    shown = {
        "name": "Zoe",
        "version": 1,
        "books": [{"title": "A", "chapters": [{"number": 1}, {"number": 2}]}, {"title": "B", "chapters": []}],
    }
    assert answer.json() == shown
    assert service.get(answer.headers["location"]).status == 200
    mutation = """mutation($body: AuthorCreate!) {
      createAuthor(input: $body) { name version books(first: 9) { title chapters(first: 9) { number } } } }"""
    answer = service.query(mutation, {"body": {**body, "name": "Yan"}})
    assert answer.json()["data"]["createAuthor"] == {**shown, "name": "Yan"}
    literal = """mutation { createAuthor(input: {name: "Xia", books: {create: [{title: "A", chapters: {create: [
      {number: 1}, {number: 2}]}}, {title: "B"}]}}) { name version books(first: 9) { title chapters { number } } } }"""
    for _ in range(2):
        answer = service.query(literal)
        assert answer.json()["data"]["createAuthor"] == {**shown, "name": "Xia"}
        service.execute("DELETE FROM chapters")
        service.execute("DELETE FROM books")
        service.execute("DELETE FROM authors")


def test_rows_are_changed_moved_and_removed(service: Service) -> None:
    ann = new_author(service, create=[{"title": "A"}, {"title": "B"}, {"title": "C"}])
    a, b, c = (book["id"] for book in ann["books"])
    stray = send(service, "POST", "/books?fields=id", {"title": "D"}).json()["id"]
    books = {
        "create": [{"title": "E"}],
        "connect": [{"id": stray}],
        "update": [{"id": a, "ifVersion": 1, "patch": {"title": "A2", "chapters": {"create": [{"number": 7}]}}}],
        "delete": [{"id": b}],
        "disconnect": [{"id": c, "ifVersion": 1}],
    }
    shown = {
        "name": "Ann",
        "version": 2,
        "books": [
            {"title": "A2", "chapters": [{"number": 7}]},
            {"title": "D", "chapters": []},
            {"title": "E", "chapters": []},
        ],
    }
    answer = send(service, "PATCH", f"/authors/{ann['id']}?{BOOKS}", {"books": books}, if_match='"1."')
    assert (answer.status, answer.json()) == (200, shown)
    assert answer.headers["etag"].startswith('"2.')
    assert {row["title"]: row["authorId"] for row in service.rows("/books?fields=title,authorId")}["C"] is None
    back = {"connect": [{"id": c}], "disconnect": [{"id": a}, {"id": stray}]}
    mutation = """mutation($id: ID!, $books: AuthorBooksWrite) {
      updateAuthor(id: $id, ifVersion: 2, patch: {books: $books, name: "Abe"}) { name books(first: 9) { title } } }"""
    answer = service.query(mutation, {"id": ann["id"], "books": back})
    assert answer.json()["data"]["updateAuthor"] == {"name": "Abe", "books": [{"title": "C"}, {"title": "E"}]}


def test_a_row_to_refer_to_is_made_first(service: Service) -> None:
    body = {"title": "A", "author": {"create": {"name": "Ann", "books": {"create": [{"title": "B"}]}}}}
    shown = {"title": "A", "author": {"name": "Ann", "books": [{"title": "B"}, {"title": "A"}]}}
    answer = send(service, "POST", "/books?fields=title,author(name,books[sort=-title](title))", body)
    assert (answer.status, answer.json()) == (201, shown)
    book = answer.headers["location"].removeprefix("/books/")
    mutation = """mutation($id: ID!) { updateBook(id: $id, patch: {author: {create: {name: "Bob"}}}) {
      version author { name } } }"""
    answer = service.query(mutation, {"id": book})
    assert answer.json()["data"]["updateBook"] == {"version": 2, "author": {"name": "Bob"}}
    both = {"title": "A", "authorId": NOBODY, "author": {"create": {"name": "C"}}}
    answer = send(service, "POST", "/books", both)
    assert (answer.status, answer.places) == (422, ["/author"])
    answer = service.query("mutation($body: BookCreate!) { createBook(input: $body) { id } }", {"body": both})
    assert (answer.code, answer.places) == ("BAD_USER_INPUT", ["/variables/body/author"])


def test_a_relation_of_the_resource_to_itself(service: Service) -> None:
    new = {"title": "A", "chapters": {"create": [{"number": 1, "parts": {"create": []}}]}}
    book = send(service, "POST", "/books?fields=id,chapters(id)", new).json()
    inner = {"number": 2, "bookId": book["id"], "parts": {"create": [{"number": 3, "bookId": book["id"]}]}}
    body = {"parts": {"create": [inner]}}
    way = "fields=number,parts(number,parts(number,parent(number)))"
    answer = send(service, "PATCH", f"/chapters/{book['chapters'][0]['id']}?{way}", body)
    assert answer.json() == {
        "number": 1,
        "parts": [{"number": 2, "parts": [{"number": 3, "parent": {"number": 2}}]}],
    }


def test_only_rows_of_the_row_around_them_are_reached(service: Service) -> None:
    ann = new_author(service, create=[{"title": "A"}])
    other = send(service, "POST", "/books?fields=id", {"title": "B"}).json()["id"]
    for word, item in (("update", {"patch": {"title": "X"}}), ("delete", {}), ("disconnect", {})):
        books = {word: [{"id": other, **item}]}
        answer = send(service, "PATCH", f"/authors/{ann['id']}", {"name": "Y", "books": books})
        assert (answer.status, answer.places) == (404, [f"/books/{word}/0"]), answer.body
        mutation = "mutation($id: ID!, $p: AuthorPatch!) { updateAuthor(id: $id, patch: $p) { id } }"
        answer = service.query(mutation, {"id": ann["id"], "p": {"name": "Y", "books": books}})
        assert answer.code == "NOT_FOUND"
    assert [row["title"] for row in service.rows("/books?sort=title")] == ["A", "B"]
    assert [row["name"] for row in service.rows("/authors")] == ["Ann"]


def test_each_row_has_its_own_rules(service: Service) -> None:
    ann = new_author(service, create=[{"title": "A", "locked": True}])
    book = ann["books"][0]["id"]
    for word, item, status in (
        ("update", {"patch": {"title": "X"}}, 401),
        ("disconnect", {}, 401),
        ("delete", {}, 200),
    ):
        body = {"books": {word: [{"id": book, **item}]}}
        assert send(service, "PATCH", f"/authors/{ann['id']}", body).status == status
    new = {"create": [{"title": "A"}]}
    bob = send(service, "POST", "/authors?fields=id,books(id)", {"name": "Bob", "books": new}).json()
    stale: Any = {"update": [{"id": bob["books"][0]["id"], "ifVersion": 9, "patch": {}}]}
    assert send(service, "PATCH", f"/authors/{bob['id']}", {"books": stale}).status == 412
    answer = send(service, "PATCH", f"/authors/{bob['id']}", {"books": new}, if_match='"9."')
    assert answer.status == 412


def test_a_rule_that_looks_through_a_nested_relation_is_tested_after_it(service: Service) -> None:
    ann, bob = (send(service, "POST", "/authors", {"name": name}).json()["id"] for name in ("Ann", "Bob"))
    token = service.token(ann)
    mine = {"name": "T", "members": {"create": [{"userId": ann}, {"userId": bob}]}}
    answer = send(service, "POST", "/teams?fields=name,members[sort=id](userId)", mine, token)
    assert (answer.status, answer.json()["members"]) == (201, [{"userId": ann}, {"userId": bob}]), answer.body
    query = "mutation($team: TeamCreate!) { createTeam(input: $team) { members(first: 2) { userId } } }"
    answer = service.query(query, {"team": mine}, token=token)
    assert len(answer.json()["data"]["createTeam"]["members"]) == 2
    assert send(service, "POST", "/teams", {"name": "T"}, token).status == 403
    theirs = {"name": "T", "members": {"create": [{"userId": bob}]}}
    assert send(service, "POST", "/teams", theirs, token).status == 403
    assert service.query(query, {"team": theirs}, token=token).code == "FORBIDDEN"
    assert len(service.rows("/teams", token=token)) == 2


FAULTS: list[tuple[Any, dict[str, str]]] = [
    ({"books": {"create": [{"title": "A"}, {"title": 1}]}}, {"/books/create/1/title": "expected a string"}),
    (
        {"name": 1, "books": {"create": [{"chapters": {"create": [{}]}}]}},
        {
            "/name": "expected a string",
            "/books/create/0/title": "expected a value",
            "/books/create/0/chapters/create/0/number": "expected a value",
        },
    ),
    ({"books": []}, {"/books": "expected an object with"}),
    ({"books": {"create": {}}}, {"/books/create": "expected a list"}),
    ({"books": {"create": [1]}}, {"/books/create/0": "expected an object"}),
    ({"books": {"set": []}}, {"/books/set": "'set' is none of"}),
    ({"books": {"create": [{"title": "A", "authorId": NOBODY}]}}, {"/books/create/0/authorId": "it is that of"}),
    ({"books": {"create": [{"title": "A", "author": {}}]}}, {"/books/create/0/author": "it is that of"}),
    ({"books": {"connect": [{}]}}, {"/books/connect/0/id": "expected a value"}),
    ({"books": {"connect": [{"id": "1", "a": 1}]}}, {"/books/connect/0/a": "'a' is none of"}),
    ({"nothing": {"create": []}}, {"/nothing": "Author has no field"}),
]


@pytest.mark.parametrize(("body", "faults"), FAULTS)
def test_faults_have_their_places(service: Service, body: Any, faults: dict[str, str]) -> None:
    answer = send(service, "POST", "/authors", {"name": "Ann", **body})
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT"), answer.body
    found = {fault["pointer"]: fault["message"] for fault in answer.json()["errors"]}
    assert found.keys() == faults.keys()
    assert all(found[place].startswith(message) for place, message in faults.items()), found
    answer = service.query(
        "mutation($b: AuthorCreate!) { createAuthor(input: $b) { id } }", {"b": {"name": "A", **body}}
    )
    assert answer.code == "BAD_USER_INPUT"


def test_places_in_literals_and_refusals_that_the_database_finds(service: Service) -> None:
    long = "x" * 21
    answer = service.query(
        f'mutation {{ createAuthor(input: {{name: "A", books: {{create: [{{title: "A"}}, {{title: "{long}"}}]}}}}) {{ id }} }}'
    )
    assert answer.places == ["/createAuthor/input/books/create/1/title"]
    missing = {"name": "A", "books": {"connect": [{"id": "77"}]}}
    answer = send(service, "POST", "/authors", missing)
    assert (answer.status, answer.places) == (404, ["/books/connect/0"])
    twin = {"title": "A", "author": {"create": {"name": "Ann"}}}
    assert send(service, "POST", "/books", twin).status == 201
    answer = send(service, "POST", "/books", twin)
    assert (answer.status, answer.places) == (409, ["/author/create/name"])


def test_forms_that_take_no_nested_writes(service: Service) -> None:
    ann = new_author(service, create=[{"title": "A"}])
    nested = {"name": "Ann", "books": {"create": [{"title": "B"}]}}
    path = f"/authors/{ann['id']}"
    answer = send(service, "PUT", path, nested)
    assert (answer.status, answer.places) == (422, ["/books"])
    answer = send(service, "PATCH", path, nested, content_type=MERGE)
    assert (answer.status, answer.places) == (422, ["/books"])
    answer = send(
        service,
        "PATCH",
        path,
        [{"op": "add", "path": "/books", "value": {}}],
        content_type=JSON_PATCH,
    )
    assert answer.status == 422
    assert len(service.rows("/books")) == 1


@pytest.mark.parametrize("kind", ["application/json", MERGE, JSON_PATCH])
def test_a_hidden_relation_is_like_a_field_that_no_one_has(service: Service, kind: str) -> None:
    path = f"/authors/{new_author(service)['id']}"
    told = []
    for name in ("debts", "depts"):
        body: Any = [{"op": "add", "path": f"/{name}", "value": {}}] if kind == JSON_PATCH else {name: {}}
        answer = send(service, "PATCH", path, body, content_type=kind)
        assert (answer.status, answer.places) == (422, [f"/{name}"])
        told.append(answer.body.replace(name.encode(), b"?"))
    assert told[0] == told[1]


def test_a_json_field_is_merged_beside_a_nested_write(service: Service) -> None:
    ann = new_author(service)
    path = f"/authors/{ann['id']}?fields=extra,books(title)"
    send(service, "PATCH", path, {"extra": {"a": 1, "b": 2}})
    answer = send(service, "PATCH", path, {"extra": {"c": 3}, "books": {"create": [{"title": "A"}]}})
    assert answer.json()["books"] == [{"title": "A"}]
    assert answer.json()["extra"]["c"] == 3


def test_nests_in_batches_arrays_and_beside_actions(service: Service) -> None:
    requests: list[Any] = [
        {
            "id": "a",
            "method": "POST",
            "url": "/authors?fields=id",
            "body": {"name": "A", "books": {"create": [{"title": "1"}]}},
        },
        {"id": "b", "method": "POST", "url": "/books?fields=title,authorId", "body": {"title": "2", "authorId": "$a"}},
        {"method": "PATCH", "url": "/authors/$a?fields=books(title)", "body": {"books": {"create": [{"title": "3"}]}}},
        {"method": "POST", "url": "/authors/$a/rename?fields=name", "body": {"name": "Z"}},
    ]
    for count in (3, 4):
        answer = send(service, "POST", "/batch", {"requests": requests[:count]})
        assert answer.status == 200, answer.body
        responses = answer.json()["responses"]
        assert len(responses) == count
        assert responses[1]["body"]["authorId"] == responses[0]["body"]["id"]
        assert [book["title"] for book in responses[2]["body"]["books"]] == ["1", "2", "3"]
        service.execute("DELETE FROM books")
        service.execute("DELETE FROM authors")
    requests[2]["body"] = {"books": {"create": [{"title": 3}]}}
    answer = send(service, "POST", "/batch", {"requests": requests})
    assert answer.places == ["/requests/2/body/books/create/0/title"]
    rows: list[Any] = [{"name": "A"}, {"name": "B", "books": {"create": [{"title": "1"}]}}, {"name": "C"}]
    answer = send(service, "POST", "/authors/batch?fields=name,books(title)", rows)
    assert [row["books"] for row in answer.json()] == [[], [{"title": "1"}], []]
    rows[1]["books"] = {"create": [{"title": "1"}, {"title": 2}]}
    assert send(service, "POST", "/authors/batch", rows).places == ["/1/books/create/1/title"]
    answer = service.query(
        """mutation { a: createAuthor(input: {name: "Q", books: {create: [{title: "1"}]}}) { id }
             b: renameAuthor(id: "$a", name: "R") { name books { title } } }"""
    )
    assert answer.json()["data"]["b"] == {"name": "R", "books": [{"title": "1"}]}


def test_a_refusal_undoes_all(service: Service) -> None:
    body = {"name": "A", "books": {"create": [{"title": "1"}], "connect": [{"id": "99"}]}}
    assert send(service, "POST", "/authors", body).status == 404
    assert service.rows("/authors") == [] == service.rows("/books")


def test_limits_hold_before_any_statement(service: Service) -> None:
    books = {"create": [{"title": "A"}] * 99}
    answer = send(service, "POST", "/authors?fields=id", {"name": "A", "books": books}, prefer="cost")
    assert (answer.status, answer.headers["cost"]) == (201, "price=101, allowed=5000, depth=2")
    ran = service.runs
    for body, code in (
        ({"books": {"create": [{"title": "A"}] * 100}}, "TOO_COMPLEX"),
        ({"books": {"create": [{"title": "A", "chapters": {"create": [{"number": 1}] * 10}}] * 10}}, "TOO_COMPLEX"),
    ):
        assert send(service, "POST", "/authors", {"name": "B", **body}).code == code
        query = "mutation($b: AuthorCreate!) { createAuthor(input: $b) { id } }"
        assert service.query(query, {"b": {"name": "B", **body}}).code == code
    nest: dict[str, Any] = {"number": 1, "bookId": "1"}
    for _ in range(9):
        nest = {"number": 1, "bookId": "1", "parts": {"create": [nest]}}
    assert (
        send(service, "POST", "/chapters", {"number": 1, "bookId": "1", "parts": {"create": [nest]}}).code == "TOO_DEEP"
    )
    requests = [
        {"method": "POST", "url": "/authors", "body": {"name": f"{n}", "books": {"create": [{"title": "A"}] * 30}}}
        for n in range(4)
    ]
    assert send(service, "POST", "/batch", {"requests": requests}).code == "TOO_COMPLEX"
    assert service.runs == ran


def test_what_is_read_at_the_end_counts_in_the_price(service: Service) -> None:
    body = {"name": "A", "books": {"create": [{"title": "A"}]}}
    answer = send(service, "POST", "/authors?fields=id,books[first=5](title)", body, prefer="cost")
    assert answer.headers["cost"] == "price=8, allowed=5000, depth=2"


def test_the_setting_of_the_limit_is_in_the_message(runner: asyncio.Runner) -> None:
    with in_process(MODEL, "sqlite:///:memory:", runner, max_writes=2) as service:
        answer = send(service, "POST", "/authors", {"name": "A", "books": {"create": [{"title": "A"}] * 2}})
        assert (answer.code, answer.json()["rows"], answer.json()["allowed"]) == ("TOO_COMPLEX", 3, 2)
        books = '{create: [{title: "A"}, {title: "B"}]}'
        answer = service.query(f'mutation {{ createAuthor(input: {{name: "A", books: {books}}}) {{ id }} }}')
        assert answer.code == "TOO_COMPLEX"
        answer = service.query(
            'mutation { a: createAuthor(input: {name: "A"}) { id } b: createAuthor(input: {name: "B"}) { id } c: createAuthor(input: {name: "C"}) { id } }'
        )
        assert answer.code == "TOO_COMPLEX"
