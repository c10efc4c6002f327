"""The head of a response: its lines in order, and none at all if a header would be more than one line."""

from __future__ import annotations

from diptych.api.reply import Reply, lines_of
from diptych.serve.http.uvicorn_fast_path import encoded_head
from tests.support.cases import cases

HEADERS = ((b"content-type", b"application/json"), (b"etag", b'"x"'))
LINES = b'content-type: application/json\r\netag: "x"\r\n'


def test_a_head_has_its_lines_in_order() -> None:
    date = [(b"date", b"now")]
    assert encoded_head(Reply(200, HEADERS, b"abc"), (), True) == (
        b"HTTP/1.1 200 OK\r\n" + LINES + b"content-length: 3\r\n\r\n"
    )
    assert encoded_head(Reply(404, HEADERS, b""), date, False) == (
        b"HTTP/1.1 404 Not Found\r\ndate: now\r\n" + LINES + b"content-length: 0\r\nconnection: close\r\n\r\n"
    )
    assert encoded_head(Reply(304, HEADERS), (), True) == b"HTTP/1.1 304 Not Modified\r\n" + LINES + b"\r\n"
    assert encoded_head(Reply(204, ()), (), False) == b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"


def test_headers_that_are_encoded_already_are_those_of_their_tuple_alone() -> None:
    encoded = HEADERS, lines_of(HEADERS)
    for keep_alive in (True, False):
        for date in ((), ((b"date", b"now"),)):
            expected = encoded_head(Reply(200, HEADERS, b"abc"), date, keep_alive)
            assert encoded_head(Reply(200, HEADERS, b"abc", None, encoded), date, keep_alive) == expected
    reply = Reply(200, HEADERS, b"", None, encoded)
    reply.headers += ((b"ratelimit", b"1"),)
    assert encoded_head(reply, (), True) == encoded_head(Reply(200, reply.headers), (), True)
    assert encoded_head(Reply(304, HEADERS, b"", None, encoded), (), True) == encoded_head(
        Reply(304, HEADERS), (), True
    )


def test_headers_that_are_encoded_already_are_sent_so_beside_those_of_every_response() -> None:
    """uvicorn has such headers: `Date`, in a new list each second."""
    reply = Reply(200, HEADERS, b"abc", None, (HEADERS, b"x-encoded: already\r\n"))
    for date in ([(b"date", b"now")], [(b"date", b"then"), (b"server", b"x")], []):
        first, *lines = (encoded_head(reply, date, True) or b"").split(b"\r\n")
        assert first == b"HTTP/1.1 200 OK"
        expected = [*(b"%b: %b" % header for header in date), b"x-encoded: already", b"content-length: 3", b"", b""]
        assert lines == expected


@cases("value", [b"x\r\nset-cookie: a=b", b"x\n", b"x\ny", b"\r\n\r\n<html>"])
def test_a_header_of_several_lines_is_refused(value: bytes) -> None:
    for keep_alive in (True, False):
        assert encoded_head(Reply(200, (*HEADERS, (b"location", value))), (), keep_alive) is None
        assert encoded_head(Reply(304, (*HEADERS, (b"location", value))), ((b"date", b"now"),), keep_alive) is None
