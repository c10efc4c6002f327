"""Rows of others by their ids (an insecure direct object reference), by every verb and every door.

The first of OWASP's list for APIs (API1:2023), and published for nearly every product of this kind; for API Platform
as late as CVE-2025-31481, where a second door of GraphQL led around the rules of an operation. Here a row that its
caller may not read is not there, by whatever way it is asked for, and one that they may read but not change stays as
it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from diptych.ask.guarded import Guard, Why
from diptych.policy import guards as change
from tests.contract.calls import press
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, COMMENT, NOBODY, ORDER, POST, ZOE
from tests.contract.writes.shop import JSON_PATCH
from tests.support.in_process import Answer


def same(one: Answer, other: Answer, *ids: str) -> None:
    """Two answers are the same in all but the ids that were asked for."""
    left, right = one.body, other.body
    for id in ids:
        left, right = left.replace(id.encode(), b"?"), right.replace(id.encode(), b"?")
    assert (one.status, dict(one.headers), left) == (other.status, dict(other.headers), right)


HIDDEN = [
    ("zoe", "/posts", "Post", POST[3], {"authorId": ZOE, "title": "x", "body": "b"}, {"title": "x"}),
    ("zoe", "/comments", "Comment", COMMENT[7], {"authorId": ZOE, "postId": POST[1], "body": "b"}, {"body": "x"}),
    ("zoe", "/orders", "Order", ORDER[1], {"customerId": ZOE, "total": "1"}, {"status": "cancelled"}),
    ("anonymous", "/posts", "Post", POST[6], {"authorId": BEN, "title": "x", "body": "b"}, {"title": "x"}),
]
HEADERS: list[dict[str, str]] = [
    {},
    {"if-match": '"1.x"'},
    {"if-match": '"2.x"'},
    {"if-match": "*"},
    {"if-none-match": "*"},
    {"if-none-match": '"1.x"'},
    {"prefer": "return=representation"},
    {"prefer": "return=minimal"},
]


@pytest.mark.parametrize(("who", "path", "type_", "id", "whole", "part"), HIDDEN, ids=lambda each: str(each)[:12])
def test_a_hidden_row_is_no_row_by_every_verb(
    shop: Scene, who: str, path: str, type_: str, id: str, whole: dict[str, Any], part: dict[str, Any]
) -> None:
    """GET, HEAD, PATCH, PUT, DELETE, and what leads on from it: the answer is that to an id that nothing has."""
    patch = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in part.items()]
    bodies: list[tuple[str, Any, str]] = [
        ("GET", None, ""),
        ("HEAD", None, ""),
        ("DELETE", None, ""),
        ("PATCH", part, "application/json"),
        ("PATCH", patch, JSON_PATCH),
        ("PUT", whole, "application/json"),
        ("POST", part, "application/json"),
    ]
    with shop.unchanged():
        for method, body, kind in bodies:
            for headers in HEADERS:
                if method == "PUT" and headers == {"if-none-match": "*"}:
                    continue  # it creates the row, unless its id is taken, by any row
                one, none = (
                    shop.rest(method, f"{path}/{each}", body, who=who, kind=kind, headers=headers)
                    for each in (id, NOBODY)
                )
                assert one.status in (401, 403, 404, 405)
                same(one, none, id, NOBODY)


@pytest.mark.parametrize(("who", "path", "type_", "id", "whole", "part"), HIDDEN[:3], ids=lambda each: str(each)[:12])
def test_a_hidden_row_is_no_row_by_every_root_field(
    shop: Scene, who: str, path: str, type_: str, id: str, whole: dict[str, Any], part: dict[str, Any]
) -> None:
    """The same in the query style, with and without a version that would fit."""
    documents = [
        f"query($id: ID!) {{ a: {type_.lower()}(id: $id) {{ id }} }}",
        f"query($id: ID!) {{ a: {type_.lower()}s(where: {{id: {{in: [$id]}}}}) {{ id }} }}",
        f"query($id: ID!) {{ a: {type_.lower()}sConnection(where: {{id: {{eq: $id}}}}) {{ totalCount }} }}",
    ]
    for version in ("", ", ifVersion: 1", ", ifVersion: 2"):
        documents.append(
            f"mutation($id: ID!, $p: {type_}Patch!) {{ a: update{type_}(id: $id, patch: $p{version}) {{ id }} }}"
        )
        documents.append(
            f"mutation($id: ID!, $w: {type_}Replace!) {{ a: replace{type_}(id: $id, input: $w{version}) {{ id }} }}"
        )
        documents.append(f"mutation($id: ID!) {{ a: delete{type_}(id: $id{version}) {{ id }} }}")
    with shop.unchanged():
        for document in documents:
            values = {"id": id} | ({"p": part} if "$p" in document else {}) | ({"w": whole} if "$w" in document else {})
            one, none = (shop.ql(document, {**values, "id": each}, who=who) for each in (id, NOBODY))
            same(one, none, id, NOBODY)
            assert b'"id":"' not in one.body


def test_an_action_on_a_hidden_row_is_one_on_no_row(desk: Scene) -> None:
    """An action of the model's own is not even called: the row that it would get is not there for its caller."""
    bob = desk.service.token(press.BOB)
    with desk.unchanged():
        for who in (bob, "anonymous"):
            for action, body in (
                ("publish", {}),
                ("publish", {"title": "x"}),
                ("judge", {"text": "x"}),
                ("shred", {}),
                ("fail", {}),
            ):
                one, none = (
                    desk.rest("POST", f"/articles/{id}/{action}", body, who=who) for id in (press.DRAFT, NOBODY)
                )
                assert one.status in (401, 403, 404)
                same(one, none, press.DRAFT, NOBODY)
            document = "mutation($id: ID!) { publishArticle(id: $id) { title } }"
            one, none = (desk.ql(document, {"id": id}, who=who) for id in (press.DRAFT, NOBODY))
            same(one, none, press.DRAFT, NOBODY)
    assert desk.rest("POST", f"/articles/{press.DRAFT}/publish", {}, who=desk.service.token(press.ANN)).status == 200


def test_the_list_of_someone_elses_rows_holds_what_its_caller_may_read(shop: Scene) -> None:
    """`/users/<id>/orders` of another, by a path, a relation, a filter and their `authorId`: nothing of theirs."""
    assert shop.get(f"/users/{BEN}/orders?count=exact", "ann") == shop.get(f"/users/{ZOE}/orders?count=exact", "ann")
    assert [row["id"] for row in shop.get(f"/users/{BEN}/posts", "ann")["data"]] == [POST[4], POST[5]]
    for url in (
        f"/orders?customerId={BEN}",
        f"/orders?id={ORDER[4]}",
        f"/orders?id[in]={ORDER[4]},{ORDER[5]}",
        f"/posts?id={POST[6]}",
        f"/comments?postId={POST[6]}",
    ):
        assert shop.get(url, "ann")["data"] == [], url
    data = shop.data(
        f'{{ user(id: "{BEN}") {{ orders {{ id }} posts(where: {{published: {{eq: false}}}}) {{ id }} }} }}', who="ann"
    )
    assert data == {"user": {"orders": [], "posts": []}}
    assert shop.rest("GET", f"/users/{BEN}/orders", who="anonymous").status in (401, 404)


SEEN = [
    ("PATCH", f"/posts/{POST[4]}", {"title": "mine"}),
    ("PUT", f"/posts/{POST[4]}", {"authorId": BEN, "title": "mine", "body": "b"}),
    ("PUT", f"/posts/{POST[4]}", {"authorId": ANN, "title": "mine", "body": "b"}),
    ("DELETE", f"/posts/{POST[4]}", None),
    ("PATCH", f"/posts/{POST[4]}", {"authorId": ANN}),
    ("PATCH", f"/comments/{COMMENT[4]}", {"body": "mine"}),
    ("PATCH", f"/users/{BEN}", {"name": "mine"}),
    ("PATCH", f"/users/{BEN}", {"email": "ann@mine.org"}),
    ("DELETE", f"/users/{BEN}", None),
]


def changed_by(shop: Scene, who: str) -> list[str]:
    """What someone could change of Ben's rows that they see, in either style and behind every condition."""
    return [f"{method} {url}" for method, url, answer in _tries(shop, who) if answer.status < 300]


def _tries(shop: Scene, who: str) -> Iterator[tuple[str, str, Answer]]:
    for method, url, body in SEEN:
        for headers in ({}, {"if-match": '"1.x"'}, {"if-match": '"9.x"'}, {"idempotency-key": "k1"}):
            yield method, url, shop.rest(method, url, body, who=who, headers=headers)
    yield (
        "POST",
        "/posts",
        shop.rest("POST", "/posts", [{"authorId": each, "title": "t", "body": "b"} for each in (ANN, BEN)], who=who),
    )


def test_what_is_seen_is_not_thereby_changed(shop: Scene) -> None:
    """Ann reads Ben's posts, comments and name; none of it is hers to write, whatever version she names."""
    with shop.unchanged():
        assert changed_by(shop, "ann") == []
        for document in (
            f'updatePost(id: "{POST[4]}", patch: {{title: "x"}})',
            f'deletePost(id: "{POST[4]}", ifVersion: 1)',
            f'updateUser(id: "{BEN}", patch: {{name: "x"}}, ifVersion: 1)',
            f'deleteUser(id: "{BEN}")',
        ):
            assert shop.ql(f"mutation {{ {document} {{ id }} }}", who="ann").code == "FORBIDDEN"
    assert changed_by(shop, "ben") != []


def test_without_the_guards_of_a_change_the_rows_of_others_would_be_changed(shop: Scene) -> None:
    """The same check with the fault planted: a change is guarded by what can be read, and by nothing else."""
    guards = change._WriteGuards._guards

    def readable(self: Any, values: Any) -> list[Guard]:
        return [each for each in guards(self, values) if each.why is not Why.DENIED]

    with shop.planted(change._WriteGuards, "_guards", readable):
        assert len(changed_by(shop, "ann")) >= 5


def test_a_version_tells_nothing_of_a_row_that_is_not_ones_own(shop: Scene) -> None:
    """Right or wrong, a version is looked at only once its sender may change the row: 403 comes before 412."""
    for id, status in ((POST[4], 403), (POST[6], 404)):
        answers = [
            shop.rest("PATCH", f"/posts/{id}", {"title": "x"}, who="ann", headers={"if-match": f'"{version}.x"'})
            for version in (1, 2, 9)
        ]
        assert {answer.status for answer in answers} == {status}
        assert len({answer.body for answer in answers}) == 1
    for version in (1, 9):
        call = f'updatePost(id: "{POST[4]}", patch: {{title: "x"}}, ifVersion: {version})'
        assert shop.ql(f"mutation {{ {call} {{ id }} }}", who="ann").code == "FORBIDDEN"


def test_the_key_of_another_replays_nothing(shop: Scene) -> None:
    """What Ben did under an Idempotency-Key is not answered to Ann, in body or header, though she sends the same."""
    key = {"idempotency-key": "k1"}
    body = {"customerId": BEN, "total": "1", "note": "for Ben alone"}
    first = shop.rest("POST", "/orders", body, who="ben", headers=key)
    assert first.status == 201
    with shop.unchanged():
        for who in ("ann", "anonymous", shop.service.token(None)):
            answer = shop.rest("POST", "/orders", body, who=who, headers=key)
            assert answer.status in (400, 401, 403)
            assert b"for Ben alone" not in answer.body and "location" not in answer.headers
            assert first.json()["id"].encode() not in answer.body and "idempotency-replayed" not in answer.headers
    again = shop.rest("POST", "/orders", body, who="ben", headers=key)
    assert (again.body, again.headers["idempotency-replayed"]) == (first.body, "true")


def test_many_ids_in_one_request_open_nothing(shop: Scene) -> None:
    """Aliases, lists of ids and several mutations: each is judged by itself, and one that fails takes all with it."""
    ids = [POST[1], POST[3], POST[6], NOBODY]
    document = "{ " + " ".join(f'p{index}: post(id: "{id}") {{ title }}' for index, id in enumerate(ids)) + " }"
    assert shop.data(document, who="zoe") == {"p0": {"title": "Alpha"}, "p1": None, "p2": None, "p3": None}
    found = shop.get("/posts?fields=id&id[in]=" + ",".join(ids), "zoe")
    assert found["data"] == [{"id": POST[1]}]
    with shop.unchanged():
        calls = f'a: updatePost(id: "{POST[1]}", patch: {{title: "x"}}) {{ id }} b: updatePost(id: "{POST[4]}", patch: {{title: "x"}}) {{ id }}'
        answer = shop.ql(f"mutation {{ {calls} }}", who="ann")
        assert answer.json()["data"] is None and answer.code == "FORBIDDEN"
