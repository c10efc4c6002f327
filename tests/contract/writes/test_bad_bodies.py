"""Bodies that no one should send: each is refused with a code, nothing is written, and the next request is served."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.http.data import ANN, POST
from tests.contract.writes.shop import JSON_PATCH, MERGE, Shop
from tests.contract.writes.vault import BOX

WRITES = [("POST", "/posts"), ("PUT", f"/posts/{POST[1]}"), ("PATCH", f"/posts/{POST[1]}")]

# bytes that are no JSON that we take, and what is told
NO_JSON: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 400),
    "blanks": (b" \n", 400),
    "half": (b'{"title": "t"', 400),
    "two values": (b"{} {}", 400),
    "a trailing comma": (b'{"title": "t",}', 400),
    "single quotes": (b"{'title': 't'}", 400),
    "NaN": (b'{"title": NaN}', 400),
    "Infinity": (b'{"title": -Infinity}', 400),
    "a key twice": (b'{"title": "t", "title": "u"}', 400),
    "a key twice, hidden": (b'{"title": "t", "t\\u0069tle": "u"}', 400),
    "invalid UTF-8": (b'{"title": "\xff"}', 400),
    "an overlong NUL": (b'{"title": "\xc0\x80"}', 400),
    "a surrogate in UTF-8": (b'{"title": "\xed\xa0\x80"}', 400),
    "half a surrogate pair": (b'{"title": "\\ud800"}', 400),
    "UTF-16": ('{"title": "t"}'.encode("utf-16"), 400),
    "a byte order mark": (b'\xef\xbb\xbf{"title": "t"}', 400),
    "deep": (b'{"title":' + b"[" * 100 + b"]" * 100 + b"}", 400),
    "very deep": (b"[" * 100_000 + b"]" * 100_000, 400),
    "a control character": (b'{"title": "\x01"}', 400),
    "a form": (b"title=t&body=b", 400),
    "larger than allowed": (b'{"title": "' + b"x" * 1_048_577 + b'"}', 413),
}


@pytest.mark.parametrize("name", NO_JSON)
def test_what_is_no_json_is_refused(shop: Shop, name: str) -> None:
    body, status = NO_JSON[name]
    with shop.unchanged():
        for method, url in WRITES:
            answer = shop.rest(method, url, body, who="ann")
            assert answer.status == status and answer.kind == "application/problem+json", (method, answer.body)
            assert answer.code in ("BAD_REQUEST", "TOO_DEEP", "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("body", [None, True, 1, "x", [], [1], [[]], ["x", {}], [None]])
def test_what_is_no_object_is_refused(shop: Shop, body: Any) -> None:
    raw = json.dumps(body).encode()
    with shop.unchanged():
        for method, url in WRITES:
            answer = shop.rest(method, url, raw, who="ann")
            assert (answer.status, answer.code) == (422, "BAD_USER_INPUT"), method
            assert answer.places


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "json",
        "application/json; charset=latin-1",
        "application/jsonx",
        "text/json",
        "application/graphql",
        "*/*",
    ],
)
def test_only_json_is_taken(shop: Shop, kind: str) -> None:
    body = json.dumps({"authorId": ANN, "title": "t", "body": "b"}).encode()
    with shop.unchanged():
        for method, url in WRITES if kind else WRITES[:2]:  # a PATCH of no kind is a merge patch
            answer = shop.rest(method, url, body, who="ann", kind=kind)
            assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
            assert ("accept-patch" in answer.headers) is (method == "PATCH")
    for method, url in WRITES[:2]:
        with shop.unchanged():
            for patch in (MERGE, JSON_PATCH):
                assert shop.rest(method, url, body, who="ann", kind=patch).status == 415


# values of every type that are of another
WRONG: dict[str, list[Any]] = {
    "text": [1, 1.5, True, [], {}, ["x"], "a\0b", "\0"],
    "number": ["1", 1.5, True, [], {}, 2**31, -(2**31) - 1, 10**30, 1e300, -6],
    "big": [
        "x",
        "1.0",
        1.5,
        True,
        [],
        {},
        "9223372036854775808",
        2**63,
        "-9223372036854775809",
        "",
        " 1",
        "0x1",
        "1e3",
        10**100,
    ],
    "price": [
        "x",
        1.5,
        True,
        [],
        {},
        "1.234",
        "10000",
        "10000.00",
        "1e2",
        "",
        ".5",
        "5.",
        "NaN",
        "Infinity",
        "+1",
        "１",
        10**20,
    ],
    "ratio": ["1", True, [], {}, "NaN"],
    "flag": [0, 1, "true", [], {}, ""],
    "day": [
        "2026-02-30",
        "2026-1-1",
        "20260101",
        1,
        True,
        [],
        {},
        "",
        "2026-01-01T00:00:00Z",
        "0000-01-01",
        "10000-01-01",
    ],
    "moment": [
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00.1234567Z",
        1,
        True,
        [],
        {},
        "",
        "0001-01-01T00:00:00+01:00",
        "now",
    ],
    "mood": ["", "Calm", "nope", 1, True, [], {}, ["calm"]],
    "data": ["\0", {"a": "\0"}, {"\0": 1}, [10**30], {"a": [{"b": "x\0"}]}],
    "key": [True, [], {}, 1.5, "x", "", 1],
    "parentId": [True, [], {}, 1.5],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_another_type_is_refused(safe: Shop, name: str) -> None:
    document = "mutation($v: ThingPatch!) { updateThing(id: 1, patch: $v) { id } }"
    with safe.unchanged():
        for value in WRONG[name]:
            for method, url in (("POST", "/things"), ("PUT", "/things/1"), ("PATCH", "/things/1")):
                answer = safe.rest(method, url, {name: value}, who="zoe")
                assert answer.status in (400, 422), (value, answer.body)
                assert answer.status == 400 or answer.places == [f"/{name}"], value
            reply = safe.ql(document, {"v": {name: value}}, who="zoe")
            assert reply.status in (400, 422) and (reply.status == 400 or reply.places == [f"/variables/v/{name}"]), (
                value
            )


def test_what_fits_exactly_is_taken(safe: Shop) -> None:
    bodies: list[dict[str, Any]] = [
        {"number": 2**31 - 1},
        {"number": -5},
        {"number": 7.0},
        {"big": "9223372036854775807"},
        {"big": -(2**63)},
        {"price": "9999.99"},
        {"price": "-0"},
        {"price": 7},
        {"ratio": 5e-324},
        {"ratio": 1.7976931348623157e308},
        {"ratio": -0.0},
        {"day": "9999-12-31"},
        {"moment": "2026-01-01t00:00:00.5+14:00"},
        {"text": ""},
        {"text": "\u2028\x7f\ufffe\U0010ffff"},
        {"data": None},
        {"data": []},
        {"data": {"": {"": ""}}},
        {"data": [2**63 - 1, -(2**63)]},
        {"data": "x" * 100_000},
        {"parentId": 1},
        {"text": "x" * 900_000},
    ]
    for body in bodies:
        made = safe.rest("POST", "/things", body, who="zoe")
        assert made.status == 201, (body, made.body)
        assert safe.rest("PUT", made.headers["location"], made.body, who="zoe").status == 200


def test_text_is_kept_as_it_is(safe: Shop) -> None:
    for text in (
        "e\u0301 \u00e9",
        " trailing ",
        "\t\r\n",
        "\ufeff",
        "''\"\"\\",
        "%s {} $1 ?1 :a @b",
        "🏳️‍🌈",
        "\u202e",
        "x" * 70_000,
    ):
        made = safe.rest("POST", "/things", {"text": text, "data": {text: [text]}}, who="zoe").json()
        assert (made["text"], made["data"]) == (text, {text: [text]})
        assert safe.get(f"/things/{made['id']}") == made


def test_lengths_count_characters(safe: Shop) -> None:
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"label": "🏳" * 20}, who="ann").status == 200
    with safe.unchanged():
        for label in ("🏳" * 21, "x" * 21, ""):
            assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"label": label}, who="ann").places == ["/label"]
        assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"pin": "123"}, who="ann").places == ["/pin"]


def test_a_pattern_holds_from_beginning_to_end(shop: Shop) -> None:
    with shop.unchanged():
        for currency in ("EURO", "eur", "EU", "EUR\n", "\nEUR", "EUR\nUSD", "ＥＵＲ"):
            assert shop.rest(
                "POST", "/orders", {"customerId": ANN, "total": "1", "currency": currency}, who="ann"
            ).places == ["/currency"]
        for total in ("-0.01", "-1", "10000000000", "1.001"):
            assert shop.rest("POST", "/orders", {"customerId": ANN, "total": total}, who="ann").places == ["/total"]


@pytest.mark.parametrize(
    "query",
    [
        "?nope=1",
        "?sort=id",
        "?first=1",
        "?where={}",
        "?fields=",
        "?fields=nope",
        "?fields=id&fields=id",
        "?count=exact",
    ],
)
def test_a_write_takes_fields_and_no_other_parameter(shop: Shop, query: str) -> None:
    body = {"authorId": ANN, "title": "t", "body": "b"}
    with shop.unchanged():
        for method, url in WRITES:
            answer = shop.rest(method, url + query, body, who="ann")
            assert (answer.status, answer.code) == (400, "BAD_REQUEST"), method
        if query not in ("?fields=nope", "?fields=id&fields=id"):  # what is not answered is not looked at
            assert shop.rest("DELETE", f"/posts/{POST[1]}{query}", who="ann").status == 400


def test_a_mutation_of_json_takes_no_odd_json(safe: Shop) -> None:
    with safe.unchanged():
        body = b'{"query": "mutation($d: JSON) { createThing(input: {data: $d}) { id } }", "variables": {"d": {"a": 1, "a": 2}}}'
        answer = safe.service.post(body, accept="application/graphql-response+json")
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")
        deep: Any = 1
        for _ in range(70):
            deep = [deep]
        assert safe.rest("POST", "/things", {"data": deep}).code == "TOO_DEEP"
