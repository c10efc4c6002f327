"""Clients of other versions of HTTP, and bodies and paths in another form than ours: each is told what to do."""

from __future__ import annotations

import gzip
import json
import time

from tests.support.cases import cases
from tests.support.machine import Machine
from tests.support.running import NewDatabase, Service, served
from tests.system.wire.raw import QUERY, connect, drain, exchange, get, post, told

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
OLD = b"GET /health/live HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"


# HTTP/2


def frames(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Type, stream and payload of each frame of HTTP/2."""
    found = []
    while raw:
        size = int.from_bytes(raw[:3])
        found.append((raw[3], int.from_bytes(raw[5:9]), raw[9 : 9 + size]))
        raw = raw[9 + size :]
    return found


def test_http2_without_asking_is_told_to_use_http1(service: Service) -> None:
    for pieces in ([PREFACE], [PREFACE[:16], PREFACE[16:]], [PREFACE + b"\0" * 50_000]):
        with connect(service) as connection:
            for piece in pieces:
                connection.sendall(piece)
            settings, goaway = frames(drain(connection))
        assert settings == (4, 0, b"")
        assert goaway[:2] == (7, 0)
        assert goaway[2][:8] == bytes((0, 0, 0, 0, 0, 0, 0, 13))  # no stream was begun; HTTP_1_1_REQUIRED
        assert goaway[2][8:] == b"HTTP/1.1 is spoken here; a proxy in front of it can speak HTTP/2."


def test_the_preface_after_a_request_is_no_request(service: Service) -> None:
    first, second = exchange(service, get(close=False) + PREFACE)
    assert (first.status, second.status) == (200, 400)


# HTTP/1.0


def test_a_client_of_http_1_0_keeps_its_connection_if_it_asks(service: Service) -> None:
    with connect(service) as connection:
        for _ in range(3):
            connection.sendall(OLD)
            (answer,) = told(connection.recv(65_536))
            assert (answer.status, answer.headers["connection"]) == (200, "keep-alive")
    (answer,) = exchange(service, b"GET /health/live HTTP/1.0\r\n\r\n")
    assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_a_client_of_http_1_1_is_not_told_what_it_knows(service: Service) -> None:
    with connect(service) as connection:
        connection.sendall(get(close=False))
        (answer,) = told(connection.recv(65_536))
        assert "connection" not in answer.headers


# idle connections


def test_how_long_a_connection_may_be_idle_is_a_setting(new_sqlite: NewDatabase) -> None:
    machine = Machine()
    with served(new_sqlite(), "--idle-timeout", "0.3") as hasty, connect(hasty) as connection:
        connection.sendall(get(close=False))
        begun = time.monotonic()
        assert len(told(drain(connection))) == 1
        assert 0.2 < time.monotonic() - begun < machine.limit(2.0)


# bodies and paths


@cases("coding", ["gzip", "br", "zstd", "deflate", "GZip", "identity, gzip", "aws-chunked"])
def test_a_compressed_body_is_refused_in_both_styles(service: Service, coding: str) -> None:
    small = gzip.compress(QUERY)
    sized = [f"Content-Length: {len(small)}", f"Content-Encoding: {coding}"]
    (graphql,) = exchange(service, post(*sized, body=small))
    rest = post(*sized, body=small).replace(b"/graphql", b"/users")
    (problem,) = exchange(service, rest)
    (chunked,) = exchange(
        service,
        post(sized[1], "Transfer-Encoding: chunked", body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(small), small)),
    )
    for answer in (graphql, problem, chunked):
        assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE"), answer.body
        assert answer.headers["accept-encoding"] == "identity"
    assert json.loads(problem.body)["detail"] == "Send the body as it is, without a Content-Encoding."


def test_a_body_as_it_is_may_say_so(service: Service) -> None:
    (answer,) = exchange(service, post(f"Content-Length: {len(QUERY)}", "Content-Encoding: identity"))
    assert answer.status == 200
    (answer,) = exchange(service, get("/users?first=1", "Content-Encoding: gzip"))  # there is no body
    assert answer.status == 200


def test_several_requests_in_an_array_are_refused_with_a_sentence(service: Service) -> None:
    for batch in (b"[%b]" % QUERY, b" \n[%b, %b]" % (QUERY, QUERY), b"[]"):
        (answer,) = exchange(service, post(f"Content-Length: {len(batch)}", body=batch))
        assert (answer.status, answer.code) == (400, "BAD_REQUEST")
        (error,) = json.loads(answer.body)["errors"]
        assert error["message"] == (
            "An array of requests is not accepted: batching is off. Send each request by itself, or one document with "
            "several root fields, which is one statement."
        )


@cases("url", ["/users/", "/users/1/", "/users/1/posts/", "/posts/changes/", "/graphql/", "/users/?first=2"])
def test_a_path_with_a_slash_at_its_end_is_told_the_one_without(service: Service, url: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        (answer,) = exchange(service, get(url).replace(b"GET", method.encode()))
        path = url.partition("?")[0].removesuffix("/")
        assert (answer.status, answer.code) == (404, "NOT_FOUND")
        assert json.loads(answer.body)["detail"] == f"There is nothing here: it is {path}, without the slash."


@cases("url", ["//", "//users/", "//evil.example/", "/users//", "/nothing/", "/users/1/nothing/", "/%2Fevil.example/"])
def test_of_other_paths_nothing_is_told(service: Service, url: str) -> None:
    (answer,) = exchange(service, get(url))
    assert (answer.status, json.loads(answer.body)["detail"]) == (404, "There is nothing here.")
