"""A request, free of the protocol that brought it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from diptych.api.reply import Header
from diptych.api.rest.precondition import preferences

Body = Callable[[int], Awaitable[bytes]]


class Request:
    """Method, path (as it was sent, not decoded), query, headers by lower-case name, and how to read the body.

    `peer` is the address of whoever sent it, where there is one.

    `body(most)` gives the whole body, or a Refusal as soon as it has more than `most` bytes.
    """

    __slots__ = ("body", "headers", "method", "path", "peer", "query", "root")

    def __init__(
        self, method: str, path: str, query: str, headers: Mapping[bytes, bytes], body: Body, root: str = "",
        peer: tuple[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.root = root
        self.peer = peer


def wants_cursor(request: Request) -> bool:
    """Does the client want to know from where to follow what it reads?"""
    sent = request.headers.get(b"prefer")
    return sent is not None and "change-cursor" in preferences(sent)


def last_event(request: Request) -> str:
    """The last cursor that a client got which comes back to a stream by itself, if it did."""
    return request.headers.get(b"last-event-id", b"").decode("latin-1")


def cursor_headers(cursor: str) -> tuple[Header, ...]:
    """What tells it."""
    return ((b"change-cursor", cursor.encode()), (b"preference-applied", b"change-cursor"))


def not_modified(if_none_match: bytes | None, tag: bytes) -> bool:
    """Does the client have this answer already? Tags are compared weakly."""
    if if_none_match is None:
        return False
    given = [each.strip().removeprefix(b"W/") for each in if_none_match.split(b",")]
    return tag in given or given == [b"*"]
