"""A request, independent of the protocol and server that received it."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, field

from diptych.api.reply import PRIVATE, Header, Reply, public
from diptych.api.rest.precondition import preferences
from diptych.engine.rate_limiter import Spending
from diptych.errors import Refusal

COMPRESSED = 1_024
"""Bytes from which a body is compressed, if the client accepts it (`coding.py`)."""
Body = Callable[[int], Awaitable[bytes]]
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_TAG = re.compile(rb'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


class Request(Struct, eq=False):
    """Method, path (as it was sent, not decoded), query, headers by lower-case name, and how to read the body.

    `peer` is the client address, if there is one.

    `fault` is the refusal for an invalid head; the rest of the request is ignored then.

    `begun` is when it was made (`time.perf_counter`).

    `lag` is how many seconds it waited for the event loop after it was received.

    `spending` is who pays for it, if there are limits by rate.

    `coding` is the content coding that the client accepts for the response, or empty.

    `note` is what the console has noted about it (`serve/console/notes.py`).

    `name` is its id, once that is known.

    `is_service` is whether it was for the service itself, and not for the API of the model.

    `body(most)` returns the whole body, or raises a Refusal once it has more than `most` bytes.
    """

    method: str
    path: str
    query: str
    headers: Mapping[bytes, bytes]
    body: Body
    root: str = ""
    peer: tuple[str, int] | None = None
    fault: Refusal | None = None
    lag: float = 0.0
    coding: bytes = b""
    is_service: bool = False
    spending: Spending | None = None
    begun: float = field(default_factory=time.perf_counter)
    note: object | None = None
    name: str = ""

    __repr__ = object.__repr__

    @property
    def id(self) -> str:
        """Its id in logs and responses: the `X-Request-Id` that was sent, if it is valid, or else one made here."""
        if not self.name:
            sent = self.headers.get(b"x-request-id")
            valid = sent is not None and _REQUEST_ID.fullmatch(sent) is not None
            self.name = sent.decode() if sent is not None and valid else secrets.token_hex(8)
        return self.name

    def forget(self) -> None:
        """Release query, headers and body: a stream is long-lived, and its request head may be 64 KiB."""
        self.name = self.id
        self.query, self.headers, self.body = "", {}, _no_body

    @property
    def is_forgotten(self) -> bool:
        """Was its head released, since it is answered by a stream?"""
        return self.body is _no_body


async def _no_body(_: int) -> bytes:
    return b""


def with_request_id(request: Request, reply: Reply) -> Reply:
    """The reply with the id of its request, for one that has sent an id."""
    return Reply(reply.status, (*reply.headers, (b"x-request-id", request.id.encode())), reply.body, reply.stream)


def is_of_console(path: str) -> bool:
    """Is it a path of the console? `/consoles` is one of a resource."""
    return path == "/console" or path.startswith("/console/")


def wants_cursor(request: Request) -> bool:
    """Does the client send `Prefer: change-cursor`?"""
    sent = request.headers.get(b"prefer")
    return sent is not None and "change-cursor" in preferences(sent)


def last_event(request: Request) -> str:
    """The `Last-Event-ID` of a client that reconnects to an event stream, or ""."""
    return request.headers.get(b"last-event-id", b"").decode("latin-1")


def cursor_headers(cursor: str) -> tuple[Header, ...]:
    """The response headers for `Prefer: change-cursor`."""
    return ((b"change-cursor", cursor.encode()), (b"preference-applied", b"change-cursor"))


def may_keep(request: Request, max_age: int) -> tuple[Header, ...]:
    """The `Cache-Control` of a read whose public data may be cached for `max_age` seconds.

    A response to a request with a token is private, whatever it contains. So is one to a request with `Prefer` or
    `Read-Token`, which may add to the response: caches do not vary by them.
    """
    headers = request.headers
    if max_age and b"authorization" not in headers and b"prefer" not in headers and b"read-token" not in headers:
        return public(max_age)
    return PRIVATE


def variant(request: Request, tag: bytes, size: int) -> bytes:
    """The entity tag of the variant that this request gets of a body: a compressed one has a tag of its own."""
    if not request.coding or size < COMPRESSED:
        return tag
    return b'%b-%b"' % (tag[:-1], request.coding)


def not_modified(if_none_match: bytes | None, tag: bytes) -> bool:
    """Does `If-None-Match` match this entity tag? The comparison is weak (RFC 9110, §13.1.2)."""
    if if_none_match is None:
        return False
    return tag in _TAG.findall(if_none_match) or if_none_match.strip() == b"*"
