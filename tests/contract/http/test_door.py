"""The ASGI door: what it makes of a scope, of a body in pieces, and of a reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, BEN
from tests.support.cases import cases
from tests.support.in_process import Service

GOOD = json.dumps({"query": "{ __typename }"}).encode()
JSON = (b"content-type", b"application/json")


@dataclass
class Knock:
    """One request at the door, and what came of it."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    asked: int = 0
    """How often the door asked for a piece of the body."""


def knock(
    service: Service,
    method: str,
    path: str,
    headers: Iterable[tuple[bytes, bytes]] = (),
    pieces: Iterable[Mapping[str, Any] | bytes] = (b"",),
    **scope: Any,
) -> Knock:
    """Send a scope and the pieces of a body; bytes stand for a piece after which more comes, but for the last."""
    found = Knock()
    given = list(pieces)
    last = len(given) - 1
    messages = [
        piece if not isinstance(piece, bytes) else {"type": "http.request", "body": piece, "more_body": number < last}
        for number, piece in enumerate(given)
    ]

    async def receive() -> Any:
        found.asked += 1
        return messages[found.asked - 1] if found.asked <= len(messages) else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            found.body += message.get("body", b"")

    raw, _, query = path.partition("?")
    whole = {
        "type": "http",
        "method": method,
        "path": raw,
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": list(headers),
        "root_path": "",
        **scope,
    }
    service.runner.run(service.app(whole, receive, send))
    return found


def test_a_reply_has_its_length(shop: Service) -> None:
    answer = knock(shop, "GET", f"/users/{ANN}")
    assert (answer.status, int(answer.headers["content-length"])) == (200, len(answer.body))


def test_head_has_the_length_and_no_body(shop: Service) -> None:
    got, head = knock(shop, "GET", "/users"), knock(shop, "HEAD", "/users")
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")


def test_what_is_not_modified_has_neither_body_nor_length(shop: Service) -> None:
    tag = knock(shop, "GET", "/users").headers["etag"].encode()
    answer = knock(shop, "GET", "/users", [(b"if-none-match", tag)])
    assert (answer.status, answer.body, "content-length" in answer.headers) == (304, b"", False)


def test_a_header_in_several_lines_is_a_list(shop: Service) -> None:
    tag = knock(shop, "GET", "/users").headers["etag"].encode()
    lines = [(b"if-none-match", tag), (b"if-none-match", b'"x"')]
    assert knock(shop, "GET", "/users", lines).status == 304
    assert knock(shop, "GET", "/users", [(b"accept", b"application/json"), (b"accept", b"text/html")]).status == 200


def test_two_tokens_are_no_token(shop: Service) -> None:
    tokens = [(b"authorization", f"Bearer {shop.token(user)}".encode()) for user in (ANN, BEN)]
    assert knock(shop, "GET", "/users", tokens).status == 400
    assert knock(shop, "GET", "/users", [tokens[0], tokens[0]]).status == 400
    assert knock(shop, "GET", "/users", tokens[:1]).status == 200


def test_what_can_be_only_one_is_refused_twice(shop: Service) -> None:
    two = [(b"content-type", b"application/json"), (b"content-type", b"text/plain")]
    for headers in (
        two,
        two[::-1],
        [two[0], two[0]],
        [(b"host", b"a"), (b"host", b"b")],
        [JSON, *[(b"idempotency-key", b"a")] * 2],
    ):
        answer = knock(shop, "POST", "/graphql", headers, [GOOD])
        assert (answer.status, json.loads(answer.body)["errors"][0]["extensions"]["code"]) == (400, "BAD_REQUEST")
        assert answer.asked == 0


def test_a_body_may_come_in_pieces(shop: Service) -> None:
    for pieces in ([GOOD], [GOOD[:5], GOOD[5:]], [GOOD[:1], b"", GOOD[1:], b""], [bytes([each]) for each in GOOD]):
        answer = knock(shop, "POST", "/graphql", [JSON], pieces)
        assert json.loads(answer.body) == {"data": {"__typename": "Query"}}


def test_a_body_that_is_announced_too_large_is_not_read(fresh: Fresh) -> None:
    service = fresh(max_body=100)
    for length in (b"101", b"99999999999999999999999999", b"-1", b"x", b"1e3"):
        answer = knock(service, "POST", "/graphql", [JSON, (b"content-length", length)], [GOOD])
        assert (answer.status, answer.asked) == (413, 0)


def test_a_body_that_turns_out_too_large_is_read_no_further(fresh: Fresh) -> None:
    service = fresh(max_body=100)
    answer = knock(service, "POST", "/graphql", [JSON], [b" " * 60] * 10)
    assert (answer.status, answer.asked) == (413, 2)
    assert knock(service, "POST", "/graphql", [JSON], [GOOD + b" " * (100 - len(GOOD))]).status == 200
    assert knock(service, "POST", "/graphql", [JSON], [GOOD + b" " * (101 - len(GOOD))]).status == 413


def test_a_client_that_goes_away_leaves_nothing_behind(shop: Service, caplog: pytest.LogCaptureFixture) -> None:
    gone: dict[str, Any] = {"type": "http.disconnect"}
    begun = {"type": "http.request", "body": GOOD[:5], "more_body": True}
    for pieces in ([gone], [begun, gone]):
        assert knock(shop, "POST", "/graphql", [JSON], pieces).status == 400
    assert not caplog.records


def test_a_bad_token_is_refused_before_the_body_is_asked_for(shop: Service) -> None:
    answer = knock(shop, "POST", "/graphql", [JSON, (b"authorization", b"Bearer nope")], [GOOD])
    assert (answer.status, answer.asked) == (401, 0)


def test_below_a_mount_links_begin_there(shop: Service) -> None:
    answer = knock(shop, "GET", "/posts?first=1&sort=title", root_path="/a b", raw_path=b"/a%20b/posts")
    assert answer.headers["link"].startswith("</a%20b/posts?sort=title&first=1&after=")


@cases("query", [b"title=\xff", b"title=\xc3\xa9", b"\xff=1", b"%", b"a=\x00", b"=", b"&&&", b"?"])
def test_any_bytes_of_a_query_are_answered(shop: Service, query: bytes) -> None:
    assert knock(shop, "GET", "/posts", query_string=query).status in (200, 400)


@cases(
    "raw",
    [
        b"/\xff",
        b"/users/\xff",
        b"/users/%FF",
        b"/%",
        b"/users/%zz",
        b"*",
        b"",
        b"users",
        b"//",
        b"/users/\xc3\xa9/posts",
    ],
)
def test_any_bytes_of_a_path_are_answered(shop: Service, raw: bytes) -> None:
    assert knock(shop, "GET", "/", raw_path=raw).status == 404


def test_a_path_that_only_the_server_decoded_is_read_as_well(shop: Service) -> None:
    assert knock(shop, "GET", f"/users/{ANN}", raw_path=None).status == 200
    assert knock(shop, "GET", "/users/é x", raw_path=None).status == 404
