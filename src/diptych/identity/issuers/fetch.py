"""Fetches a small JSON document over HTTPS, from an address that the settings or an issuer name.

    await fetch("https://login.example.org/.well-known/openid-configuration")

Only status 200 counts, redirects are not followed, TLS is verified and no proxy is used. The caller sets the timeout:
cancelling ends the request at once.
"""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httptools

LARGEST = 524_288
_PIECE = 65_536


class Unreadable(Exception):
    """A document that cannot be fetched, and why."""


async def fetch(address: str) -> dict[str, Any]:
    """The JSON object at an address; Unreadable if there is none."""
    try:
        answer = await _exchange(address)
        if answer.status != 200:
            raise ValueError(f"the answer is {answer.status}")
        document = json.loads(answer.body)
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        return document
    except (OSError, ValueError, RecursionError, httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        raise Unreadable(f"{address} cannot be read: {error or type(error).__name__}") from None


class _Answer:
    """A response, filled by httptools while it parses."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status = 0
        self.body = bytearray()
        self.is_whole = False

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_body(self, piece: bytes) -> None:
        self.body += piece

    def on_message_complete(self) -> None:
        self.is_whole = self.status >= 200


async def _exchange(address: str) -> _Answer:
    parts = urlsplit(address)
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=_trust() if is_secure else None)
    try:
        target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        head = (
            f"GET {target} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Accept: application/json",
            "Accept-Encoding: identity",
            "User-Agent: diptych",
            "Connection: close",
        )
        writer.write("\r\n".join((*head, "", "")).encode("ascii"))
        return await _read(reader)
    finally:
        writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> _Answer:
    """Read the whole response. One without a length ends with the connection."""
    answer, size = _Answer(), 0
    while not answer.is_whole and (piece := await reader.read(_PIECE)):
        size += len(piece)
        if size > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        answer.parser.feed_data(piece)
    return answer


@functools.cache
def _trust() -> ssl.SSLContext:
    """The TLS context with the certificate authorities of this machine."""
    return ssl.create_default_context()
