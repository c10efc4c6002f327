"""What bytes mean as requests, by the parser of the server: how many there are, and how it ends.

    foresee(b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET /x HT")   two requests are begun, one is whole; it is torn

So one knows what to wait for: after whole requests, the connection goes on; in the middle of one, nothing comes before the
client ends; behind something that is no HTTP, an answer says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import httptools

End = Literal["whole", "torn", "broken", "socket", "other"]
"""All were whole; the last is not complete; something is no HTTP; a WebSocket begins; or something else, by CONNECT."""


@dataclass
class Seen:
    """A request as it was read."""

    method: bytes = b""
    target: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    is_whole: bool = False

    @property
    def path(self) -> str:
        return self.target.partition(b"?")[0].decode("latin-1")

    @property
    def is_handshake(self) -> bool:
        """Does it ask for a WebSocket?"""
        wanted = (
            (b"upgrade", b"websocket"),
            (b"sec-websocket-version", b"13"),
            (b"sec-websocket-key", rb"[A-Za-z0-9+/]{22}=="),
        )
        return self.method == b"GET" and all(re.fullmatch(value, self.header(name), re.I) for name, value in wanted)

    def without_offer(self, version: str) -> bytes:
        """Its head without an offer of another protocol, which is not taken."""
        kept = [
            b"%b: %b\r\n" % pair
            for pair in self.headers
            if pair[0] not in (b"connection", b"upgrade", b"http2-settings")
        ]
        return b"%b %b HTTP/%b\r\n%b\r\n" % (self.method, self.target, version.encode(), b"".join(kept))

    def header(self, name: bytes) -> bytes:
        return b", ".join(value for key, value in self.headers if key == name)


@dataclass(frozen=True)
class Foreseen:
    """The requests that have a whole head, and what comes after them."""

    requests: list[Seen]
    end: End

    @property
    def ends(self) -> bool:
        """Does the connection end with the last of these, when it is answered?"""
        return self.end == "whole" and bool(self.requests) and self.requests[-1].header(b"connection") == b"close"


def foresee(raw: bytes) -> Foreseen:
    """Read bytes as the server will."""
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    reader.parser = parser
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade as upgrade:
        *before, offered = reader.seen
        if offered.is_handshake:
            return Foreseen(reader.seen, "socket")
        if offered.method == b"CONNECT":
            return Foreseen(reader.seen, "other")
        after = foresee(offered.without_offer(parser.get_http_version()) + raw[upgrade.args[0] :])
        return Foreseen(before + after.requests, after.end)
    except httptools.HttpParserError:
        return Foreseen(reader.seen, "broken")
    return Foreseen(reader.seen, "torn" if reader.is_within else "whole")


class _Reader:
    """The callbacks of httptools."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.is_within = False
        self.parser: httptools.HttpRequestParser
        self._now = Seen()

    def on_message_begin(self) -> None:
        self._now = Seen()
        self.is_within = True

    def on_url(self, url: bytes) -> None:
        self._now.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._now.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._now.method = self.parser.get_method()
        self.seen.append(self._now)

    def on_message_complete(self) -> None:
        self._now.is_whole = True
        self.is_within = False
