"""A request, free of the protocol that brought it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from diptych.api.reply import PRIVATE, Header, public
from diptych.api.rest.precondition import preferences
from diptych.errors import Refusal

Body = Callable[[int], Awaitable[bytes]]
_TAG = re.compile(rb'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


class Request:
    """Method, path (as it was sent, not decoded), query, headers by lower-case name, and how to read the body.

    `peer` is the address of whoever sent it, where there is one.

    `fault` is what is wrong with its head: nothing else of it is looked at then.

    `body(most)` gives the whole body, or a Refusal as soon as it has more than `most` bytes.
    """

    __slots__ = ("body", "fault", "headers", "method", "path", "peer", "query", "root")

    def __init__(
        self, method: str, path: str, query: str, headers: Mapping[bytes, bytes], body: Body, root: str = "",
        peer: tuple[str, int] | None = None, fault: Refusal | None = None,
    ) -> None:  # fmt: skip
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.root = root
        self.peer = peer
        self.fault = fault

    def forget(self) -> None:
        """Let go of all but its name: a stream lasts, and the head that asked for it may be 64 KiB."""
        self.query, self.headers, self.body = "", {}, _no_body


async def _no_body(_: int) -> bytes:
    return b""


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


def may_keep(request: Request, max_age: int) -> tuple[Header, ...]:
    """Who may keep the answer to a read of which anyone may keep what is public for so many seconds.

    What was asked with a token is for whoever has it, whatever it holds. A preference adds to an answer what the next
    one who asks may not want, and caches are not told to tell them apart.
    """
    if max_age and b"authorization" not in request.headers and b"prefer" not in request.headers:
        return public(max_age)
    return PRIVATE


def not_modified(if_none_match: bytes | None, tag: bytes) -> bool:
    """Does the client have this answer already? Tags are compared weakly (RFC 9110, §13.1.2)."""
    if if_none_match is None:
        return False
    return tag in _TAG.findall(if_none_match) or if_none_match.strip() == b"*"
