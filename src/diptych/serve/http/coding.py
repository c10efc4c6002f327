"""Content codings of responses: zstd and gzip, for clients that accept them (RFC 9110, §8.4 and §12.5.3).

    Accept-Encoding: gzip, br, zstd    →    zstd
    a Reply of 1 KiB or more           →    the same with Content-Encoding, and with an ETag of its own

A client that does not ask pays nothing. Streams, responses of the authorization server, pages, and all that is not JSON
are never compressed. A large body is compressed in a thread.

Compression makes the length of a response depend on its content, so that one who can put guesses into a response and
see its length learns whether they occur elsewhere in it (BREACH). No page can make a browser send a token here, since
there is no cookie. Against those who write what others read, each compressed body is padded by 0 to 63 bytes that
depend on its content and on a secret: a repeated response shows nothing new, and has the same ETag (decision 0039).
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib
import re
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from diptych.api.reply import Header, Reply
from diptych.lru import memo
from diptych.serve.http.request import COMPRESSED, Request

INLINE = {b"gzip": 32_768, b"zstd": 131_072}
"""Bytes that are compressed in the event loop, in less than half a millisecond."""
_TYPES = (b"application/json", b"application/graphql-response+json", b"application/problem+json")
_THREADS = 2
_WAITING = 8
"""Large bodies that may be compressed or wait for it. More are sent as they are, so that nobody waits behind them."""
_PADDING = 64
_ITEM = re.compile(r"([\w!#$%&'*+.^`|~-]++)\s*+(?:;\s*+[qQ]\s*+=\s*+(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?", re.ASCII)
"""A coding with its quality. Spaces are possessive, since a header may have 64 KiB of them."""
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_of_thread = threading.local()
"""The compressor of each thread."""
_GZIP_HEAD = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"
"""Of a gzip member with a name, which is the padding: no time, no level, no system."""
_SKIPPABLE = 0x184D2A50
"""The magic number of a zstd frame that decoders skip (RFC 8878, §3.1.2)."""


@memo("Accept-Encoding headers", 256)
def accepted_coding(header: bytes) -> bytes:
    """The coding for an Accept-Encoding header; empty for none.

    It is one that the header names: clients that send `*` do not mean that they decode zstd (Prism's proxy does not).
    """
    qualities: dict[str, float] = {}
    for part in header.decode("latin-1").split(",")[:64]:
        match = _ITEM.fullmatch(part.strip())
        if match is not None:
            name = match[1].lower().removeprefix("x-")
            qualities.setdefault(name, float(match[2]) if match[2] else 1.0)
    best, chosen = 0.0, ""
    for name in _codings():
        quality = qualities.get(name, 0.0)
        if quality > best:
            best, chosen = quality, name
    return chosen.encode() if best >= qualities.get("identity", 0.0) else b""


async def coded(request: Request, work: Coroutine[Any, Any, Reply], key: bytes) -> Reply:
    """The reply of `work`, compressed as the client accepts it."""
    return await encode(request, await work, key)


async def encode(request: Request, reply: Reply, key: bytes) -> Reply:
    """The reply, compressed with the coding of the request."""
    body, coding = reply.body, request.coding
    if not coding or len(body) < COMPRESSED or reply.stream is not None or not _is_text(reply):
        return reply
    if len(body) <= INLINE[coding]:
        small = _COMPRESS[coding](body, key)
    elif _large.waiting >= _WAITING:
        return Reply(reply.status, tuple(_untagged(pair, coding) for pair in reply.headers), body)
    else:
        small = await _large.compress(coding, body, key)
    headers = tuple(_tagged(pair, coding) if pair[0] == b"etag" else pair for pair in reply.headers)
    return Reply(reply.status, (*headers, (b"content-encoding", coding)), small)


def _is_text(reply: Reply) -> bool:
    for name, value in reply.headers:
        if name == b"content-type":
            return value.partition(b";")[0] in _TYPES
    return False


def _tagged(pair: Header, coding: bytes) -> Header:
    """The ETag header of the compressed variant."""
    name, tag = pair
    suffix = b"-" + coding + b'"'
    return pair if tag.endswith(suffix) else (name, tag[:-1] + suffix)


def _untagged(pair: Header, coding: bytes) -> Header:
    """The headers of a variant that is sent as it is after all."""
    name, value = pair
    return (name, value.removesuffix(b"-" + coding + b'"') + b'"') if name == b"etag" and coding in value else pair


def _gzip(body: bytes, key: bytes) -> bytes:
    compressor = zlib.compressobj(3, zlib.DEFLATED, -14, 7)  # a small window: large ones take longer to set up
    small = compressor.compress(body) + compressor.flush()
    end = struct.pack("<II", zlib.crc32(body), len(body) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEAD, b"-" * _padding(small, key), b"\0", small, end))


def _zstd(body: bytes, key: bytes) -> bytes:
    compressor = getattr(_of_thread, "zstd", None)
    if compressor is None:
        compressor = _of_thread.zstd = _new_compressor()
    small: bytes = compressor.compress(body, compressor.FLUSH_FRAME)
    size = _padding(small, key)
    return b"".join((small, struct.pack("<II", _SKIPPABLE, size), bytes(size)))


_COMPRESS: dict[bytes, Callable[[bytes, bytes], bytes]] = {b"gzip": _gzip, b"zstd": _zstd}


def _padding(small: bytes, key: bytes) -> int:
    """The number of bytes to add, which depends on the content and on the key."""
    return hashlib.blake2b(small, key=key, digest_size=1).digest()[0] % _PADDING


def _new_compressor() -> Any:
    """A compressor of zstd; using it again saves a quarter of the time."""
    return importlib.import_module(_ZSTD).ZstdCompressor(3)


@functools.cache
def _codings() -> tuple[str, ...]:
    """The codings on offer; of equals, the first is preferred. (A Python 3.14 may have been built without zstd.)"""
    try:
        _new_compressor()
    except ImportError:
        return ("gzip",)
    return ("zstd", "gzip")


class _Large:
    """Compresses large bodies in threads."""

    def __init__(self) -> None:
        self.waiting = 0
        """How many are compressed, or wait for it."""

    @functools.cached_property
    def threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_THREADS, "diptych-compress")

    async def compress(self, coding: bytes, body: bytes, key: bytes) -> bytes:
        self.waiting += 1
        work = self.threads.submit(_COMPRESS[coding], body, key)
        try:
            return await asyncio.wrap_future(work)
        finally:
            self.waiting -= 1


_large = _Large()
