"""What goes back to the wire. Here, and nowhere else, a code becomes a status.

A Reply is plain data: a status, header pairs and bytes, or a Stream in their place. A Refusal becomes
`application/problem+json` in the resource style and `{"errors": […]}` in the query style, with the same code in both.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from diptych.errors import Code, Fault, Place, Refusal
from diptych.nesting import decode

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
    Code.CONFLICT: 409,
    Code.RESUME_GAP: 410,
    Code.PRECONDITION_FAILED: 412,
    Code.PAYLOAD_TOO_LARGE: 413,
    Code.UNSUPPORTED_MEDIA_TYPE: 415,
    Code.IDEMPOTENCY_MISMATCH: 422,
    Code.RATE_LIMITED: 429,
    Code.HEADERS_TOO_LARGE: 431,
    Code.TOO_DEEP: 400,
    Code.TOO_COMPLEX: 400,
    Code.PERSISTED_QUERY_NOT_FOUND: 404,
    Code.PERSISTED_QUERY_HASH_MISMATCH: 400,
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


@functools.lru_cache(maxsize=1_024)
def public(seconds: int) -> tuple[Header, ...]:
    """What anyone may keep for so many seconds. It varies all the same: whoever signs in is told something else."""
    return ((b"cache-control", b"public, max-age=%d" % seconds), *PRIVATE[1:])


_LONGEST = 500
"""Characters of a message, or of a step of a place, that are told."""
_SHORT = 2_048
"""Bodies for which BLAKE2b, which begins at once, is cheaper than SHA-256, which processors compute."""


class Stream(Protocol):
    """A body that goes on: driven when the head was sent, and closed in any case."""

    async def drive(self, receive: Any, send: Any, streams: Any) -> None:
        """Send until it ends, or the client goes, by ASGI; `streams` are all of this process."""
        ...

    def close(self) -> None:
        """Set free what it holds; again, it does nothing."""
        ...


class Reply:
    """An answer: whole, or the head of a stream."""

    __slots__ = ("body", "headers", "status", "stream")

    def __init__(
        self, status: int, headers: tuple[Header, ...], body: bytes = b"", stream: Stream | None = None
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.stream = stream


def tag(body: bytes, version: int | None = None) -> bytes:
    """The entity tag of an answer: a hash of its bytes, behind the version where it is one resource."""
    digest = (hashlib.blake2b(body, digest_size=12) if len(body) < _SHORT else hashlib.sha256(body)).hexdigest()[:24]
    return f'"{digest}"'.encode() if version is None else f'"{version}.{digest}"'.encode()


class _Versioned(msgspec.Struct):
    version: int


_version = msgspec.json.Decoder(_Versioned)


def tag_of_one(body: bytes, versioned: bool) -> bytes:
    """The entity tag of one resource, which holds its version if that is in the answer."""
    return tag(body, decode(_version, body).version if versioned else None)


def challenge(refusal: Refusal) -> tuple[Header, ...]:
    """What to do next: how to sign in, with a 401; when to try again, with a 429 or 503."""
    if refusal.code in (Code.UNAVAILABLE, Code.RATE_LIMITED):
        return ((b"retry-after", b"%d" % refusal.more.get("retryAfter", 1)),)
    return ((b"www-authenticate", b"Bearer"),) if refusal.code is Code.UNAUTHENTICATED else ()


def pointer(place: Place) -> str:
    """A place as a JSON pointer (RFC 6901): into the body, or else into the request as a whole."""
    steps = place[1:] if place[:1] == ("body",) else place
    return "".join("/" + shortened(str(step)).replace("~", "~0").replace("/", "~1") for step in steps)


def shortened(told: str) -> str:
    """What is said back of what was sent, and not more of it than anyone reads."""
    return told if len(told) <= _LONGEST else told[:_LONGEST] + "…"


def _faults(refusal: Refusal, key: str, place: Callable[[Place], Any]) -> list[dict[str, Any]]:
    return [{key: place(fault.place), "message": shortened(fault.message)} for fault in refusal.faults]


def _argument(place: Place) -> list[str | int]:
    return [shortened(step) if isinstance(step, str) else step for step in place]


def problem(refusal: Refusal, headers: tuple[Header, ...] = ()) -> Reply:
    """A Refusal in the resource style (RFC 9457)."""
    status = STATUS[refusal.code]
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": _TITLES[refusal.code],
        "status": status,
        "detail": shortened(refusal.message),
        "code": refusal.code.value,
    }
    body |= refusal.more
    if refusal.faults:
        body["errors"] = _faults(refusal, "pointer", pointer)
    head = ((b"content-type", PROBLEM), *NO_STORE, *challenge(refusal), *headers)
    return Reply(status, head, msgspec.json.encode(body))


def graphql_errors(refusal: Refusal) -> list[dict[str, Any]]:
    """A Refusal in the query style: an error for each faulty place, or one for a field that was already running."""
    if refusal.path:
        return [_running_error(refusal)]
    faults = refusal.faults or (Fault((), ""),)
    return [_graphql_error(refusal, fault) for fault in faults]


def _running_error(refusal: Refusal) -> dict[str, Any]:
    extensions: dict[str, Any] = {"code": refusal.code.value, **refusal.more}
    if refusal.faults:
        extensions["errors"] = _faults(refusal, "argument", _argument)
    return {"message": shortened(refusal.message), "path": list(refusal.path), "extensions": extensions}


def _graphql_error(refusal: Refusal, fault: Fault) -> dict[str, Any]:
    extensions: dict[str, Any] = {"code": refusal.code.value, **refusal.more}
    if not fault.place:
        return {"message": shortened(refusal.message), "extensions": extensions}
    told = shortened(fault.message)
    place = extensions["argument"] = _argument(fault.place)
    return {"message": f"{told[:1].upper()}{told[1:]}, at {'.'.join(map(str, place))}.", "extensions": extensions}
