"""What goes back to the wire. Here, and nowhere else, a code becomes a status.

A Reply is plain data: a status, header pairs and bytes. A Refusal becomes `application/problem+json` in the
resource style and `{"errors": […]}` in the query style, with the same code in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from diptych.errors import Code, Fault, Place, Refusal

STATUS: Mapping[Code, int] = {
    Code.BAD_REQUEST: 400,
    Code.GRAPHQL_PARSE_FAILED: 400,
    Code.GRAPHQL_VALIDATION_FAILED: 400,
    Code.BAD_USER_INPUT: 422,
    Code.UNAUTHENTICATED: 401,
    Code.FORBIDDEN: 403,
    Code.NOT_FOUND: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.NOT_ACCEPTABLE: 406,
    Code.PAYLOAD_TOO_LARGE: 413,
    Code.UNSUPPORTED_MEDIA_TYPE: 415,
    Code.HEADERS_TOO_LARGE: 431,
    Code.TOO_DEEP: 400,
    Code.TOO_COMPLEX: 400,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.TIMEOUT: 504,
}
_TITLES: Mapping[Code, str] = {code: code.value.replace("_", " ").capitalize() for code in Code}

Header = tuple[bytes, bytes]
JSON = b"application/json"
PROBLEM = b"application/problem+json"
PRIVATE: tuple[Header, ...] = ((b"cache-control", b"private, no-cache"), (b"vary", b"Authorization, Accept"))
NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"vary", b"Authorization, Accept"))


_SHORT = 2_048
"""Bodies for which BLAKE2b, which begins at once, is cheaper than SHA-256, which processors compute."""


class Reply:
    """A whole answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: tuple[Header, ...], body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


def tag(body: bytes, version: int | None = None) -> bytes:
    """The entity tag of an answer: a hash of its bytes, behind the version where it is one resource."""
    digest = (hashlib.blake2b(body, digest_size=12) if len(body) < _SHORT else hashlib.sha256(body)).hexdigest()[:24]
    return f'"{digest}"'.encode() if version is None else f'"{version}.{digest}"'.encode()


def challenge(refusal: Refusal) -> tuple[Header, ...]:
    """How to sign in, with a 401."""
    if refusal.code is not Code.UNAUTHENTICATED:
        return ()
    return ((b"www-authenticate", b"Bearer"),)


def pointer(place: Place) -> str:
    """A place as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in place)


def problem(refusal: Refusal, headers: tuple[Header, ...] = ()) -> Reply:
    """A Refusal in the resource style (RFC 9457)."""
    status = STATUS[refusal.code]
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": _TITLES[refusal.code],
        "status": status,
        "detail": refusal.message,
        "code": refusal.code.value,
    }
    if refusal.faults:
        body["errors"] = [{"pointer": pointer(fault.place), "message": fault.message} for fault in refusal.faults]
    head = ((b"content-type", PROBLEM), *NO_STORE, *challenge(refusal), *headers)
    return Reply(status, head, msgspec.json.encode(body))


def graphql_errors(refusal: Refusal) -> list[dict[str, Any]]:
    """A Refusal in the query style: an error for each faulty place."""
    faults = refusal.faults or (Fault((), ""),)
    return [_graphql_error(refusal, fault) for fault in faults]


def _graphql_error(refusal: Refusal, fault: Fault) -> dict[str, Any]:
    extensions: dict[str, Any] = {"code": refusal.code.value}
    if not fault.place:
        return {"message": refusal.message, "extensions": extensions}
    place = ".".join(map(str, fault.place))
    extensions["argument"] = list(fault.place)
    return {"message": f"{fault.message[:1].upper()}{fault.message[1:]}, at {place}.", "extensions": extensions}
