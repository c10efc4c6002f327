"""Idempotency-Key: what was done once is answered again, to whoever did it, and not done again."""

from __future__ import annotations

import json

import pytest

from diptych.fair.idempotency_quota import IdempotencyQuota
from tests.contract.http.data import ANN, BEN, ORDER, POST
from tests.contract.writes.shop import JSON_PATCH, PEOPLE, Shop, without
from tests.contract.writes.vault import BOX

KEY = {"idempotency-key": "k1"}
NEW = {"authorId": ANN, "title": "t", "body": "b"}
CREATE = f'mutation($t: String!) {{ createPost(input: {{authorId: "{ANN}", title: $t, body: "b"}}) {{ id }} }}'


def test_a_request_that_comes_again_gets_the_answer_that_it_had(shop: Shop) -> None:
    first = shop.rest("POST", "/posts", NEW, who="ann", headers=KEY)
    assert first.status == 201 and "idempotency-replayed" not in first.headers
    with shop.unchanged():
        again = shop.rest("POST", "/posts", NEW, who="ann", headers=KEY)
    assert (again.status, again.body) == (first.status, first.body)
    assert without(again.headers, ["idempotency-replayed"]) == first.headers
    assert shop.count("posts") == 9
    assert shop.rest("POST", "/posts", NEW, who="ann", headers={"idempotency-key": "k2"}).body != first.body
    assert shop.rest("POST", "/posts", NEW, who="ann").body != first.body


def test_an_array_and_a_patch_are_done_once_too(shop: Shop) -> None:
    for kind, method, url, body in (
        ("application/json", "POST", "/posts", [NEW, NEW]),
        ("application/json", "PATCH", f"/posts/{POST[1]}", {"title": "N"}),
        (JSON_PATCH, "PATCH", f"/posts/{POST[2]}", [{"op": "replace", "path": "/title", "value": "N"}]),
    ):
        headers = {"idempotency-key": f"{method}{kind}"}
        first = shop.rest(method, url, body, who="ann", kind=kind, headers=headers)
        assert first.status in (200, 201), first.body
        with shop.unchanged():
            again = shop.rest(method, url, body, who="ann", kind=kind, headers=headers)
        assert (again.status, again.body, again.headers.get("etag", None)) == (
            first.status,
            first.body,
            first.headers.get("etag"),
        )


def test_a_json_patch_is_answered_again_though_it_would_no_longer_fit(shop: Shop) -> None:
    body = [{"op": "test", "path": "/title", "value": "Alpha"}, {"op": "replace", "path": "/title", "value": "N"}]
    first = shop.rest("PATCH", f"/posts/{POST[1]}", body, who="ann", kind=JSON_PATCH, headers=KEY)
    again = shop.rest("PATCH", f"/posts/{POST[1]}", body, who="ann", kind=JSON_PATCH, headers=KEY)
    assert (first.status, again.status, again.body) == (200, 200, first.body)


def test_mutations_are_done_once_too(shop: Shop) -> None:
    first = shop.ql(CREATE, {"t": "x"}, who="ann", headers=KEY)
    assert first.status == 200 and "errors" not in first.json()
    with shop.unchanged():
        again = shop.ql(CREATE, {"t": "x"}, who="ann", headers=KEY)
        assert (again.body, again.headers["idempotency-replayed"]) == (first.body, "true")
        other = shop.ql(CREATE, {"t": "y"}, who="ann", headers=KEY)
        assert (other.status, other.code) == (422, "IDEMPOTENCY_MISMATCH")


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "/posts", {**NEW, "title": "u"}),
        ("POST", "/posts", {**NEW, "published": False}),
        ("POST", "/posts?fields=id", NEW),
        ("POST", "/posts", [NEW]),
        ("PATCH", f"/posts/{POST[1]}", {"title": "t"}),
        ("POST", "/orders", {"customerId": ANN, "total": "1"}),
    ],
)
def test_another_request_with_the_same_key_is_refused(shop: Shop, method: str, url: str, body: object) -> None:
    shop.rest("POST", "/posts", NEW, who="ann", headers=KEY)
    with shop.unchanged():
        answer = shop.rest(method, url, body, who="ann", headers=KEY)
    assert (answer.status, answer.code) == (422, "IDEMPOTENCY_MISMATCH")


def test_a_key_needs_a_token(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.rest("POST", "/posts", NEW, who="anonymous", headers=KEY)
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")
        answer = shop.ql(CREATE, {"t": "x"}, who="anonymous", headers=KEY)
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")


def test_a_key_needs_a_token_where_anyone_may_write(safe: Shop) -> None:
    document = 'mutation { createThing(input: {text: "x"}) { id } }'
    for _ in range(3):  # cold and hot
        with safe.unchanged():
            assert safe.rest("POST", "/things", {}, who="anonymous", headers=KEY).code == "BAD_REQUEST"
            assert safe.ql(document, who="anonymous", headers=KEY).code == "BAD_REQUEST"
        assert safe.ql(document, who="anonymous").status == 200


def test_a_query_takes_no_notice_of_a_key(shop: Shop) -> None:
    for who in ("anonymous", "ann"):
        with shop.unchanged():
            assert shop.ql("{ __typename }", who=who, headers=KEY).status == 200
            assert shop.rest("GET", "/posts", who=who, headers=KEY).status == 200


def test_the_keys_of_others_are_their_own(shop: Shop) -> None:
    made = {
        who: shop.rest(
            "POST", "/comments", {"authorId": PEOPLE[who][0], "postId": POST[1], "body": "b"}, who=who, headers=KEY
        )
        for who in ("ann", "ben", "zoe")
    }
    assert [answer.status for answer in made.values()] == [201] * 3
    assert len({answer.json()["id"] for answer in made.values()}) == 3
    order = {"customerId": ANN, "total": "1"}
    assert shop.rest("POST", "/orders", order, who="staff", headers=KEY).status == 201
    assert shop.rest("POST", "/orders", order, who="admin", headers=KEY).status == 201
    nameless = [shop.service.token(None, "staff"), shop.service.token(None, "staff", "admin")]
    assert len({shop.rest("POST", "/orders", order, who=each, headers=KEY).json()["id"] for each in nameless}) == 2


def test_what_failed_is_not_kept(shop: Shop) -> None:
    dan = {"name": "Dan", "email": "ann@example.com"}
    with shop.unchanged():
        assert shop.rest("POST", "/users", dan, headers=KEY).status == 409
        assert shop.rest("POST", "/users", {"name": "Dan"}, headers=KEY).status == 422
        assert shop.rest("POST", "/users", dan, who="zoe", headers=KEY).status == 403
        assert shop.rest("PATCH", f"/users/{ANN}", {"name": "N"}, headers={**KEY, "if-match": '"9.x"'}).status == 412
        assert shop.ql('mutation { deletePost(id: "x") { id } }', headers=KEY).json()["data"] is None
    shop.service.execute("UPDATE users SET email = 'other' WHERE name = 'Ann'")
    assert shop.rest("POST", "/users", dan, headers=KEY).status == 201


@pytest.mark.parametrize("key", ["", " ", '""', "a b", "é", "x" * 256, '"a', "\x01", '"a\\x"'])
def test_an_ill_formed_key_is_400(shop: Shop, key: str) -> None:
    with shop.unchanged():
        answer = shop.rest("POST", "/posts", NEW, who="ann", headers={"idempotency-key": key})
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")


def test_a_key_in_quotation_marks_is_the_same_key(shop: Shop) -> None:
    first = shop.rest("POST", "/posts", NEW, who="ann", headers={"idempotency-key": '"k1"'})
    assert shop.rest("POST", "/posts", NEW, who="ann", headers=KEY).body == first.body


def test_a_key_is_forgotten_after_a_day(shop: Shop) -> None:
    first = shop.rest("POST", "/posts", NEW, who="ann", headers=KEY)
    shop.service.execute("UPDATE diptych_replays SET at = '2020-01-01T00:00:00.000000Z'")
    again = shop.rest("POST", "/posts", {**NEW, "title": "u"}, who="ann", headers=KEY)
    assert (again.status, again.body != first.body) == (201, True)


def test_an_answer_is_not_given_again_to_a_token_that_sees_less(shop: Shop) -> None:
    """The same person, by a token that cannot read what the answer holds."""
    body = {"customerId": ANN, "total": "1", "note": "n"}
    full = shop.service.token(ANN, "staff")
    first = shop.rest("POST", "/orders", body, who=full, headers=KEY)
    assert "internalNote" in first.json()
    with shop.unchanged():
        for less in ("ann", shop.service.token(ANN, "staff", scopes=["orders:read", "orders:write"])):
            again = shop.rest("POST", "/orders", body, who=less, headers=KEY)
            assert (again.status, again.code) == (422, "IDEMPOTENCY_MISMATCH")
    renewed = shop.service.token(ANN, "staff", ttl=901)
    assert shop.rest("POST", "/orders", body, who=renewed, headers=KEY).body == first.body


def test_the_bytes_of_the_body_count(shop: Shop) -> None:
    shop.rest("POST", "/posts", NEW, who="ann", headers=KEY)
    spaced = json.dumps(NEW, indent=1).encode()
    assert shop.rest("POST", "/posts", spaced, who="ann", headers=KEY).code == "IDEMPOTENCY_MISMATCH"


def test_a_key_does_not_open_what_is_no_longer_allowed(shop: Shop, safe: Shop) -> None:
    shop.rest("PATCH", f"/orders/{ORDER[1]}", {"note": "n"}, who="staff", headers=KEY)
    with shop.unchanged():
        assert shop.rest("PATCH", f"/orders/{ORDER[1]}", {"note": "n"}, who="ann", headers=KEY).status == 403
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"label": "l"}, who="ann", headers=KEY).status == 200


# what is kept, and how much of it

LONG = {**NEW, "body": "All work and no play makes Jack a dull boy. " * 400}


@pytest.fixture
def small(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop that keeps little for each caller."""
    monkeypatch.setattr(shop.service.handler.engine, "quota", IdempotencyQuota(largest=2_000, share=4_000))
    return shop


def test_a_long_answer_is_kept_compressed_and_replayed_as_it_was(shop: Shop) -> None:
    first = shop.rest("POST", "/posts", LONG, who="ann", headers=KEY)
    assert first.status == 201 and len(first.body) > 17_000
    (((size,),),) = shop._select("SELECT length(body) FROM diptych_replays")
    assert size < len(first.body) / 20
    again = shop.rest("POST", "/posts", LONG, who="ann", headers=KEY)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")


def test_an_answer_that_is_too_large_to_be_kept_undoes_its_change(small: Shop) -> None:
    noise = {**NEW, "body": "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(3_000))}
    with small.unchanged():
        for answer in (
            small.rest("POST", "/posts", noise, who="ann", headers=KEY),
            small.ql(
                "mutation($i: PostCreate!) { createPost(input: $i) { body } }", {"i": noise}, who="ann", headers=KEY
            ),
        ):
            assert answer.code == "TOO_COMPLEX"
    assert small.rest("POST", "/posts?fields=id", noise, who="ann", headers=KEY).status == 201


def test_who_keeps_too_much_is_refused_and_what_was_kept_is_replayed(small: Shop) -> None:
    answers = [small.rest("POST", "/posts", NEW, who="ann", headers={"idempotency-key": f"n{n}"}) for n in range(10)]
    done = [answer.status for answer in answers].count(201)
    assert 2 <= done < 8 and [answer.status for answer in answers[done:]] == [429] * (10 - done)
    assert answers[-1].code == "RATE_LIMITED" and int(answers[-1].headers["retry-after"]) > 0
    with small.unchanged():
        again = small.rest("POST", "/posts", NEW, who="ann", headers={"idempotency-key": "n0"})
        assert again.body == answers[0].body
    assert small.rest("POST", "/posts", NEW, who="ann").status == 201, "without a key nothing is kept"
    other = {**NEW, "authorId": BEN}
    assert small.rest("POST", "/posts", other, who="ben", headers=KEY).status == 201, "others have buckets of their own"
