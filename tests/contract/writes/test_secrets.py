"""What an attacker would try: to write what is not theirs, and to learn by writing what they may not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.http.data import ANN, BEN, COMMENT, NOBODY, ORDER, POST, ZOE
from tests.contract.writes.shop import Shop, error_of
from tests.contract.writes.vault import BOX, NODE, SHELF
from tests.support.in_process import Answer


def same(one: Answer, other: Answer, *names: tuple[str, str]) -> None:
    """Two answers are the same but for the names that the caller gave, byte by byte and header by header."""
    left, right = one.body, other.body
    for mine, theirs in names:
        left, right = left.replace(mine.encode(), b"?"), right.replace(theirs.encode(), b"?")
    assert (one.status, dict(one.headers), left) == (other.status, dict(other.headers), right)


# a hidden field is like a field that no one has


@pytest.mark.parametrize("value", ["x", None, 1, "c1", {"a": 1}])
def test_a_hidden_field_in_input_is_like_one_that_no_one_has(safe: Shop, shop: Shop, value: Any) -> None:
    with safe.unchanged():
        for method, url, rest in (
            ("POST", "/boxes", {"owner": ANN, "label": "l"}),
            ("PATCH", f"/boxes/{BOX[1]}", {}),
            ("PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "l"}),
        ):
            hidden, nothing = (safe.rest(method, url, {**rest, name: value}, who="ann") for name in ("stamp", "stump"))
            assert hidden.status == 422
            same(hidden, nothing, ('"/stamp"', '"/stump"'), ("'stamp'", "'stump'"))
        for kind, call in (
            ("BoxCreate", "createBox(input: $v)"),
            ("BoxPatch", f'updateBox(id: "{BOX[1]}", patch: $v)'),
            ("BoxReplace", f'replaceBox(id: "{BOX[1]}", input: $v)'),
        ):
            document = f"mutation($v: {kind}!) {{ {call} {{ id }} }}"
            hidden, nothing = (
                safe.ql(document, {"v": {"owner": ANN, "label": "l", name: value}}, who="ann")
                for name in ("stamp", "stump")
            )
            assert hidden.code == "BAD_USER_INPUT"
            same(hidden, nothing, ("'stamp'", "'stump'"), ('"stamp"', '"stump"'), ("stamp", "stump"))
    with shop.unchanged():
        body = {"customerId": ANN, "total": "1"}
        hidden, nothing = (
            shop.rest("POST", "/orders", {**body, name: value}, who="ann") for name in ("internalNote", "nope")
        )
        same(hidden, nothing, ("internalNote", "nope"))


def test_a_hidden_field_in_a_document_is_like_one_that_no_one_has(safe: Shop) -> None:
    with safe.unchanged():
        for call in (
            'createBox(input: {{owner: "x", label: "l", {}: "v"}}) {{ id }}',
            'updateBox(id: "x", patch: {{{}: "v"}}) {{ id }}',
            'updateBox(id: "x", patch: {{}}) {{ {} }}',
        ):
            hidden, nothing = (
                safe.ql("mutation { " + call.format(name) + " }", who="ann") for name in ("stamp", "stump")
            )
            assert hidden.status == 400
            same(hidden, nothing, ("stamp", "stump"))


# a reference to what is hidden is like one to no row


@pytest.mark.parametrize("who", ["zoe", "ben"])
def test_a_reference_to_a_hidden_row_is_like_one_to_no_row(safe: Shop, who: str) -> None:
    for method, url, rest in (
        ("POST", "/boxes", {"owner": ANN, "label": "l"}),
        ("PATCH", f"/boxes/{BOX[1]}", {}),
        ("PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "l"}),
    ):
        with safe.unchanged():
            answers = [
                safe.rest(method, url, {**rest, "shelfId": id}, who=who) for id in (SHELF[2], SHELF[3], NOBODY, "x", "")
            ]
        assert (answers[0].status, answers[0].code, answers[0].places) == (409, "CONFLICT", ["/shelfId"])
        for other in answers[1:]:
            same(answers[0], other)
    document = f'mutation($id: ID!) {{ a: updateBox(id: "{BOX[1]}", patch: {{shelfId: $id}}) {{ id }} }}'
    with safe.unchanged():
        replies = [safe.ql(document, {"id": id}, who=who) for id in (SHELF[2], SHELF[3], NOBODY, "x")]
    assert error_of(replies[0])["extensions"]["code"] == "CONFLICT"
    for reply in replies[1:]:
        same(replies[0], reply)


def test_a_comment_on_a_hidden_post_is_like_one_on_no_post(shop: Shop) -> None:
    body = {"authorId": ZOE, "body": "b"}
    with shop.unchanged():
        answers = [shop.rest("POST", "/comments", {**body, "postId": id}, who="zoe") for id in (POST[3], NOBODY, "x")]
        answers += [
            shop.rest("PATCH", f"/comments/{COMMENT[1]}", {"postId": id}, who="ben") for id in (POST[3], NOBODY, "x")
        ]
    assert [answer.status for answer in answers] == [409] * 6
    for one, other in ((0, 1), (0, 2), (3, 4), (3, 5)):
        same(answers[one], answers[other])


def test_who_may_read_the_row_may_refer_to_it(safe: Shop) -> None:
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"shelfId": SHELF[2]}, who="ann").status == 200
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"shelfId": SHELF[3]}, who="admin").status == 200
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"shelfId": SHELF[1]}, who="zoe").status == 200


# a hidden row is like no row, by every verb


def test_a_hidden_row_is_like_no_row_by_every_verb(safe: Shop, shop: Shop) -> None:
    tries: list[tuple[Shop, str, str, Callable[[str], Any]]] = [
        (safe, BOX[2], "/boxes", lambda id: {"owner": ZOE, "label": "l"}),
        (shop, POST[3], "/posts", lambda id: {"authorId": ZOE, "title": "t", "body": "b"}),
    ]
    for place, hidden, path, body in tries:
        with place.unchanged():
            for method in ("PUT", "PATCH", "DELETE"):
                for headers in (
                    {},
                    {"if-match": '"1.x"'},
                    {"if-match": '"9.x"'},
                    {"if-none-match": "*"},
                    {"prefer": "return=representation"},
                ):
                    if method == "PUT" and "if-none-match" in headers:  # it creates, and conflicts as any creation
                        continue
                    answers = [
                        place.rest(
                            method, f"{path}/{id}", None if method == "DELETE" else body(id), who="zoe", headers=headers
                        )
                        for id in (hidden, NOBODY)
                    ]
                    assert answers[0].status in ((401,) if method == "DELETE" and place is safe else (404,))
                    same(answers[0], answers[1])
            name = "Box" if place is safe else "Post"
            field = "label" if place is safe else "title"
            for call in (
                f'update{name}(id: $id, patch: {{{field}: "x"}}, ifVersion: 9)',
                f'update{name}(id: $id, patch: {{{field}: "x"}})',
            ):
                answers = [
                    place.ql(f"mutation($id: ID!) {{ a: {call} {{ id }} }}", {"id": id}, who="zoe")
                    for id in (hidden, NOBODY)
                ]
                assert error_of(answers[0])["extensions"]["code"] == "NOT_FOUND"
                same(answers[0], answers[1])


# into and out of sight


def test_a_write_whose_result_its_writer_may_not_read_is_forbidden(safe: Shop) -> None:
    document = f'mutation($v: BoxPatch!) {{ a: updateBox(id: "{BOX[3]}", patch: $v) {{ id }} }}'
    with safe.unchanged():
        hidden = safe.rest("POST", "/boxes", {"owner": ANN, "label": "l", "open": False}, who="zoe")
        assert (hidden.status, hidden.code) == (403, "FORBIDDEN")
        assert safe.rest("PATCH", f"/boxes/{BOX[3]}", {"open": False}, who="zoe").status == 403
        assert (
            safe.rest("PUT", f"/boxes/{BOX[3]}", {"owner": BEN, "label": "l", "open": False}, who="zoe").status == 403
        )
        error = error_of(safe.ql(document, {"v": {"open": False}}, who="zoe"))
        assert (error["extensions"]["code"], error["path"]) == ("FORBIDDEN", ["a"])
        assert safe.rest("PATCH", f"/boxes/{BOX[2]}", {"owner": BEN}, who="ann").status == 403
        assert (
            safe.rest(
                "POST", "/boxes", [{"owner": ZOE, "label": "l"}, {"owner": ANN, "label": "l", "open": False}], who="zoe"
            ).status
            == 403
        )
    assert safe.rest("PATCH", f"/boxes/{BOX[3]}", {"open": False, "owner": ZOE}, who="zoe").status == 200
    assert safe.rest("PATCH", f"/boxes/{BOX[2]}", {"open": True, "owner": BEN}, who="ann").status == 200


def test_a_rule_holds_before_and_after(shop: Shop) -> None:
    with shop.unchanged():
        for body in (
            {"authorId": BEN},
            {"authorId": BEN, "title": "x"},
            {"authorId": None},
            {"authorId": NOBODY},
            {"authorId": "x"},
        ):
            assert shop.rest("PATCH", f"/posts/{POST[1]}", body, who="ann").status in (403, 409, 422)
        assert shop.rest("PATCH", f"/posts/{POST[4]}", {"authorId": ANN}, who="ann").status == 403
        assert shop.rest("PATCH", f"/comments/{COMMENT[1]}", {"authorId": ANN}, who="ann").status == 403
        assert shop.rest("POST", "/posts", {"authorId": BEN, "title": "t", "body": "b"}, who="ann").status == 403
        assert shop.rest("POST", "/orders", {"customerId": BEN, "total": "1"}, who="ann").status == 403
        assert (
            shop.rest("POST", "/comments", {"authorId": BEN, "postId": POST[1], "body": "b"}, who="ann").status == 403
        )


def test_a_row_that_leads_to_itself_is_judged_as_it_becomes(safe: Shop) -> None:
    """The rule asks who owns the row above; if that is the row itself, its new owner counts."""
    assert safe.rest("PATCH", f"/nodes/{NODE[2]}", {"owner": BEN}, who="ann").status == 200
    safe.refill()
    with safe.unchanged():
        for fields in ("", "?fields=id", "?fields=above(owner)"):
            answer = safe.rest("PATCH", f"/nodes/{NODE[2]}{fields}", {"aboveId": NODE[2], "owner": BEN}, who="ann")
            assert (answer.status, answer.code) == (403, "FORBIDDEN")
        document = (
            f'mutation {{ a: updateNode(id: "{NODE[2]}", patch: {{aboveId: "{NODE[2]}", owner: "{BEN}"}}) {{ id }} }}'
        )
        error = error_of(safe.ql(document, who="ann"))
        assert (error["extensions"]["code"], error["path"]) == ("FORBIDDEN", ["a"])
    assert safe.rest("PATCH", f"/nodes/{NODE[2]}", {"aboveId": NODE[2]}, who="ann").status == 200


def test_nobody_is_nobody(shop: Shop) -> None:
    """A token without a user owns nothing, also where an owner could be null."""
    nameless = shop.service.token(None)
    with shop.unchanged():
        for body in ({"authorId": None, "title": "t", "body": "b"}, {"authorId": ANN, "title": "t", "body": "b"}):
            assert shop.rest("POST", "/posts", body, who=nameless).status in (403, 422)
        assert shop.rest("PATCH", f"/posts/{POST[1]}", {"title": "x"}, who=nameless).status in (403, 404)
        assert shop.rest("DELETE", f"/users/{ANN}", who=nameless).status == 401


# mass assignment


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "version",
        "createdAt",
        "updatedAt",
        "author",
        "comments",
        "__typename",
        "author_id",
        "{id}",
        "{version}",
        'id"',
        "title; DROP TABLE posts",
        "",
        "t0",
        "ID",
        "Title",
        "1",
    ],
)
def test_only_the_fields_of_the_model_are_taken(shop: Shop, name: str) -> None:
    new = {"authorId": ANN, "title": "t", "body": "b"}
    with shop.unchanged():
        for method, url, body in (
            ("POST", "/posts", new),
            ("PATCH", f"/posts/{POST[1]}", {}),
            ("PUT", f"/posts/{POST[1]}", new),
        ):
            for value in (POST[2], 2, None, {"id": BEN}):
                answer = shop.rest(method, url, {**body, name: value}, who="ann")
                assert answer.status in (412, 422), (method, value, answer.body)


def test_names_are_quoted_in_pointers(shop: Shop) -> None:
    answer = shop.rest("PATCH", f"/posts/{POST[1]}", {"a/b~c": 1, "\"';--": 2}, who="ann")
    assert answer.places == ["/a~1b~0c", "/\"';--"]


def test_labels_and_values_are_never_sql(shop: Shop) -> None:
    text = "x'); DROP TABLE posts; --\" $1 ?1 {} %s \\ \u2028"
    answer = shop.rest(
        "POST", "/posts?fields=DROP:title,t0:body,w:id", {"authorId": ANN, "title": text, "body": text}, who="ann"
    )
    assert (answer.status, answer.json()["DROP"], answer.json()["t0"]) == (201, text, text)
    data = shop.data(
        f'mutation($t: String!) {{ select: updatePost(id: "{POST[1]}", patch: {{title: $t}}) {{ union: title }} }}',
        {"t": text},
        who="ann",
    )
    assert data == {"select": {"union": text}}
    assert shop.count("posts") == 9


# oracles


def test_a_conflict_is_told_of_ones_own_input_alone(safe: Shop) -> None:
    with safe.unchanged():
        answer = safe.rest("PATCH", f"/boxes/{BOX[1]}", {"stamp": "c3"}, who="staff")
        assert (answer.status, answer.places) == (409, ["/stamp"])
        for who in ("zoe", "ann"):  # who may not write the field learns nothing by it
            taken, free = (safe.rest("PATCH", f"/boxes/{BOX[1]}", {"stamp": code}, who=who) for code in ("c3", "c9"))
            same(taken, free)


def test_a_conflict_comes_after_every_rule(shop: Shop) -> None:
    with shop.unchanged():
        for email in ("ben@example.com", "free@example.com"):
            assert shop.rest("POST", "/users", {"name": "n", "email": email}, who="zoe").status == 403
            assert shop.rest("PATCH", f"/users/{ANN}", {"email": email}, who="zoe").status == 403
            stale = shop.rest("PATCH", f"/users/{ANN}", {"email": email}, who="ann", headers={"if-match": '"9.x"'})
            assert stale.status == 412


def test_a_put_with_guesses_of_what_is_masked_tells_nothing(safe: Shop) -> None:
    """Zoë may write `memo` and does not see it: whatever she gives is written, right or wrong."""
    seen = []
    for guess in ("mine", "wrong"):
        safe.refill()
        seen.append(
            safe.rest(
                "PUT", f"/boxes/{BOX[1]}?fields=label,memo", {"owner": ANN, "label": "l", "memo": guess}, who="zoe"
            )
        )
    same(seen[0], seen[1])
    assert seen[0].json() == {"label": "l", "memo": None}
    assert safe.get(f"/boxes/{BOX[1]}")["memo"] == "wrong"


def test_a_hidden_value_that_conflicts_is_not_named(safe: Shop) -> None:
    """The error names no field that its reader has not given."""
    safe.service.execute("UPDATE shelfs SET word = 'x' WHERE word = 'oak'")
    answer = safe.rest("PATCH", f"/boxes/{BOX[1]}", {"label": "x"}, who="ann")
    assert answer.status == 200 and b"stamp" not in answer.body


def test_what_is_told_of_a_refusal_holds_no_value_of_the_row(safe: Shop, shop: Shop) -> None:
    for place, method, url, body, who in (
        (safe, "PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "l", "id": NOBODY}, "zoe"),
        (safe, "PATCH", f"/boxes/{BOX[1]}", {"rank": 3}, "zoe"),
        (shop, "PATCH", f"/users/{BEN}", {"email": "x@y"}, "ann"),
        (shop, "PATCH", f"/users/{ANN}", {"email": "ben@example.com"}, "ann"),
    ):
        answer = place.rest(method, url, body, who=who)
        assert answer.status >= 400
        assert not any(secret in answer.body for secret in (b"1234", b"mine", b"pw", b"c1", b"@example.com"))


# scopes


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        (["read", "write"], True),
        (["read", "posts:write"], True),
        (["posts:read", "users:read", "posts:write"], True),
        (["read"], False),
        (["write"], False),
        ([], False),
        (["read", "orders:write"], False),
        (["posts:write"], False),
        (["admin"], False),
    ],
)
def test_scopes_narrow_what_can_be_written(shop: Shop, scopes: list[str], may: bool) -> None:
    token = shop.narrow("ann", *scopes)
    new = {"authorId": ANN, "title": "t", "body": "b"}
    tries = [
        ("POST", "/posts", new),
        ("PATCH", f"/posts/{POST[1]}", {"title": "x"}),
        ("PUT", f"/posts/{POST[2]}", new),
        ("DELETE", f"/posts/{POST[3]}", None),
    ]
    before = shop.dump()
    for method, url, body in tries:
        answer = shop.rest(method, url, body, who=token)
        if may:
            assert answer.status in (200, 201, 204), answer.body
        else:
            assert (answer.status, answer.code) == (401 if method == "DELETE" else 403, "FORBIDDEN")
    reply = shop.ql(f'mutation {{ updatePost(id: "{POST[1]}", patch: {{title: "y"}}) {{ id }} }}', who=token)
    assert (reply.status == 200 and "errors" not in reply.json()) if may else reply.code == "FORBIDDEN"
    assert (shop.dump() == before) is not may


def test_a_scope_gives_nothing_that_the_role_has_not(shop: Shop) -> None:
    token = shop.narrow("zoe", "read", "write", "users:write", "orders:write")
    with shop.unchanged():
        assert shop.rest("POST", "/users", {"name": "n", "email": "n@x"}, who=token).status == 403
        assert shop.rest("DELETE", f"/orders/{ORDER[1]}", who=token).status == 401
        assert shop.rest("PATCH", f"/posts/{POST[1]}", {"title": "x"}, who=token).status == 403


# what another role has


@pytest.mark.parametrize(
    ("method", "url", "call", "who"),
    [
        ("POST", "/users", 'createUser(input: {name: "n", email: "n@x"})', "ann"),
        ("DELETE", f"/orders/{ORDER[1]}", f'deleteOrder(id: "{ORDER[1]}")', "staff"),
        ("DELETE", f"/orders/{ORDER[1]}", f'deleteOrder(id: "{ORDER[1]}")', "ann"),
    ],
)
def test_what_another_role_has_is_refused_by_name_in_both_styles(
    shop: Shop, method: str, url: str, call: str, who: str
) -> None:
    body = None if method == "DELETE" else {"name": "n", "email": "n@x"}
    with shop.unchanged():
        assert shop.rest(method, url, body, who=who).code == "FORBIDDEN"
        assert shop.rest(method, url, body, who=who).status == (401 if method == "DELETE" else 403)
        reply = shop.ql(f"mutation {{ {call} {{ id }} }}", who=who)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        nobody = shop.ql(f"mutation {{ {call} {{ id }} }}", who="anonymous")
        assert (nobody.status, nobody.code, nobody.headers["www-authenticate"]) == (401, "UNAUTHENTICATED", "Bearer")
        assert shop.rest(method, url, body, who="anonymous").status == 401


def test_a_bad_token_is_refused_before_the_body_is_read(shop: Shop) -> None:
    with shop.unchanged():
        for method, url in (
            ("POST", "/users"),
            ("PATCH", f"/posts/{POST[1]}"),
            ("PUT", f"/posts/{POST[1]}"),
            ("POST", "/graphql"),
        ):
            answer = shop.rest(method, url, b"{", who="bad.token.here")
            assert (answer.status, answer.code, answer.body_was_read) == (401, "UNAUTHENTICATED", False)
            assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert (
            shop.rest("DELETE", f"/posts/{POST[1]}", who="bad.token.here").headers["www-authenticate"]
            == 'Bearer error="invalid_token"'
        )
        old = shop.service.token(ANN, ttl=-10)
        assert shop.rest("DELETE", f"/posts/{POST[1]}", who=old).status == 401
