"""If-Match and ifVersion: a change is made to the version that was seen, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.data import ANN, NOBODY, POST
from tests.contract.writes.shop import Shop, error_of

URL = f"/users/{ANN}"  # version 3
MATCHES = ["*", " * ", '"3.x"', 'W/"3.x"', '"3."', '"1.a", "3.b"', 'W/"1.a",W/"3.b"', ',"3.x",', '"nope", "3.b"']
MISSES = [
    '"2.x"',
    '"4.x"',
    '"3"',
    '"x"',
    '""',
    "3",
    "3.x",
    '"03.x"',
    '"-3.x"',
    '"3.x',
    '"+3.x"',
    '"3 .x"',
    "x",
    "",
    '"3.x" "4.y"',
    '*, "3.x"',
    'w/"3.x"',
    '"99999999999.x"',
    '"2.3.x"',
    "'3.x'",
    '"1.a", "2.b"',
]


@pytest.mark.parametrize("tags", MATCHES)
def test_a_version_among_the_tags_matches(shop: Shop, tags: str) -> None:
    assert shop.rest("PATCH", URL, {"name": "N"}, headers={"if-match": tags}).status == 200
    shop.refill()
    assert shop.rest("PUT", URL, {"name": "N", "email": "n@x"}, headers={"if-match": tags}).status == 200
    shop.refill()
    shop.service.execute("DELETE FROM orders")
    assert shop.rest("DELETE", URL, headers={"if-match": tags}).status == 204


@pytest.mark.parametrize("tags", MISSES)
def test_all_else_is_412(shop: Shop, tags: str) -> None:
    with shop.unchanged():
        for method, body in (("PATCH", {"name": "N"}), ("PUT", {"name": "N", "email": "n@x"}), ("DELETE", None)):
            answer = shop.rest(method, URL, body, headers={"if-match": tags})
            assert (answer.status, answer.code) == (412, "PRECONDITION_FAILED"), method


def test_the_tag_of_a_get_matches_until_something_changes(shop: Shop) -> None:
    url = f"/posts/{POST[1]}"
    seen = shop.rest("GET", url, who="ann").headers["etag"]
    first = shop.rest("PATCH", url, {"title": "N"}, who="ann", headers={"if-match": seen})
    assert first.status == 200
    with shop.unchanged():
        assert shop.rest("PATCH", url, {"title": "M"}, who="ann", headers={"if-match": seen}).status == 412
        assert shop.rest("DELETE", url, who="ann", headers={"if-match": seen}).status == 412
    assert shop.rest("PATCH", url, {"title": "M"}, who="ann", headers={"if-match": first.headers["etag"]}).status == 200
    shop.service.execute(f"UPDATE posts SET body = 'by SQL' WHERE id = '{POST[1]}'")
    now = shop.rest("GET", url, who="ann").headers["etag"]
    assert now.startswith('"4.')


def test_the_tag_of_an_answer_with_other_fields_matches_if_it_has_the_version(shop: Shop) -> None:
    url = f"/posts/{POST[1]}"
    with_version = shop.rest("GET", f"{url}?fields=version", who="ann").headers["etag"]
    without = shop.rest("GET", f"{url}?fields=title", who="ann").headers["etag"]
    listed = shop.rest("GET", "/posts", who="ann").headers["etag"]
    with shop.unchanged():
        for tag in (without, listed):
            assert shop.rest("PATCH", url, {"title": "N"}, who="ann", headers={"if-match": tag}).status == 412
    assert shop.rest("PATCH", url, {"title": "N"}, who="ann", headers={"if-match": with_version}).status == 200


def test_a_condition_tells_nothing_of_what_is_hidden(shop: Shop) -> None:
    with shop.unchanged():
        for tags in ('"1.x"', '"2.x"', "*"):
            headers = {"if-match": tags}
            assert shop.rest("PATCH", f"/posts/{POST[3]}", {"title": "N"}, who="zoe", headers=headers).status == 404
            assert shop.rest("PATCH", f"/posts/{NOBODY}", {"title": "N"}, who="zoe", headers=headers).status == 404
            assert shop.rest("PATCH", f"/posts/{POST[1]}", {"title": "N"}, who="zoe", headers=headers).status == 403
            assert shop.rest("DELETE", f"/posts/{POST[1]}", who="zoe", headers=headers).status == 401


def test_if_none_match_of_anything_is_never_met_by_a_row_that_is_there(shop: Shop) -> None:
    with shop.unchanged():
        for method, body in (("PATCH", {"name": "N"}), ("PUT", {"name": "N", "email": "n@x"}), ("DELETE", None)):
            assert shop.rest(method, URL, body, headers={"if-none-match": "*"}).status == 412


def test_a_header_and_the_version_of_the_body_must_both_hold(shop: Shop) -> None:
    shown = shop.get(URL)
    with shop.unchanged():
        assert shop.rest("PUT", URL, {**shown, "version": 2}, headers={"if-match": '"3.x"'}).status == 412
        assert shop.rest("PUT", URL, shown, headers={"if-match": '"2.x"'}).status == 412
    assert shop.rest("PUT", URL, shown, headers={"if-match": '"2.x", "3.x"'}).status == 200


def test_if_version_is_the_same_in_the_query_style(shop: Shop) -> None:
    document = (
        f"""mutation($v: Int) {{ a: updateUser(id: "{ANN}", patch: {{name: "N"}}, ifVersion: $v) {{ version }} }}"""
    )
    with shop.unchanged():
        for version in (2, 4, -1, 0, 2**31 - 1):
            error = error_of(shop.ql(document, {"v": version}))
            assert (error["extensions"]["code"], error["path"]) == ("PRECONDITION_FAILED", ["a"])
        for call in (
            f'deleteUser(id: "{ANN}", ifVersion: 2)',
            f'replaceUser(id: "{ANN}", ifVersion: 2, input: {{name: "N", email: "n@x"}})',
            f'replaceUser(id: "{ANN}", input: {{name: "N", email: "n@x", version: 2}})',
        ):
            assert error_of(shop.ql(f"mutation {{ {call} {{ id }} }}"))["extensions"]["code"] == "PRECONDITION_FAILED"
        others: list[Any] = ["3", 1.5, True, 2**31, [3, 4], {}]
        for wrong in others:
            assert shop.ql(document, {"v": wrong}).code == "BAD_USER_INPUT"
    assert shop.data(document, {"v": 3}) == {"a": {"version": 4}}
    assert shop.data(document, {"v": None}) == {"a": {"version": 5}}
    assert shop.data(document) == {"a": {"version": 6}}


def test_many_tags_are_as_good_as_one(shop: Shop) -> None:
    tags = ", ".join(f'"{n}.x"' for n in range(99, -1, -1))
    assert shop.rest("PATCH", URL, {"name": "N"}, headers={"if-match": tags}).status == 200
