"""Heads that were seen before: data has one of them only if it is exactly one request with it."""

from __future__ import annotations

from diptych.serve.http.known_heads import KnownHead, KnownHeads
from tests.support.cases import cases

LINES = b" HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\n\r\n"
POSTED = b" HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n"


def known(heads: KnownHeads, method: bytes, rest: bytes, body: bytes = b"") -> KnownHead:
    """The head of a request that was kept."""
    pairs = [line.split(b": ", 1) for line in rest.split(b"\r\n")[1:-2]]
    headers = [(name, value) for name, value in pairs]
    data = method + b" /a" + rest + body
    heads.keep(data, method, headers, dict(headers))
    found = heads.find(data)
    assert found is not None
    return found[1]


def test_a_request_with_the_same_head_is_found_alike_with_the_last_head_and_without() -> None:
    heads = KnownHeads()
    last = known(heads, b"GET", LINES)
    for target in (b"/", b"/users/1?fields=id,name", b"/" + b"x" * 4096):
        data = b"GET " + target + LINES
        assert heads.find(data, last) == heads.find(data) == (target, last)


@cases(
    "data",
    [
        b"GET /b" + LINES + b"x",
        b"GET /b" + LINES[:-1],
        b"GET /b" + LINES + b"GET /c" + LINES,
        b"GET /b HTTP/1.1\r\nhost: y\r\n\r\nGET /c" + LINES,
        b"GET /b /c" + LINES,
        b"GET /b\r\nx: y" + LINES,
        b"GET b" + LINES,
        b"GET " + LINES,
        b"GET" + LINES,
        LINES,
        LINES[9:],
        b"GET /" + b"x" * 4097 + LINES,
        b"GET /\xe4" + LINES,
        b"GET /#" + LINES,
        b"HEAD /b" + LINES,
        b"GETS /b" + LINES,
        b"get /b" + LINES,
        b"GET /b" + LINES.replace(b"1.1", b"1.0"),
        b"",
    ],
)
def test_other_data_has_not_the_last_head(data: bytes) -> None:
    heads = KnownHeads()
    last = known(heads, b"GET", LINES)
    assert last.target(data) is None
    assert heads.find(data, last) is None


def test_a_body_is_as_long_as_the_head_says() -> None:
    heads = KnownHeads()
    last = known(heads, b"POST", POSTED, b"{}")
    assert heads.find(b"POST /b" + POSTED + b"[]", last) == (b"/b", last)
    for body in (b"", b"{", b"{ }", b"{}POST /b" + POSTED + b"{}"):
        assert heads.find(b"POST /b" + POSTED + body, last) is None
