"""The role that changed and did not arrive: a running process serves what it remembers of the role before.

Published for API Platform (GHSA-428q-q3vv-3fq3: whether a property may be read was kept and used for other objects),
Directus (GHSA-56p6-qw3c-fq2g: a suspended user's token went on working) and Hasura (permissions that took minutes to
take effect). Here everything that is remembered is remembered for what its caller may see, and a token is looked at
on every request. The same person comes twice in each test, with other roles or scopes, to one process.
"""

from __future__ import annotations

from typing import Any

import pytest

from diptych.model.signature import Signature
from tests.contract.faults.scene import Question, Scene
from tests.contract.http.data import ANN, BEN, ORDER, POST
from tests.support.in_process import Answer

INTROSPECTION = (
    '{ order: __type(name: "Order") { fields { name } } __schema { types { name } mutationType { fields { name } } } }'
)
QUESTIONS = [
    Question(text)
    for text in (
        "/users",
        "/users?fields=*",
        f"/users/{BEN}",
        "/users?sort=email&fields=name",
        "/users?email[startsWith]=b&count=exact",
        "/posts?count=exact&first=2",
        f"/posts/{POST[6]}",
        f"/users/{BEN}/posts",
        "/posts?fields=title,author(email)",
        "/comments?count=exact",
        "/orders",
        "/orders?count=exact",
        f"/orders/{ORDER[5]}",
        f"/users/{BEN}/orders",
        "/users?fields=name,orders(note)",
        "/orders?fields=internalNote",
        "/orders?sort=internalNote",
        "/orders?internalNote[isNull]=false",
        "/openapi.json",
        "{ users { email } }",
        "{ users(orderBy: [{email: DESC}]) { name } }",
        "{ postsConnection(first: 2) { totalCount pageInfo { endCursor } } }",
        "{ orders { internalNote } }",
        "{ orders { id } }",
        f'{{ user(id: "{BEN}") {{ orders {{ note }} posts {{ title }} }} }}',
        INTROSPECTION,
        "{ users { ...F } } fragment F on User { a: email orders { id } }",
    )
]
MORE_TO_LESS = [
    (("admin",), None, (), None),
    (("staff",), None, (), None),
    (("admin",), None, ("admin",), ("posts:read",)),
    (("admin",), ("read", "write"), ("admin",), ("users:read", "posts:read")),
    ((), ("read",), (), ()),
]


def all_of(answer: Answer) -> Any:
    return (answer.status, dict(answer.headers), answer.body)


def stale(shop: Scene, before: str, after: str) -> list[Question]:
    """The questions that a process which served `before` answers otherwise to `after` than one that did not."""
    shop.forget()
    expected = [all_of(question(shop, after)) for question in QUESTIONS]
    shop.forget()
    for _ in range(3):  # from the second sight on, what was planned is kept
        for question in QUESTIONS:
            question(shop, before)
    return [
        question
        for question, fresh in zip(QUESTIONS, expected, strict=True)
        if any(all_of(question(shop, after)) != fresh for _ in range(2))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("roles", "scopes", "new_roles", "new_scopes"), MORE_TO_LESS)
def test_what_was_planned_for_a_role_is_not_served_to_another(
    shop: Scene,
    roles: tuple[str, ...],
    scopes: tuple[str, ...] | None,
    new_roles: tuple[str, ...],
    new_scopes: tuple[str, ...] | None,
) -> None:
    """Statements, schemas and documents that Ann's old token warmed up: her new one gets what it would get first."""
    before, after = (
        shop.service.token(ANN, *roles, scopes=scopes),
        shop.service.token(ANN, *new_roles, scopes=new_scopes),
    )
    assert stale(shop, before, after) == []
    assert stale(shop, after, before) == []


def test_with_memory_that_knows_no_roles_the_old_answers_would_be_served(shop: Scene) -> None:
    """The same check with the fault planted: all signatures of signed-in viewers are one."""

    def alike(self: Signature, other: object) -> bool:
        return isinstance(other, Signature) and self.signed_in == other.signed_in

    with (
        shop.planted(Signature, "__eq__", alike),
        shop.planted(Signature, "__hash__", lambda self: hash(self.signed_in)),
    ):
        assert len(stale(shop, shop.service.token(ANN, "admin"), shop.service.token(ANN))) >= 15


@pytest.mark.parametrize(
    "url", ["/orders", f"/orders/{ORDER[2]}", "/users", "/posts", "/openapi.json", f"/users/{BEN}"]
)
def test_an_entity_tag_of_the_old_role_gets_no_304(shop: Scene, url: str) -> None:
    """A tag is of the bytes: with other roles there are other bytes, so what is cached is not confirmed."""
    more, less = shop.service.token(ANN, "admin"), shop.service.token(ANN)
    for before, after in ((more, less), (less, more)):
        mark = shop.rest("GET", url, who=before).headers["etag"]
        assert shop.rest("GET", url, who=before, headers={"if-none-match": mark}).status == 304
        answer = shop.rest("GET", url, who=after, headers={"if-none-match": mark})
        assert answer.status == 200 and answer.headers["etag"] != mark
        assert answer.headers["cache-control"].startswith("private") and "Authorization" in answer.headers["vary"]


def test_a_cursor_of_the_old_role_does_not_open(shop: Scene) -> None:
    """A cursor is bound to what its caller saw: the place in a list of eight posts is no place in one of seven."""
    more, less = shop.service.token(ANN, "admin"), shop.service.token(ANN)
    narrow = shop.service.token(ANN, scopes=["read"])
    for before, after in ((more, less), (less, more), (less, narrow), (narrow, less)):
        cursor = shop.get("/posts?first=2", before)["page"]["next"]
        assert shop.rest("GET", f"/posts?first=2&after={cursor}", who=before).status == 200
        assert shop.rest("GET", f"/posts?first=2&after={cursor}", who=after).status == 400
        found = shop.data("{ postsConnection(first: 2) { pageInfo { endCursor } } }", who=before)["postsConnection"][
            "pageInfo"
        ]["endCursor"]
        answer = shop.ql(f'{{ postsConnection(first: 2, after: "{found}") {{ nodes {{ id }} }} }}', who=after)
        assert answer.code == "BAD_USER_INPUT"
    again = shop.service.token(ANN, ttl=901)
    assert (
        shop.rest("GET", f"/posts?first=2&after={shop.get('/posts?first=2', less)['page']['next']}", who=again).status
        == 200
    )


def test_an_answer_that_was_kept_for_the_old_role_is_not_replayed(shop: Scene) -> None:
    """The same person, key and body: what staff saw of the order is not given to the customer that they are now."""
    key, body = {"idempotency-key": "k1"}, {"customerId": ANN, "total": "1", "note": "n"}
    clerk, customer = shop.service.token(ANN, "staff"), shop.service.token(ANN)
    first = shop.rest("POST", "/orders", body, who=clerk, headers=key)
    assert first.status == 201 and "internalNote" in first.json()
    with shop.unchanged():
        answer = shop.rest("POST", "/orders", body, who=customer, headers=key)
    assert (answer.status, answer.code) == (422, "IDEMPOTENCY_MISMATCH")
    assert b"internalNote" not in answer.body


def test_a_change_that_was_planned_for_the_old_role_is_not_made_for_the_new_one(shop: Scene) -> None:
    """Updates, replacements and deletes that were allowed, and hot, a moment ago."""
    more, less = shop.service.token(ANN, "admin"), shop.service.token(ANN)
    whole = {"authorId": BEN, "title": "x", "body": "b"}
    tries: list[tuple[str, str, Any]] = [
        ("PATCH", f"/posts/{POST[4]}", {"title": "x"}),
        ("PUT", f"/posts/{POST[4]}", whole),
        ("PATCH", f"/users/{BEN}", {"name": "x"}),
        ("PATCH", f"/orders/{ORDER[4]}", {"internalNote": "x"}),
        ("POST", "/users", {"name": "n", "email": "n@x"}),
    ]
    update = f'mutation {{ updatePost(id: "{POST[4]}", patch: {{title: "y"}}) {{ id }} }}'
    documents = [update, f'mutation {{ deleteOrder(id: "{ORDER[4]}") {{ id }} }}']
    for _ in range(3):
        shop.refill()
        for method, url, body in tries:
            assert shop.rest(method, url, body, who=more).status in (200, 201)
        for document in documents:
            shop.data(document, who=more)
    shop.refill()
    with shop.unchanged():
        for method, url, body in tries:
            assert shop.rest(method, url, body, who=less).status in (403, 404, 422)
        for document in documents:
            assert shop.ql(document, who=less).code in ("FORBIDDEN", "NOT_FOUND")


def test_a_token_that_has_expired_is_not_served_from_memory(shop: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was verified and is remembered ends when it says so, in both styles."""
    token = shop.service.token(ANN, "admin", ttl=900)
    for _ in range(3):
        assert shop.rest("GET", "/users", who=token).status == 200
    moment = shop.service.handler.context.tokens.verify(token).expires
    monkeypatch.setattr("diptych.identity.viewer.time.time", lambda: float(moment))
    assert shop.rest("GET", "/users", who=token).status == 401
    assert shop.ql("{ users { id } }", who=token).status == 401
