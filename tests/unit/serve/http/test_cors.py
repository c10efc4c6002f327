"""What pages of other origins may send and read, beside what tests/system/caching/test_cors.py asks of a real service."""

from __future__ import annotations

from diptych.api.reply import Header, Reply
from diptych.ask.act import HEADER
from diptych.serve.http.cors import Cors
from diptych.serve.http.request import Request

APP = "https://app.example.org"


async def nothing(_: int) -> bytes:
    return b""


def answered(method: str, *more: Header) -> dict[str, set[str]]:
    """The words of the headers of CORS, in lower case."""
    request = Request(method, "/posts", "", {b"origin": APP.encode(), **dict(more)}, nothing)
    headers = Cors((APP,)).apply(request, Reply(204, ())).headers
    return {name.decode(): set(value.decode().lower().split(", ")) for name, value in headers}


def test_a_page_may_send_every_header_of_the_api() -> None:
    asked = (b"access-control-request-method", b"PATCH")
    allowed = answered("OPTIONS", asked)["access-control-allow-headers"]
    assert {"authorization", "idempotency-key", "if-match", "prefer", "read-token", HEADER.decode()} <= allowed


def test_a_page_may_read_the_name_of_a_file_and_the_time_of_each_stage() -> None:
    assert {"content-disposition", "server-timing", "etag"} <= answered("GET")["access-control-expose-headers"]
