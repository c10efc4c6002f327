"""What the head of a request must be, beyond what the parser sees to (RFC 9112, RFC 9110).

The parser refuses what has no form: bare line feeds, folded lines, spaces before a colon, two lengths, a length beside
chunks. This looks at what has a form and no single meaning, so that nobody on the way reads it as something else: a
version that is none of ours, no host or two, codings of the body besides `chunked`, a target that is no path.

    fault_of(b"GET", b"/users", "1.1", [(b"host", b"example.org")])  →  None
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from diptych.errors import Code, Refusal
from diptych.lru import memo

MAX_HEAD = 65_536
MAX_LINES = 200
Head = list[tuple[bytes, bytes]]

MALFORMED = Refusal(Code.BAD_REQUEST, "This is not a request of HTTP/1.1.")
TOO_LARGE = Refusal(Code.HEADERS_TOO_LARGE, f"The request line and the headers may have {MAX_HEAD} bytes.")
_HANDSHAKE_BODY = Refusal(Code.BAD_REQUEST, "The handshake of a WebSocket has no body.")
_TOO_MANY = Refusal(Code.HEADERS_TOO_LARGE, f"A request may have {MAX_LINES} headers.")
_HOST = Refusal(Code.BAD_REQUEST, "A request of HTTP/1.1 has one Host.")
_CODING = Refusal(Code.BAD_REQUEST, "A body may be chunked, and has no other transfer coding.")
_TARGET = Refusal(Code.BAD_REQUEST, "The target of a request is a path.")
_ONCE = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"last-event-id", b"origin")
"""Headers that are no lists: of two of them, some would read the first, and some the last."""
_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?#@\\]+)((?:[/?].*)?)", re.DOTALL)


def fault_of(method: bytes, url: bytes, version: str, headers: Head) -> Refusal | None:
    """What is wrong with a head whose form is right. Names of headers are in lower case."""
    if len(headers) > MAX_LINES:
        return _TOO_MANY
    found = dict(headers)
    host = found.get(b"host")
    if host is not None:
        if not _is_host(host):
            return _HOST
    elif version == "1.1":
        return _HOST
    if version not in ("1.1", "1.0"):
        return MALFORMED
    if len(found) != len(headers) and sum(name == b"host" for name, _ in headers) > 1:
        return _HOST
    if b"transfer-encoding" in found:
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if codings != [b"chunked"] or version != "1.1":
            return _CODING
    if url[:1] == b"/" and b"#" not in url:
        return None
    return None if url == b"*" and method == b"OPTIONS" else _TARGET


def origin_form(url: bytes, headers: Head) -> tuple[bytes, Head]:
    """The target as a path, and the headers with the host that holds: the one in the target, if that names one."""
    found = _ABSOLUTE.fullmatch(url)
    if found is None:
        return url, headers
    host, rest = found.groups()
    target = rest if rest[:1] == b"/" else b"/" + rest
    return target, [(name, host if name == b"host" else value) for name, value in headers]


def is_handshake(method: bytes, headers: Head) -> bool:
    """Is it the offer of a WebSocket, and whole (RFC 6455, §4.2.1)? Of any other, nothing could come."""
    upgrades = [value for name, value in headers if name == b"upgrade"]
    keys = [value for name, value in headers if name == b"sec-websocket-key"]
    versions = [value for name, value in headers if name == b"sec-websocket-version"]
    whole = len(upgrades) == len(keys) == 1 and versions == [b"13"]
    return method == b"GET" and whole and _KEY.fullmatch(keys[0]) is not None


def body_fault(headers: Head) -> Refusal | None:
    """What is wrong with a handshake that announces a body."""
    found = dict(headers)
    has_body = b"transfer-encoding" in found or found.get(b"content-length", b"0").strip(b"0") != b""
    return _HANDSHAKE_BODY if has_body else None


def repeated(names: Iterable[bytes]) -> Refusal | None:
    """What is wrong with headers that stand there more than once."""
    seen = set()
    for name in names:
        if name in seen and name in _ONCE:
            return Refusal(Code.BAD_REQUEST, f"There is more than one header {name.decode()}.")
        seen.add(name)
    return None


@memo("Host headers", 256)
def _is_host(value: bytes) -> bool:
    return re.fullmatch(rb"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]*", value) is not None
