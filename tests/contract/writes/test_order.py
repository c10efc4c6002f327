"""The order of checks for a write with several faults at once: each request has all the faults that follow, too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.data import ANN, NOBODY, ORDER, POST
from tests.contract.writes.shop import JSON_PATCH, MERGE, Shop, error_of
from tests.contract.writes.vault import BOX, SHELF

LARGE = b'{"x": "' + b"x" * 1_100_000
STALE = {"if-match": '"99.x"'}
TEXT = {"content-type": "text/plain"}
HTML = {"accept": "text/html"}
MERGING = {"content-type": MERGE}

# what is told, the request with its faults, who asks
LADDER: list[tuple[int, str, str, dict[str, str], Any, str]] = [
    (401, "PATCH", "/nope/1", {**HTML, **TEXT}, LARGE, "bad.token"),
    (404, "PATCH", "/nope/1", {**HTML, **TEXT}, LARGE, "anonymous"),
    (405, "PUT", "/users", {**HTML, **TEXT}, LARGE, "anonymous"),
    (406, "PATCH", f"/orders/{NOBODY}", {**HTML, **TEXT}, LARGE, "anonymous"),
    (415, "PATCH", f"/orders/{NOBODY}", TEXT, LARGE, "anonymous"),
    (413, "PATCH", f"/orders/{NOBODY}?%zz", {}, LARGE, "anonymous"),
    (400, "PATCH", f"/orders/{NOBODY}?%zz", {}, {"nope": 1}, "anonymous"),
    (400, "PATCH", f"/orders/{NOBODY}?fields=(", {}, {"nope": 1}, "anonymous"),
    (400, "PATCH", f"/orders/{NOBODY}", {}, b'{"nope": 1', "anonymous"),
    (400, "PATCH", f"/orders/{NOBODY}", {"idempotency-key": "k"}, {"nope": 1}, "anonymous"),
    (400, "DELETE", f"/orders/{NOBODY}?fields=(", STALE, None, "anonymous"),
    (401, "PATCH", f"/orders/{NOBODY}", STALE, {"nope": 1}, "anonymous"),
    (401, "PATCH", f"/orders/{NOBODY}", STALE, [1], "anonymous"),
    (401, "PATCH", f"/orders/{NOBODY}", {**STALE, **MERGING}, {"customer": {}}, "anonymous"),
    (403, "POST", "/users", {}, {"nope": 1}, "zoe"),
    (403, "POST", "/users", {}, [1, 2], "zoe"),
    (403, "POST", "/users", {}, [], "zoe"),
    (401, "DELETE", f"/orders/{NOBODY}", STALE, None, "zoe"),
    (403, "PATCH", f"/orders/{ORDER[1]}", STALE, {"note": 7, "nope": 1}, "ann"),
    (403, "PATCH", f"/orders/{ORDER[1]}", {**STALE, **MERGING}, {"note": 7, "customer": {}}, "ann"),
    (422, "PATCH", f"/posts/{NOBODY}", STALE, {"title": 7}, "zoe"),
    (422, "PATCH", f"/posts/{NOBODY}", {**STALE, **MERGING}, {"author": {}}, "zoe"),
    (422, "PUT", f"/posts/{NOBODY}", STALE, {"title": "t"}, "zoe"),
    (422, "PATCH", f"/posts/{POST[3]}", STALE, {"title": ""}, "zoe"),
    (422, "PATCH", f"/posts/{POST[1]}", STALE, {"id": POST[2]}, "zoe"),
    (404, "PATCH", f"/posts/{POST[3]}", STALE, {"title": "t", "authorId": NOBODY}, "zoe"),
    (404, "DELETE", f"/posts/{POST[3]}", STALE, None, "zoe"),
    (403, "PATCH", f"/posts/{POST[1]}", STALE, {"authorId": NOBODY}, "zoe"),
    (401, "DELETE", f"/posts/{POST[1]}", STALE, None, "zoe"),
    (403, "PATCH", f"/users/{ANN}", STALE, {"email": "ben@example.com"}, "zoe"),
    (403, "PATCH", f"/orders/{ORDER[1]}", STALE, {"status": "paid"}, "ann"),
    (412, "PATCH", f"/orders/{ORDER[1]}", STALE, {"status": "delivered"}, "ann"),
    (412, "PATCH", f"/users/{ANN}", STALE, {"email": "ben@example.com"}, "ann"),
    (412, "PATCH", f"/orders/{ORDER[1]}", STALE, {"status": "delivered", "customerId": NOBODY}, "staff"),
    (412, "DELETE", f"/users/{ANN}", STALE, None, "ann"),
    (409, "PATCH", f"/orders/{ORDER[1]}", {}, {"status": "delivered", "customerId": NOBODY}, "staff"),
    (409, "PATCH", f"/orders/{ORDER[1]}", {}, {"status": "delivered"}, "ann"),
    (409, "PATCH", f"/orders/{ORDER[1]}", {}, {"customerId": NOBODY}, "staff"),
    (409, "DELETE", f"/users/{ANN}", {}, None, "ann"),
]


@pytest.mark.parametrize(("status", "method", "url", "headers", "body", "who"), LADDER)
def test_the_earlier_fault_is_told(
    shop: Shop, status: int, method: str, url: str, headers: dict[str, str], body: Any, who: str
) -> None:
    with shop.unchanged():
        for _ in range(2):
            assert shop.rest(method, url, body, who=who, headers=headers).status == status


def test_a_json_patch_keeps_the_order(shop: Shop) -> None:
    wrong, misfit = [{"op": "nope"}], [{"op": "test", "path": "/title", "value": "no"}]
    for status, url, headers, body, who in (
        (400, f"/orders/{NOBODY}?fields=(", STALE, wrong, "anonymous"),
        (401, f"/orders/{NOBODY}", STALE, wrong, "anonymous"),
        (400, f"/posts/{NOBODY}?fields=nope", STALE, wrong, "zoe"),
        (422, f"/posts/{NOBODY}", STALE, wrong, "zoe"),
        (404, f"/posts/{POST[3]}", STALE, misfit, "zoe"),
        (403, f"/posts/{POST[1]}", STALE, misfit, "zoe"),
        (412, f"/posts/{POST[1]}", STALE, misfit, "ann"),
        (409, f"/posts/{POST[1]}", {}, misfit, "ann"),
    ):
        with shop.unchanged():
            assert shop.rest("PATCH", url, body, who=who, kind=JSON_PATCH, headers=headers).status == status, url


def test_a_merge_into_json_keeps_the_order(safe: Shop) -> None:
    with safe.unchanged():
        for status, url, body in (
            (400, "/things/9?fields=nope", {"data": {"a": 1}, "text": 1}),
            (422, "/things/9", {"data": {"a": 1}, "text": 1}),
            (404, "/things/9", {"data": {"a": 1}}),
            (412, "/things/1", {"data": {"a": 1}, "parentId": "77"}),
        ):
            assert safe.rest("PATCH", url, body, headers=STALE).status == status, url
        assert safe.rest("PATCH", "/things/1", {"data": {"a": 1}, "parentId": "77"}).status == 409


def test_put_keeps_the_order(safe: Shop) -> None:
    """Who may not write comes before what is stale, which comes before what differs, moves or dangles."""
    body = {"owner": ANN, "label": "l", "version": 1}
    with safe.unchanged():
        for status, more, headers in (
            (422, {"label": "", "rank": 9}, STALE),
            (403, {"rank": 9, "id": NOBODY}, STALE),
            (412, {"id": NOBODY}, STALE),
            (412, {"id": NOBODY, "version": 9}, {}),
            (422, {"id": NOBODY, "stage": "gone"}, {}),
            (409, {"stage": "gone", "shelfId": SHELF[3]}, {}),
            (409, {"shelfId": SHELF[3]}, {}),
        ):
            assert (
                safe.rest("PUT", f"/boxes/{BOX[1]}", {**body, **more}, who="ben", headers=headers).status == status
            ), more
        moved = safe.rest("PUT", f"/boxes/{BOX[1]}", {**body, "stage": "gone", "shelfId": SHELF[3]}, who="ben")
        assert moved.json()["allowed"] == ["old"]


def test_of_an_array_what_the_role_never_may_comes_first(safe: Shop) -> None:
    with safe.unchanged():
        rows = [{"label": ""}, {"owner": ANN, "label": "l", "rank": 9}]
        answer = safe.rest("POST", "/boxes", rows, who="ann")
        assert (answer.status, answer.places) == (403, ["/1/rank"])


def test_mutations_keep_the_order(shop: Shop) -> None:
    def told(document: str, who: str, variables: Any = None) -> str:
        with shop.unchanged():
            return shop.ql(document, variables, who=who).code

    wrong = '{title: "", nope: 1}'
    assert (
        told(f'mutation {{ updateOrder(id: "{NOBODY}", patch: {wrong}) {{ id }}', "anonymous") == "GRAPHQL_PARSE_FAILED"
    )
    assert (
        told(f'mutation {{ updateOrder(id: "{NOBODY}", patch: {wrong}) {{ id }} }}', "anonymous") == "UNAUTHENTICATED"
    )
    assert told("mutation { createUser(nope: 1) { id } }", "zoe") == "FORBIDDEN"
    assert (
        told(f'mutation {{ updatePost(id: "{NOBODY}", patch: {wrong}) {{ id }} }}', "zoe")
        == "GRAPHQL_VALIDATION_FAILED"
    )
    assert told(f'mutation {{ updatePost(id: "{NOBODY}", patch: {{title: ""}}) {{ id }} }}', "zoe") == "BAD_USER_INPUT"
    both = f"""mutation {{ a: updatePost(id: "{NOBODY}", patch: {{title: "t"}}) {{ id }}
                           b: updatePost(id: "{POST[1]}", patch: {{title: ""}}) {{ id }} }}"""
    assert told(both, "ann") == "BAD_USER_INPUT"  # nothing runs before all values are sound
    with shop.unchanged():
        for code, call in (
            ("NOT_FOUND", f'updatePost(id: "{POST[3]}", ifVersion: 9, patch: {{authorId: "x"}})'),
            ("FORBIDDEN", f'updatePost(id: "{POST[1]}", ifVersion: 9, patch: {{authorId: "x"}})'),
            (
                "PRECONDITION_FAILED",
                f'updateUser(id: "{PEOPLE_ZOE}", ifVersion: 9, patch: {{email: "ben@example.com"}})',
            ),
            ("CONFLICT", f'updateUser(id: "{PEOPLE_ZOE}", patch: {{email: "ben@example.com"}})'),
        ):
            assert error_of(shop.ql(f"mutation {{ {call} {{ id }} }}", who="zoe"))["extensions"]["code"] == code


PEOPLE_ZOE = "01900000-0000-7000-8000-0000000000a4"
