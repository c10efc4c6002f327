"""HTTP/1.1 itself, byte by byte: heads that are too large, upgrades that are not taken, and what is no HTTP."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.support.cases import cases
from tests.support.running import NewDatabase, Service, served

QUERY = b'{"query":"{ __typename }"}'
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
POST = b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
SIZED = b"Content-Length: 26\r\n\r\n" + QUERY
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + QUERY[:5] + b"\r\n15\r\n" + QUERY[5:] + b"\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample") as service:
        yield service


def head_of(size: int) -> bytes:
    """A request whose line and headers have so many bytes."""
    head = b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: "
    return head + b"x" * (size - len(head) - 4) + b"\r\n\r\n"


def parted(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return int(line.split()[1]), dict(field.split(": ", 1) for field in fields), body


def test_a_head_of_ordinary_size_is_taken(service: Service) -> None:
    assert parted(service.exchange(head_of(60_000)))[0] == 200
    long = service.get("/users?name=" + "x" * 60_000)
    assert long.status == 200


def test_a_head_that_is_too_large_is_refused(service: Service) -> None:
    for request in (head_of(66_000), b"GET /users?name=" + b"x" * 66_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"):
        status, headers, body = parted(service.exchange(request))
        assert (status, json.loads(body)["code"]) == (431, "HEADERS_TOO_LARGE")
        assert headers["content-type"] == "application/problem+json"
        assert headers["connection"] == "close"


def test_a_head_that_never_ends_is_refused(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(b"GET /users HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(ConnectionError):  # the server may close while this still sends
            for _ in range(20):
                connection.sendall(b"X-More: " + b"x" * 4_000 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 431 ")


def test_a_large_body_is_no_large_head(service: Service) -> None:
    body = json.dumps({"query": "{ __typename }", "variables": {"unused": "x" * 500_000}}).encode()
    answer = service.request("POST", "/graphql", {"content-type": "application/json"}, body)
    assert answer.json() == {"data": {"__typename": "Query"}}


@cases("body", [SIZED, CHUNKED], ids=["sized", "chunked"])
@cases("cuts", [(), (10,), (70, 200), (-10,)], ids=str)
def test_an_upgrade_that_is_not_taken_leaves_the_request_as_it_is(
    service: Service, body: bytes, cuts: tuple[int, ...]
) -> None:
    raw = POST + OFFER + body + b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for begin, end in zip((0, *cuts), (*cuts, len(raw)), strict=True):
            connection.sendall(raw[begin:end])
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b'{"data":{"__typename":"Query"}}' in answer
    assert answer.endswith(b'{"status":"ok"}')


def test_an_offer_of_websocket_that_is_not_taken_is_served_too(service: Service) -> None:
    raw = b"GET /users?first=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert service.exchange(raw).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "raw",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\nA\x00B: c\r\n\r\n"],
    ids=["TLS", "NUL"],
)
def test_what_is_no_http_is_refused_in_our_own_words(service: Service, raw: bytes) -> None:
    status, headers, body = parted(service.exchange(raw))
    assert (status, json.loads(body)["code"]) == (400, "BAD_REQUEST")
    assert headers["content-type"] == "application/problem+json"
    assert headers["connection"] == "close"


def test_two_ways_to_tell_the_length_of_a_body_are_refused(service: Service) -> None:
    raw = POST + b"Content-Length: 26\r\n" + CHUNKED
    assert parted(service.exchange(raw))[0] == 400
