"""A known read has the same response by the express path as by the handler, and whatever else goes the whole way."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

import diptych
from diptych.api.reply import Reply, lines_of
from diptych.fair.admission import Admission
from diptych.identity.revocation_list import revocation
from diptych.serve.express import Express, express_of
from diptych.serve.http.body import Arrived
from diptych.serve.http.head_traits import IGNORED, READ, traits_of
from diptych.serve.http.request import Request
from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, BEN, NOBODY, ORDER, POST
from tests.support.in_process import Service

BUSY = 1.0
"""Seconds that a request has waited for a loop that is busy."""
SIGHTS = 4
"""A plan is kept on its second sight, and a request on its own."""
JSON = {b"content-type": b"application/json"}


def document(text: str, variables: str = "{}") -> bytes:
    return b'{"query": "%b", "variables": %b}' % (text.encode(), variables.encode())


ONE = "query($id: ID!) { user(id: $id) { name email posts { title } } }"
NEST = "query($n: Int) { users(first: $n) { posts(first: $n) { comments(first: $n) { body author { name } } } } }"
READS: dict[str, tuple[str, bytes]] = {
    "one row": (f"/users/{ANN}", b""),
    "one row of others": (f"/users/{BEN}", b""),
    "fields of one row": (f"/users/{ANN}?fields=name,recent:posts[first=1](title)", b""),
    "a row that is not there": (f"/users/{NOBODY}", b""),
    "a row that is hidden": (f"/posts/{POST[6]}", b""),
    "an id that is none": ("/users/1", b""),
    "a list": ("/users?first=2", b""),
    "a list by its end": ("/users?last=2", b""),
    "a list with a filter": ("/posts?title[startsWith]=A&sort=-createdAt", b""),
    "a list with its count": ("/posts?count=exact&first=1", b""),
    "a relation": (f"/users/{ANN}/posts?first=1", b""),
    "a relation of nobody": (f"/users/{NOBODY}/posts", b""),
    "numbers of rows": ("/posts/summary?fields=count", b""),
    "a size that is none": ("/users?first=0", b""),
    "a cursor that is none": ("/users?after=abc", b""),
    "a query": ("/graphql", document("{ users { name posts { title } } }")),
    "a query of several": ("/graphql", document("{ users { name } posts { title } }")),
    "a connection": ("/graphql", document("{ usersConnection(first: 1) { pageInfo { endCursor } nodes { name } } }")),
    "a query by id": ("/graphql", document(ONE, f'{{"id": "{ANN}"}}')),
    "a query of a literal id": ("/graphql", document(f'{{ user(id: \\"{ANN}\\") {{ name }} }}')),
    "a query of literals": ("/graphql", document('{ users(first: 2, where: {name: {startsWith: \\"A\\"}}) { name } }')),
    "a query for nobody": ("/graphql", document(ONE, f'{{"id": "{NOBODY}"}}')),
    "a query of a value that is none": ("/graphql", document(ONE, '{"id": 1.5}')),
    "a query that is too dear": ("/graphql", document(NEST, '{"n": 100}')),
    "a query within its price": ("/graphql", document(NEST, '{"n": 3}')),
}
NEVER: dict[str, tuple[str, str, bytes, Mapping[bytes, bytes]]] = {
    "HEAD": ("HEAD", f"/users/{ANN}", b"", {}),
    "a condition": ("GET", f"/users/{ANN}", b"", {b"if-none-match": b"*"}),
    "a preference": ("GET", "/users", b"", {b"prefer": b"change-cursor"}),
    "another format": ("GET", "/users", b"", {b"accept": b"text/csv"}),
    "an event stream": ("POST", "/graphql", document("{ users { name } }"), {**JSON, b"accept": b"text/event-stream"}),
    "an id of the request": ("GET", "/users", b"", {b"x-request-id": b"1"}),
    "another origin": ("GET", "/users", b"", {b"origin": b"http://x"}),
    "no JSON": ("POST", "/graphql", document("{ users { name } }"), {b"content-type": b"text/plain"}),
    "an extension": (
        "POST",
        "/graphql",
        b'{"query": "{ users { name } }", "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "00"}}}',
        JSON,
    ),
    "introspection": ("POST", "/graphql", document("{ __typename }"), JSON),
    "the changes": ("GET", "/users/changes?first=1", b"", {}),
    "a collection of others": ("GET", "/orders", b"", {}),
    "nothing": ("GET", "/nothing", b"", {}),
    "health": ("GET", "/health/live", b"", {}),
    "a document": ("GET", "/openapi.json", b"", {}),
}


def seen(reply: Reply) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    if reply.encoded is not None and reply.encoded[0] is reply.headers:
        assert reply.encoded[1] == lines_of(reply.headers), "they are sent as they are encoded"
    return reply.status, sorted(reply.headers), reply.body


class Asking:
    """Sends a request by either way."""

    def __init__(self, service: Service) -> None:
        self.service = service
        express = express_of(service.handler)
        assert express is not None
        self.express: Express = express

    def whole(self, method: str, url: str, body: bytes, headers: Mapping[bytes, bytes]) -> Reply:
        return self.service.runner.run(self.service.handler.handle(self._request(method, url, body, headers)))

    def at_once(
        self, method: str, url: str, body: bytes, headers: Mapping[bytes, bytes], lag: float = 0.0
    ) -> Reply | None:
        traits = traits_of(method.encode(), headers)

        async def answered() -> Reply | None:
            reply = None if traits is None else self.express.answer(request, body, traits)
            return await reply if isinstance(reply, Awaitable) else reply

        request = self._request(method, url, body, headers)
        request.lag = lag
        return self.service.runner.run(answered())

    @staticmethod
    def _request(method: str, url: str, body: bytes, headers: Mapping[bytes, bytes]) -> Request:
        path, _, query = url.partition("?")
        return Request(method, path, query, headers, Arrived(body), peer=("127.0.0.1", 1))

    def headers(self, body: bytes, user: str | None, *roles: str, **more: bytes) -> dict[bytes, bytes]:
        found = {b"host": b"x", **(JSON if body else {}), **{name.encode(): value for name, value in more.items()}}
        if user is not None:
            found[b"authorization"] = b"Bearer " + self.service.token(user, *roles).encode()
        return found


@pytest.mark.parametrize("user", [None, ANN])
@pytest.mark.parametrize("name", READS)
def test_a_known_read_has_the_same_response(shop: Service, name: str, user: str | None) -> None:
    asking, (url, body) = Asking(shop), READS[name]
    method = "POST" if body else "GET"
    headers = asking.headers(body, user, *(["admin"] if user else []))
    for coding in ({}, {b"accept-encoding": b"gzip"}):
        whole = [seen(asking.whole(method, url, body, headers | coding)) for _ in range(SIGHTS)]
        for lag in (0.0, BUSY):
            fast = asking.at_once(method, url, body, headers | coding, lag)
            if name.startswith("a row") or (whole[0][0] == 200 and b'"errors"' not in whole[0][2]):
                assert fast is not None, "it is known"
            if fast is not None:
                assert seen(fast) == whole[-1] == whole[0]


@pytest.mark.parametrize("name", NEVER)
def test_all_else_goes_the_whole_way(shop: Service, name: str) -> None:
    asking, (method, url, body, more) = Asking(shop), NEVER[name]
    headers = {b"host": b"x", **more}
    for _ in range(SIGHTS):
        asking.whole(method, url, body, headers)
        assert asking.at_once(method, url, body, headers) is None


WRITES: dict[str, tuple[str, bytes]] = {
    "a row": ("/posts", b'{"title": "New", "body": "b", "authorId": "%b"}' % ANN.encode()),
    "fields of a row": ("/posts?fields=title", b'{"title": "New", "body": "b", "authorId": "%b"}' % ANN.encode()),
    "a value that is none": ("/posts", b'{"title": 5, "body": "b", "authorId": "%b"}' % ANN.encode()),
    "a row for others": ("/posts", b'{"title": "New", "body": "b", "authorId": "%b"}' % BEN.encode()),
    "no object": ("/posts", b"5"),
    "no JSON": ("/posts", b"{"),
    "a mutation": (
        "/graphql",
        document(
            "mutation($id: ID!, $title: String!) { createPost(input: {title: $title, body: $title, authorId: $id})"
            " { title version } }",
            f'{{"id": "{ANN}", "title": "New"}}',
        ),
    ),
    "a mutation of nothing": (
        "/graphql",
        document(
            "mutation($id: ID!, $n: String!) { updateUser(id: $id, patch: {name: $n}) { name } }",
            f'{{"id": "{NOBODY}", "n": "x"}}',
        ),
    ),
}
_NEW = re.compile(
    rb'"[0-9a-f-]{36}"|"\d{4}-[^"]*Z"|(?<=\.)[0-9a-f]{24}|(?<=/posts/)[0-9a-f-]{36}|(?<=number is )[0-9a-f]+'
)


@pytest.mark.parametrize("name", WRITES)
def test_a_known_write_has_the_same_response_and_the_same_effect(fresh: Fresh, name: str) -> None:
    service = fresh()
    asking, (url, body) = Asking(service), WRITES[name]
    headers = asking.headers(body, ANN)

    def told(reply: Reply) -> tuple[int, list[bytes], bytes]:
        status, pairs, text = seen(reply)
        return status, [_NEW.sub(b"*", b": ".join(pair)) for pair in pairs], _NEW.sub(b"*", text)

    def count() -> int:
        total: int = service.data("{ postsConnection { totalCount } }", token=service.token(ANN, "admin"))[
            "postsConnection"
        ]["totalCount"]
        return total

    whole = [told(asking.whole("POST", url, body, headers)) for _ in range(SIGHTS)]
    before = count()
    fast = asking.at_once("POST", url, body, headers)
    if whole[0][0] in (200, 201) and b'"errors"' not in whole[0][2]:
        assert fast is not None, "it is known"
        assert count() == before + 1
    if fast is not None:
        assert told(fast) == whole[-1] == whole[0]


@pytest.mark.parametrize("is_hog", [False, True])
def test_a_known_request_is_admitted_while_the_loop_is_busy(
    fresh: Fresh, is_hog: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is measured, and a caller that has taken much waits in the queue; then it is answered as ever."""
    asking = Asking(fresh())
    admission, (url, body) = asking.service.handler.admission, WRITES["a row"]
    headers, queued = asking.headers(body, ANN), list[str]()
    for _ in range(SIGHTS):
        asking.whole("POST", url, body, headers)
    wait = Admission._wait_for_admission

    async def waiting(self: Admission, caller: str) -> None:
        queued.append(caller)
        await wait(self, caller)

    monkeypatch.setattr(Admission, "_wait_for_admission", waiting)
    caller = asking.service.handler.context.caller(headers[b"authorization"])
    assert caller is not None
    before = admission._buckets.debt(caller.fairness_key)
    if is_hog:
        admission._buckets.spend(caller.fairness_key, 10)
    reply = asking.at_once("POST", url, body, headers, BUSY)
    assert reply is not None and reply.status == 201
    assert queued == [caller.fairness_key] * is_hog
    assert admission._buckets.debt(caller.fairness_key) > before


def test_a_key_makes_a_write_go_the_whole_way(fresh: Fresh) -> None:
    asking = Asking(fresh())
    url, body = WRITES["a row"]
    for number in range(SIGHTS):
        headers = asking.headers(body, ANN) | {b"idempotency-key": b"%d" % number}
        assert asking.at_once("POST", url, body, headers) is None
        assert asking.whole("POST", url, body, headers).status == 201


def test_a_token_that_ends_or_is_revoked_is_refused_as_ever(fresh: Fresh) -> None:
    service = fresh()
    asking = Asking(service)
    headers = asking.headers(b"", ANN)
    url = f"/users/{ANN}"
    for _ in range(SIGHTS):
        assert asking.whole("GET", url, b"", headers).status == 200
    assert asking.at_once("GET", url, b"", headers) is not None
    caller = service.handler.context.caller(headers[b"authorization"])
    assert caller is not None and caller.claims is not None
    token = caller.claims.get("jti")

    async def revoke() -> None:
        service.handler.context.revoked.add([revocation("token", token)])

    service.runner.run(revoke())
    assert asking.at_once("GET", url, b"", headers) is None
    assert asking.at_once("GET", url, b"", headers | {b"authorization": b"Bearer x"}) is None


def test_a_token_that_has_expired_is_refused_as_ever(fresh: Fresh) -> None:
    asking = Asking(fresh())
    token = asking.service.token(ANN, ttl=2)
    headers, url = {b"host": b"x", b"authorization": b"Bearer " + token.encode()}, f"/users/{ANN}"
    for _ in range(SIGHTS):
        assert asking.whole("GET", url, b"", headers).status == 200
    caller = asking.service.handler.context.caller(headers[b"authorization"])
    assert caller is not None
    while time.time() <= caller.expires:
        time.sleep(0.05)
    assert asking.at_once("GET", url, b"", headers) is None


def test_a_long_response_is_compressed_as_ever(shop: Service) -> None:
    asking = Asking(shop)
    headers = asking.headers(b"", ANN, "admin") | {b"accept-encoding": b"gzip"}
    whole = [seen(asking.whole("GET", "/posts?first=50", b"", headers)) for _ in range(SIGHTS)][-1]
    fast = asking.at_once("GET", "/posts?first=50", b"", headers)
    assert fast is not None and seen(fast) == whole and (b"content-encoding", b"gzip") in fast.headers


def test_a_row_that_changes_is_shown_as_it_is(fresh: Fresh) -> None:
    service = fresh()
    asking = Asking(service)
    headers, url = asking.headers(b"", ANN, "staff"), f"/orders/{ORDER[1]}"
    for status in ("paid", "shipped", "delivered"):
        for _ in range(SIGHTS):
            asking.whole("GET", url, b"", headers)
        body = b'{"status": "%b"}' % status.encode()
        assert asking.whole("PATCH", url, body, headers | JSON).status == 200
        fast = asking.at_once("GET", url, b"", headers)
        assert fast is not None and b'"status":"%b"' % status.encode() in fast.body


def test_each_request_counts_once_in_rates(fresh: Fresh) -> None:
    service = fresh(rates=({"requests": 100, "per": "day"},))
    asking = Asking(service)
    headers = asking.headers(b"", ANN)
    left, fast = [], 0
    for number in range(102):
        reply = asking.at_once("GET", f"/users/{ANN}", b"", headers)
        fast += reply is not None
        reply = reply or asking.whole("GET", f"/users/{ANN}", b"", headers)
        assert reply.status == (200 if number < 100 else 429)
        left += [value for name, value in reply.headers if name == b"ratelimit"]
    found = [re.search(rb"r=(\d+)", value) for value in left]
    assert fast > 4
    assert [int(match[1]) for match in found if match] == [*range(99, -1, -1), 0, 0]


def test_an_error_inside_tells_nothing(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    service = fresh()
    asking = Asking(service)
    headers = asking.headers(b"", ANN)
    for _ in range(SIGHTS):
        asking.whole("GET", f"/users/{ANN}", b"", headers)

    def broken(*_: object) -> Any:
        raise RuntimeError("a secret")

    for place, name in ((service.app.store, "run_now"), (service.handler.rest, "known")):
        monkeypatch.setattr(place, name, broken)
        reply = asking.at_once("GET", f"/users/{ANN}", b"", headers)
        assert reply is not None and reply.status == 500 and b"secret" not in reply.body


def test_no_header_that_the_service_reads_is_ignored() -> None:
    """Every name of a header that the source looks up is one that the traits hold, or one that sends the whole way."""
    names = set()
    for path in Path(diptych.__file__).parent.rglob("*.py"):
        if path.name == "head_traits.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
                names.add(node.value)
    kept_by_http = {
        b"cache-control",
        b"connection",
        b"keep-alive",
        b"pragma",
        b"via",
    }  # of responses, and of HTTP itself
    assert names & IGNORED <= kept_by_http
    assert not READ & IGNORED
