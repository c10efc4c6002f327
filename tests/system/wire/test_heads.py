"""A request means one thing, or it is refused: nobody on the way may read it as something else."""

from __future__ import annotations

import pytest

from tests.support.cases import cases
from tests.support.running import Service
from tests.system.wire.raw import ANSWER, CHUNKED, QUERY, SIZED, connect, drain, exchange, get, post, told

HIDDEN = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
"""What would be answered, if the bytes of a body were taken for a request."""
CHUNKS = "Transfer-Encoding: chunked"

MALFORMED = {
    "a length and chunks": post(SIZED, CHUNKS, body=b"0\r\n\r\n" + HIDDEN),
    "chunks and a length": post(CHUNKS, SIZED, body=b"0\r\n\r\n" + HIDDEN),
    "two lengths": post(SIZED, "Content-Length: 0"),
    "two equal lengths": post(SIZED, SIZED),
    "lengths as a list": post("Content-Length: 26, 26"),
    "a length with a plus": post("Content-Length: +26"),
    "a length with a minus": post("Content-Length: -26"),
    "a length with a space inside": post("Content-Length: 2 6"),
    "a length in hexadecimal": post("Content-Length: 0x1a"),
    "a length that is empty": post("Content-Length:"),
    "a length beyond all": post("Content-Length: 99999999999999999999999"),
    "no chunks at the end": post("Transfer-Encoding: chunked, gzip", body=CHUNKED),
    "another coding before chunks": post("Transfer-Encoding: gzip, chunked", body=CHUNKED),
    "another coding": post("Transfer-Encoding: gzip"),
    "identity": post("Transfer-Encoding: identity", SIZED),
    "chunks twice": post("Transfer-Encoding: chunked, chunked", body=CHUNKED),
    "two codings in two lines": post(CHUNKS, "Transfer-Encoding: identity", body=CHUNKED),
    "chunks in quotes": post('Transfer-Encoding: "chunked"', body=CHUNKED),
    "nearly chunks": post("Transfer-Encoding: xchunked", body=CHUNKED),
    "chunks behind a vertical tab": post("Transfer-Encoding: \x0bchunked", body=CHUNKED),
    "a space before the colon": post("Transfer-Encoding : chunked", body=CHUNKED),
    "a space before another colon": get("/", "X-A : b"),
    "a folded line": get("/", "X-A: b\r\n c"),
    "a folded coding": post("Transfer-Encoding:\r\n chunked", body=CHUNKED),
    "bare line feeds": b"GET / HTTP/1.1\nHost: x\n\n",
    "one bare line feed": b"GET / HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n",
    "a bare carriage return": b"GET / HTTP/1.1\r\nHost: x\rX-A: b\r\n\r\n",
    "NUL in a value": get("/", "X-A: b\x00c"),
    "NUL in a name": get("/", "X\x00A: b"),
    "a control character": get("/", "X-A: b\x01c"),
    "a space before the first name": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    "no colon": get("/", "X-A"),
    "no name": get("/", ": b"),
    "no host": b"GET /users HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /users HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "two hosts of HTTP/1.0": b"GET /users HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    "a host that is none": b"GET /users HTTP/1.1\r\nHost: a b\r\n\r\n",
    "a host with a user": b"GET /users HTTP/1.1\r\nHost: a@b\r\n\r\n",
    "a host with a path": b"GET /users HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "HTTP/0.9": b"GET /users\r\n\r\n",
    "HTTP/0.9 by name": b"GET /users HTTP/0.9\r\n\r\n",
    "HTTP/2.0 by name": b"GET /users HTTP/2.0\r\nHost: x\r\n\r\n",
    "HTTP/1.2": b"GET /users HTTP/1.2\r\nHost: x\r\n\r\n",
    "a name of a version in small letters": b"GET /users http/1.1\r\nHost: x\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /graphql HTTP/1.0\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "CONNECT": b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n" + HIDDEN,
    "CONNECT of a path": b"CONNECT /users HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method that is none": b"FETCH /users HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method in small letters": b"get /users HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tab after the method": b"GET\t/users HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the target": b"GET /users /posts HTTP/1.1\r\nHost: x\r\n\r\n",
    "a fragment": b"GET /users#x HTTP/1.1\r\nHost: x\r\n\r\n",
    "a star": b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    "another scheme": b"GET ftp://x/users HTTP/1.1\r\nHost: x\r\n\r\n",
    "a user in the target": b"GET http://a@x/users HTTP/1.1\r\nHost: x\r\n\r\n",
    "NUL in the target": b"GET /users\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes above 127 in the path": b"GET /us\xc3\xa9rs HTTP/1.1\r\nHost: x\r\n\r\n",
    "a chunk that is too large to be one": post(CHUNKS, body=b"ffffffffffffffffff\r\nx"),
    "a chunk in another notation": post(CHUNKS, body=b"0x1a\r\n" + QUERY + b"\r\n0\r\n\r\n"),
    "a chunk with a minus": post(CHUNKS, body=b"-1a\r\n" + QUERY + b"\r\n0\r\n\r\n"),
    "a chunk with bare line feeds": post(CHUNKS, body=b"1a\n" + QUERY + b"\n0\n\n"),
    "a chunk that is longer than it says": post(CHUNKS, body=b"5\r\n" + QUERY + b"\r\n0\r\n\r\n"),
    "an extension with a bare line feed": post(CHUNKS, body=b"1a;x\n" + QUERY + b"\r\n0\r\n\r\n"),
}


@cases("raw", MALFORMED.values(), ids=MALFORMED)
def test_what_can_be_read_in_two_ways_is_refused(service: Service, raw: bytes) -> None:
    (answer,) = exchange(service, raw)
    assert (answer.status, answer.code, answer.headers["connection"]) == (400, "BAD_REQUEST", "close")
    assert answer.headers["content-type"] == "application/problem+json"


TWICE = ("Authorization: Bearer a", "Content-Type: text/plain", "Idempotency-Key: a", "Origin: http://a")


@pytest.mark.parametrize("header", TWICE)
def test_what_can_be_only_one_is_refused_twice(service: Service, header: str) -> None:
    answers = exchange(service, post(SIZED, header, header))
    assert [(each.status, each.code) for each in answers] == [(400, "BAD_REQUEST")]
    (answer,) = exchange(service, get("/users", header, header))
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")


def test_a_trailer_is_no_header(service: Service) -> None:
    """Whoever looks at heads on the way has not seen it."""
    trailers = b"Authorization: Bearer nope\r\nContent-Type: text/plain\r\nX-A: b\r\n\r\n"
    raw = post(CHUNKS, body=CHUNKED[:-2] + trailers)
    (answer,) = exchange(service, raw)
    assert (answer.status, answer.body) == (200, ANSWER)


def test_extensions_of_chunks_say_nothing(service: Service) -> None:
    (answer,) = exchange(service, post(CHUNKS, body=b'1a;a=b;c="d"\r\n' + QUERY + b"\r\n0\r\n\r\n"))
    assert (answer.status, answer.body) == (200, ANSWER)


@pytest.mark.parametrize(
    "endless", [b"1;" + b"x" * 65_536, b"0\r\nX-A: " + b"x" * 65_536, b"0\r\n" + b"A: b\r\n" * 10_000]
)
def test_what_is_sent_around_a_body_has_an_end(service: Service, endless: bytes) -> None:
    (answer,) = exchange(service, post(CHUNKS, body=endless), *([b"x" * 65_536] * 4))
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert b"HTTP/1.1" in answer.body  # it was not its time that was over


def test_very_small_chunks_are_taken(service: Service) -> None:
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in QUERY + b" " * 40_000) + b"0\r\n\r\n"
    (answer,) = exchange(service, post(CHUNKS, body=body))
    assert (answer.status, answer.body) == (200, ANSWER)


def test_a_head_has_so_many_lines(service: Service) -> None:
    assert exchange(service, get("/health/live", *["X-A: b"] * 190))[0].status == 200
    (answer,) = exchange(service, get("/health/live", *["X-A: b"] * 210))
    assert (answer.status, answer.code) == (431, "HEADERS_TOO_LARGE")


def test_spaces_around_a_length_say_nothing(service: Service) -> None:
    (answer,) = exchange(service, post(f"Content-Length: \t {len(QUERY)} \t"))
    assert (answer.status, answer.body) == (200, ANSWER)


# targets and methods


def test_a_whole_address_is_a_target(service: Service) -> None:
    """And its host holds, whatever the header says (RFC 9112, §3.2.2)."""
    for target in ("http://example.org/health/live", "HTTP://example.org:80/health/live"):
        (answer,) = exchange(service, get(target))
        assert answer.status == 200
    for target in ("http://example.org", "http://example.org/"):
        (answer,) = exchange(service, get(target))
        assert (answer.status, b'"graphql"' in answer.body) == (200, True)
    (answer,) = exchange(service, get("http://example.org?first=1"))
    assert answer.status == 404
    for host in ("127.0.0.1:1", "localhost:2"):
        (answer,) = exchange(service, get(f"http://{host}/.well-known/oauth-authorization-server"))
        assert answer.status == 200 and f'"issuer":"http://{host}"'.encode() in answer.body


def test_options_of_everything_is_answered(service: Service) -> None:
    (answer,) = exchange(service, b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize("method", ["TRACE", "PURGE", "PROPFIND", "LINK", "MKCOL"])
def test_other_methods_are_not_allowed(service: Service, method: str) -> None:
    for path in ("/users", "/graphql", "/health/live"):
        (answer,) = exchange(service, get(path).replace(b"GET", method.encode(), 1))
        assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_a_method_is_not_overridden(service: Service, header: str) -> None:
    body = b'{"name":"x"}'
    raw = post(f"{header}: DELETE", f"Content-Length: {len(body)}", body=body).replace(b"/graphql", b"/users", 1)
    (answer,) = exchange(service, raw)
    assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")
    (answer,) = exchange(service, get("/users?first=1", f"{header}: DELETE"))
    assert answer.status == 200


def test_the_api_has_no_cookies(service: Service) -> None:
    for raw in (get("/users"), post(SIZED), get("/users/x"), get("/openapi.json"), get("/nothing")):
        (answer,) = exchange(service, raw)
        assert "set-cookie" not in answer.headers


# one behind the other


def test_answers_come_in_the_order_of_their_requests(service: Service) -> None:
    """Also where the last one is none: what is wrong with it is told behind the answers to the others."""
    good = post(SIZED, close=False) + get("/users?first=1", close=False)
    answers = exchange(service, good * 3 + b"GET / HTTP/1.1\r\nHost : x\r\n\r\n" + get())
    assert [each.status for each in answers] == [200] * 6 + [400]
    assert b"__typename" in answers[4].body and answers[-1].headers["connection"] == "close"


def test_a_broken_body_is_the_fault_of_its_own_request(service: Service) -> None:
    broken = post(CHUNKS, close=False, body=b"zz\r\n")
    for before in (0, 1, 3):
        answers = exchange(service, get(close=False) * before + broken)
        assert [each.status for each in answers] == [200] * before + [400]
    with connect(service) as connection:  # the request is under way when the body turns out to be broken
        connection.sendall(post(CHUNKS, close=False, body=b"5\r\n" + QUERY[:5] + b"\r\n"))
        assert service.get("/health/live").status == 200
        connection.sendall(b"zz\r\n")
        assert [each.status for each in told(drain(connection))] == [400]


def test_a_request_that_is_answered_before_its_body_is_the_last(service: Service) -> None:
    """The rest of the body is no request, and is not waited for."""
    refused = post("Authorization: Bearer nope", "Content-Length: 1000", close=False, body=HIDDEN)
    (answer,) = exchange(service, refused, HIDDEN)
    assert (answer.status, answer.headers["connection"]) == (401, "close")
    large = post("Content-Length: 99999999", close=False, body=b"x" * 65_536)
    (answer,) = exchange(service, large, *([b"x" * 65_536] * 20))
    assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_so_many_requests_may_be_sent_ahead(service: Service) -> None:
    """The connection ends with the answer to the last that was taken; the client sends the others again."""
    answers = exchange(service, get("/users?first=1", close=False) * 5_000)
    assert [each.status for each in answers] == [200] * 17
    assert [each.headers.get("connection") for each in answers] == [None] * 16 + ["close"]
    assert [each.status for each in exchange(service, get(close=False) * 10 + get())] == [200] * 11


# upgrades that are not taken

OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")


def test_an_offer_of_h2c_is_served_with_its_body(service: Service) -> None:
    sized, chunked = post(*OFFER, SIZED, close=False), post(*OFFER, CHUNKS, close=False, body=CHUNKED)
    answers = exchange(service, (sized + chunked + get("/users?first=1", *OFFER, close=False)) * 3 + get())
    assert [each.status for each in answers] == [200] * 10
    assert [each.body == ANSWER for each in answers] == [True, True, False] * 3 + [False]


def test_and_is_refused_for_what_is_wrong_with_it(service: Service) -> None:
    for wrong in (post(*OFFER, SIZED, CHUNKS), post(*OFFER, "Transfer-Encoding: gzip, chunked", body=CHUNKED)):
        assert [each.status for each in exchange(service, wrong)] == [400]
    assert exchange(service, post(*OFFER, "Content-Length: 99999999"))[0].status == 413
    no_host = post(*OFFER, SIZED).replace(b"Host: x\r\n", b"")
    assert exchange(service, no_host)[0].status == 400


def test_an_offer_keeps_what_else_it_says_of_the_connection(service: Service) -> None:
    both = ("Connection: Upgrade, close", "Upgrade: h2c")
    answers = exchange(service, get("/users?first=1", *both, close=False) + get())
    assert [(each.status, each.headers["connection"]) for each in answers] == [(200, "close")]
