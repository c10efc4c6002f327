"""A request of HTTP/1.1 in parts, so that parts can be changed: and put together again, as right as before.

Sample("GET", "/users?first=2", (("accept", "application/json"),)).raw()
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

Headers = tuple[tuple[bytes, bytes], ...]
LAST = b"GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
"""What is sent behind a request: if the connection lives on, this is answered, and ends it."""


@dataclass(frozen=True)
class Sample:
    """The parts of a request. `chunked` is the size of the chunks that its body is sent in; `behind` are bytes that follow."""

    method: bytes
    target: bytes
    headers: Headers = ()
    body: bytes | None = None
    chunked: int = 0
    version: bytes = b"HTTP/1.1"
    behind: bytes = b""
    length: bytes | None = None
    """What Content-Length says, if not the truth."""

    def in_chunks(self, size: int) -> Sample:
        return replace(self, chunked=size)

    def then(self, behind: bytes) -> Sample:
        return replace(self, behind=behind)

    def raw(self) -> bytes:
        lines = [b"%b %b %b" % (self.method, self.target, self.version)]
        lines += [b"%b: %b" % pair for pair in self.headers]
        body = self.body or b""
        if self.chunked:
            lines.append(b"transfer-encoding: chunked")
            body = _in_chunks(body, self.chunked)
        elif self.body is not None:
            lines.append(b"content-length: %b" % (self.length or b"%d" % len(body)))
        return b"\r\n".join((*lines, b"", body)) + self.behind


def _in_chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def sample(method: str, target: str, *, body: Any = None, token: str = "", **headers: str) -> Sample:
    """A sample in plain words: `if_match="…"` is a header; a body that is no text is JSON."""
    pairs = [("host", "127.0.0.1")]
    pairs += [("authorization", f"Bearer {token}")] if token else []
    pairs += [(name.replace("_", "-"), value) for name, value in headers.items()]
    if body is not None and "content_type" not in headers:
        pairs.append(("content-type", "application/json"))
    sent = (
        body
        if body is None or isinstance(body, bytes)
        else body.encode()
        if isinstance(body, str)
        else json.dumps(body).encode()
    )
    made = tuple((name.encode(), value.encode()) for name, value in pairs)
    return Sample(method.encode(), target.encode(), made, sent)


# WebSocket


def frames(messages: Sequence[Any]) -> bytes:
    """Messages of a client, each in a frame of its own; bytes go as they are."""
    return b"".join(frame(each if isinstance(each, bytes) else json.dumps(each).encode()) for each in messages)


def frame(payload: bytes, opcode: int = 1, mask: bytes = b"\x11\x22\x33\x44") -> bytes:
    """One frame of a client (RFC 6455, §5.2)."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return bytes([0x80 | opcode]) + length + mask + masked


def handshake(behind: bytes = b"", token: str = "", **headers: str) -> Sample:
    """A request for a WebSocket."""
    key = base64.b64encode(b"sixteen bytes..!").decode()
    given = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec_websocket_key": key,
        "sec_websocket_version": "13",
        "sec_websocket_protocol": "graphql-transport-ws",
    }
    return sample("GET", "/graphql", token=token, **{**given, **headers}).then(behind)
