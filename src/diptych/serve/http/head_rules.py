"""Validation of a request head, beyond what the parser checks (RFC 9112, RFC 9110).

The parser refuses malformed input: bare line feeds, folded lines, spaces before a colon, two Content-Length headers, or
one beside `chunked`. This module refuses what is well-formed but ambiguous, so that no proxy on the way can read it
differently (request smuggling): an unsupported version, no Host or two of them, transfer codings besides `chunked`, a
target that is not a path.

    fault_of(b"GET", b"/users", "1.1", [(b"host", b"example.org")], {b"host": b"example.org"})  →  None
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping

from diptych.errors import Code, Refusal
from diptych.lru import memo

MAX_HEAD = 65_536
MAX_LINES = 200
HeaderList = list[tuple[bytes, bytes]]

_SPOKEN = b"HTTP/1.1 is spoken here; a proxy in front of it can speak HTTP/2."
HTTP_1_1_REQUIRED = b"".join(
    (
        struct.pack(">HBBBI", 0, 0, 4, 0, 0),  # SETTINGS, empty
        struct.pack(">HBBBIII", 0, 8 + len(_SPOKEN), 7, 0, 0, 0, 13),  # GOAWAY, the last stream 0, HTTP_1_1_REQUIRED
        _SPOKEN,
    )
)
"""The frames of HTTP/2 that say so to a client that speaks it without asking before."""

MALFORMED_HEAD = Refusal(Code.BAD_REQUEST, "This is not a valid HTTP/1.1 request.")
HEAD_TOO_LARGE = Refusal(Code.HEADERS_TOO_LARGE, f"The request line and the headers may have {MAX_HEAD} bytes.")
_HANDSHAKE_BODY = Refusal(Code.BAD_REQUEST, "A WebSocket handshake has no body.")
_TOO_MANY = Refusal(Code.HEADERS_TOO_LARGE, f"A request may have {MAX_LINES} headers.")
_HOST = Refusal(Code.BAD_REQUEST, "An HTTP/1.1 request has exactly one valid Host header.")
_CODING = Refusal(Code.BAD_REQUEST, "The only supported transfer coding is chunked.")
_TARGET = Refusal(Code.BAD_REQUEST, "The request target must be a path.")
_ONCE = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"last-event-id", b"origin")
"""Headers that are not lists: of two of them, some recipients read the first and some the last."""
_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?#@\\]+)((?:[/?].*)?)", re.DOTALL)


def refusal_of_head(
    method: bytes, url: bytes, version: str, headers: HeaderList, by_name: Mapping[bytes, bytes]
) -> Refusal | None:
    """Why a well-formed head is refused, or None. Header names are in lower case; `by_name` has the last of each."""
    if len(headers) > MAX_LINES:
        return _TOO_MANY
    host = by_name.get(b"host")
    if host is not None:
        if not _is_host(host):
            return _HOST
    elif version == "1.1":
        return _HOST
    if version not in ("1.1", "1.0"):
        return MALFORMED_HEAD
    if len(by_name) != len(headers) and sum(name == b"host" for name, _ in headers) > 1:
        return _HOST
    if b"transfer-encoding" in by_name:
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if codings != [b"chunked"] or version != "1.1":
            return _CODING
    if url[:1] == b"/" and b"#" not in url:
        return None
    return None if url == b"*" and method == b"OPTIONS" else _TARGET


def origin_form(url: bytes, headers: HeaderList) -> tuple[bytes, HeaderList]:
    """The target in origin form, and the headers with the effective Host: that of an absolute target takes
    precedence."""
    match = _ABSOLUTE.fullmatch(url)
    if match is None:
        return url, headers
    host, rest = match.groups()
    target = rest if rest[:1] == b"/" else b"/" + rest
    return target, [(name, host if name == b"host" else value) for name, value in headers]


def is_handshake(method: bytes, headers: HeaderList) -> bool:
    """Is this a complete WebSocket handshake (RFC 6455, §4.2.1)?"""
    upgrades = [value for name, value in headers if name == b"upgrade"]
    keys = [value for name, value in headers if name == b"sec-websocket-key"]
    versions = [value for name, value in headers if name == b"sec-websocket-version"]
    whole = len(upgrades) == len(keys) == 1 and versions == [b"13"]
    return method == b"GET" and whole and _KEY.fullmatch(keys[0]) is not None


def body_fault(headers: HeaderList) -> Refusal | None:
    """The refusal for a handshake that announces a body, or None."""
    by_name = dict(headers)
    has_body = b"transfer-encoding" in by_name or by_name.get(b"content-length", b"0").strip(b"0") != b""
    return _HANDSHAKE_BODY if has_body else None


def repeated(names: Iterable[bytes]) -> Refusal | None:
    """The refusal for a repeated header that must be unique, or None."""
    seen = set()
    for name in names:
        if name in seen and name in _ONCE:
            return Refusal(Code.BAD_REQUEST, f"The header {name.decode()} was sent more than once.")
        seen.add(name)
    return None


def joined_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; repeated ones are joined to a list (RFC 9110, §5.3; RFC 9113, §8.2.3)."""
    joined: dict[bytes, bytes] = {}
    for name, value in pairs:
        between = b"; " if name == b"cookie" else b", "
        joined[name] = joined[name] + between + value if name in joined else value
    return joined


@memo("Host headers", 256)
def _is_host(value: bytes) -> bool:
    return re.fullmatch(rb"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]*", value) is not None
