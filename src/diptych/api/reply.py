"""Replies: status, headers and body of a response. The only table from error codes to HTTP status is here.

A Reply is plain data: a status, header pairs and bytes, or a Stream instead of bytes. A Refusal becomes
`application/problem+json` in REST and `{"errors": […]}` in GraphQL, with the same code in both.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from diptych.errors import Code, Fault, Path, Refusal
from diptych.nesting import decode

if TYPE_CHECKING:  # graphql-core is imported with the endpoint that needs it
    from graphql import GraphQLError

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
REFUSED: Counter[tuple[str, str]] = Counter()
"""Refusals of this process that were encoded, by style and code."""
_TITLES: Mapping[Code, str] = {code: code.value.replace("_", " ").capitalize() for code in Code}

Header = tuple[bytes, bytes]
EncodedHeaders = tuple[tuple[Header, ...], bytes]
"""Headers, and the lines that they are sent as: they are those of a reply that has this very tuple of headers."""
JSON_TYPE = b"application/json"
PROBLEM_TYPE = b"application/problem+json"
PRIVATE: tuple[Header, ...] = (
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Authorization, Accept, Accept-Encoding"),
)
NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"vary", b"Authorization, Accept, Accept-Encoding"))


def lines_of(headers: Iterable[Header]) -> bytes:
    """Headers of ours as they are sent, a line for each."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


@functools.lru_cache(maxsize=1_024)
def public(seconds: int) -> tuple[Header, ...]:
    """Headers of a response that shared caches may store for `seconds`; it still varies with the caller."""
    return ((b"cache-control", b"public, max-age=%d" % seconds), *PRIVATE[1:])


_LARGE = 4_096
"""Bytes from which SHA-256, for which processors have instructions, takes less time than BLAKE2b."""
_empty_hash = hashlib.blake2b(digest_size=12).copy
_LONGEST = 500
"""Characters of a message, or of a step of a path, that are quoted in a response."""


class Stream(Protocol):
    """A streamed body: driven after the head was sent, and closed in any case."""

    async def drive(self, receive: Any, send: Any, streams: Any) -> None:
        """Send by ASGI until it ends or the client disconnects; `streams` are all of this process."""

    def close(self) -> None:
        """Release what it holds; idempotent."""


class Reply(Struct, eq=False):
    """A response: complete, or the head of a stream."""

    status: int
    headers: tuple[Header, ...]
    body: bytes = b""
    stream: Stream | None = None
    encoded: EncodedHeaders | None = None
    """Its headers as they are sent, if they are known; others that it was given since are not among them."""

    __repr__ = object.__repr__


def tag(body: bytes, version: int | None = None) -> bytes:
    """The ETag of a response: a hash of its bytes, after the version if it is one resource."""
    if len(body) < _LARGE:
        hashed = _empty_hash()
        hashed.update(body)
        digest = hashed.hexdigest()
    else:
        digest = hashlib.sha256(body).hexdigest()[:24]
    return f'"{digest}"'.encode() if version is None else f'"{version}.{digest}"'.encode()


class _Versioned(msgspec.Struct):
    version: int


_version = msgspec.json.Decoder(_Versioned)


def tag_of_one(body: bytes, versioned: bool) -> bytes:
    """The ETag of one resource, with its version if the response has it."""
    return tag(body, decode(_version, body).version if versioned else None)


class CodedBody(Refusal):
    """A compressed body is refused: a few bytes of it may be very many."""

    def __init__(self) -> None:
        super().__init__(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, without a Content-Encoding.")


def challenge(refusal: Refusal) -> tuple[Header, ...]:
    """Headers that say what to do next: authenticate (401), send the body as it is (415), or retry later (429, 503)."""
    if isinstance(refusal, CodedBody):
        return ((b"accept-encoding", b"identity"),)
    if refusal.code in (Code.UNAVAILABLE, Code.RATE_LIMITED):
        return ((b"retry-after", b"%d" % refusal.more.get("retryAfter", 1)),)
    return ((b"www-authenticate", b"Bearer"),) if refusal.code is Code.UNAUTHENTICATED else ()


def pointer(path: Path) -> str:
    """A path as a JSON pointer (RFC 6901): into the body, or else into the request as a whole."""
    steps = path[1:] if path[:1] == ("body",) else path
    return "".join("/" + shortened(str(step)).replace("~", "~0").replace("/", "~1") for step in steps)


def shortened(text: str) -> str:
    """A text of the client, shortened before it is quoted."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _faults(refusal: Refusal, key: str, path: Callable[[Path], Any]) -> list[dict[str, Any]]:
    return [{key: path(fault.path), "message": shortened(fault.message)} for fault in refusal.faults]


def _argument(path: Path) -> list[str | int]:
    return [shortened(step) if isinstance(step, str) else step for step in path]


def problem(refusal: Refusal, headers: tuple[Header, ...] = (), status: int = 0) -> Reply:
    """A Refusal as a REST response (RFC 9457)."""
    REFUSED["rest", refusal.code.value] += 1
    status = status or STATUS[refusal.code]
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
    head = ((b"content-type", PROBLEM_TYPE), *NO_STORE, *challenge(refusal), *headers)
    return Reply(status, head, msgspec.json.encode(body))


def method_reply(method: str, methods: Sequence[str], *more: Header, hint: str = "") -> Reply | None:
    """The reply to OPTIONS, or to a method that is not one of these; None for one that is."""
    if method in methods and method != "OPTIONS":
        return None
    allow: Header = (b"allow", ", ".join(methods).encode())
    if method == "OPTIONS":
        return Reply(204, (allow, *more, *NO_STORE))
    return problem(Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(methods)}.{hint}"), (allow,))


def not_acceptable(*offers: str) -> Refusal:
    """The refusal of a request that accepts none of the media types on offer."""
    return Refusal(Code.NOT_ACCEPTABLE, f"The response is available as {' or '.join(offers)}.")


class DocumentRefusal(Refusal):
    """A document, or its variables, that graphql-core refuses, with its errors."""

    def __init__(self, code: Code, errors: list[GraphQLError], faults: Iterable[Fault] = ()) -> None:
        super().__init__(code, errors[0].message, faults)
        self.errors = [
            {**error.formatted, "message": shortened(error.message), "extensions": {"code": code.value}}
            for error in errors
        ]

    def again(self) -> DocumentRefusal:
        """An equal refusal without the traceback of this one, which holds on to a request."""
        same = DocumentRefusal.__new__(DocumentRefusal, self.message)
        vars(same).update(vars(self))
        return same


def graphql_errors(refusal: Refusal) -> list[dict[str, Any]]:
    """A Refusal as GraphQL errors: one for each fault, or one for a field that was already running."""
    REFUSED["graphql", refusal.code.value] += 1
    if isinstance(refusal, DocumentRefusal):
        return refusal.errors
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
    if not fault.path:
        return {"message": shortened(refusal.message), "extensions": extensions}
    message = shortened(fault.message)
    path = extensions["argument"] = _argument(fault.path)
    return {"message": f"{message[:1].upper()}{message[1:]}, at {'.'.join(map(str, path))}.", "extensions": extensions}
