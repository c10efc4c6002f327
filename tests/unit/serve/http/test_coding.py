"""Which coding a client gets, and what is in it."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections import Counter

import pytest

from diptych.api.reply import Reply
from diptych.serve.http.coding import INLINE, accepted_coding, encode
from diptych.serve.http.request import Request
from tests.support.cases import cases
from tests.support.zstd import unzstd

KEY = b"k" * 32
JSON = (b"content-type", b"application/json")
LONG = b'{"data":[%b]}' % b",".join(b'{"name":"user %d"}' % number for number in range(200))
UNPACK = {b"gzip": gzip.decompress, b"zstd": unzstd}


@cases(
    ("header", "coding"),
    [
        ("", ""),
        ("identity", ""),
        ("br", ""),
        ("deflate", ""),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip, deflate", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd, gzip", "zstd"),
        ("zstd;q=0.5, gzip", "gzip"),
        ("zstd;q=0, gzip;q=0", ""),
        ("gzip;q=0", ""),
        ("gzip;q=0.000", ""),
        ("gzip;q=0.001", "gzip"),
        ("gzip ; Q=1.0", "gzip"),
        ("*", ""),
        ("*;q=0", ""),
        ("*;q=0, gzip", "gzip"),
        ("zstd;q=0, *", ""),
        ("identity;q=1, gzip;q=0.5", ""),
        ("identity;q=0.5, gzip;q=1", "gzip"),
        ("identity, gzip", "gzip"),
        ("gzip;q=2", ""),
        ("gzip;q=x", ""),
        ("gzip;level=9", ""),
        ("gzip zstd", ""),
        ("xgzip, gzipx, g-zip", ""),
        (", ,gzip,", "gzip"),
        ("x," * 100 + "gzip", ""),
        ("gzip" + " " * 60_000 + "x", ""),
        ("gzip;" + " " * 60_000 + "x", ""),
        (" " * 60_000 + "gzip" + " " * 60_000, "gzip"),
    ],
)
def test_what_a_client_accepts(header: str, coding: str) -> None:
    assert accepted_coding(header.encode()) == coding.encode()


def sent(reply: Reply, coding: bytes = b"gzip", key: bytes = KEY) -> Reply:
    async def no_body(_: int) -> bytes:
        return b""

    request = Request("GET", "/", "", {}, no_body, coding=coding)
    return asyncio.run(encode(request, reply, key))


@pytest.mark.parametrize("coding", [b"gzip", b"zstd"])
def test_the_body_is_the_same_again(coding: bytes) -> None:
    draw = random.Random(3)
    for size in (1_024, 1_025, INLINE[coding] - 1, INLINE[coding], INLINE[coding] + 1, 300_000):
        for body in (b"a" * size, draw.randbytes(size), (LONG * 200)[:size]):
            found = sent(Reply(200, (JSON,), body), coding)
            assert UNPACK[coding](found.body) == body
            assert found.headers[-1] == (b"content-encoding", coding)


@pytest.mark.parametrize("coding", [b"gzip", b"zstd"])
def test_a_body_is_always_padded_alike_and_another_one_otherwise(coding: bytes) -> None:
    reply = Reply(200, (JSON,), LONG)
    assert sent(reply, coding).body == sent(reply, coding).body
    other = {len(sent(reply, coding, bytes((number,)) * 32).body) for number in range(64)}
    assert 20 < len(other) <= 64 and max(other) - min(other) < 64
    near = {len(sent(Reply(200, (JSON,), LONG + b" " * 3 + b"%03d" % number), coding).body) for number in range(64)}
    assert len(near) > 20, "guesses of equal length are told apart by their padding, not by what they match"


def test_the_padding_of_gzip_is_a_name() -> None:
    body = sent(Reply(200, (JSON,), LONG)).body
    assert body[:4] == b"\x1f\x8b\x08\x08" and zlib.decompressobj(31).decompress(body) == LONG


@cases(
    ("reply", "why"),
    [
        (Reply(200, (JSON,), LONG[:1_023]), "it is small"),
        (Reply(200, ((b"content-type", b"text/event-stream; charset=utf-8"),), LONG), "it is a stream"),
        (Reply(200, ((b"content-type", b"text/html; charset=utf-8"),), LONG), "it is a page, which may have a cookie"),
        (Reply(200, (), LONG), "nobody knows what it is"),
        (Reply(304, (JSON,)), "there is none"),
    ],
)
def test_some_bodies_are_sent_as_they_are(reply: Reply, why: str) -> None:
    assert sent(reply) is reply, why
    assert sent(Reply(200, (JSON,), LONG), b"").body == LONG


@cases(
    ("tag", "changed"),
    [
        (b'"3.abc"', b'"3.abc-gzip"'),
        (b'W/"abc"', b'W/"abc-gzip"'),
        (b'"abc-gzip"', b'"abc-gzip"'),
    ],
)
def test_what_is_compressed_has_a_tag_of_its_own(tag: bytes, changed: bytes) -> None:
    found = dict(sent(Reply(200, (JSON, (b"etag", tag)), LONG)).headers)
    assert found[b"etag"] == changed


def test_large_bodies_do_not_queue_up() -> None:
    """Above a few at a time they are sent as they are, with the tag of that variant."""
    body = LONG * 100
    tagged = Reply(200, (JSON, (b"etag", b'"3.abc-gzip"')), body)

    async def many() -> list[Reply]:
        async def no_body(_: int) -> bytes:
            return b""

        request = Request("GET", "/", "", {}, no_body, coding=b"gzip")
        return await asyncio.gather(*(encode(request, tagged, KEY) for _ in range(30)))

    kinds = Counter((dict(reply.headers)[b"etag"], len(reply.body) < len(body)) for reply in asyncio.run(many()))
    assert kinds == {(b'"3.abc-gzip"', True): 8, (b'"3.abc"', False): 22}
    again = sent(tagged)
    assert gzip.decompress(again.body) == body
