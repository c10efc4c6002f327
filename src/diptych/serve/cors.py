"""Which pages of other origins may read answers (https://fetch.spec.whatwg.org/#http-cors-protocol).

Off, no answer has a header of this protocol, and browsers keep all other origins out. On, the origins of the setting
`cors_origins` are let in, byte for byte as browsers send them: no pattern, no suffix, never `null`. A page has to bring
its token itself: credentials of the browser are never asked for, and no cookie opens anything here. The pages of the
authorization server, which do have a cookie, are not part of it.

    a Reply, and the request that it answers  →  the same Reply with what tells the browser
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.api.reply import Header, Reply
from diptych.serve.http import Request

APART = frozenset({"/oauth/authorize", "/oauth/login", "/oauth/logout", "/oauth/introspect"})
"""What no page of another origin has any business with."""
_EXPOSED: Header = (
    b"access-control-expose-headers",
    b"Accept-Patch, Allow, Change-Cursor, Cost, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, "
    b"Retry-After, WWW-Authenticate",
)
_TAKEN: Header = (
    b"access-control-allow-headers",
    b"Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer",
)
_REMEMBERED: Header = (b"access-control-max-age", b"3600")


class Cors:
    """The origins that may read answers; `*` is all of them."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._all = b"*" in self._origins

    def allows(self, origin: bytes) -> bool:
        """May pages of this origin read answers?"""
        return self._all or origin in self._origins

    def tell(self, request: Request, reply: Reply) -> Reply:
        """The reply as browsers understand it."""
        if request.path in APART:
            return reply
        headers = reply.headers if self._all else tuple(_varied(reply.headers))
        origin = request.headers.get(b"origin", b"")
        if self._all:  # also where no origin is sent: a cache may keep the answer for someone who sends one
            headers = (*headers, (b"access-control-allow-origin", b"*"), *_more(request, reply))
        elif origin in self._origins:
            headers = (*headers, (b"access-control-allow-origin", origin), *_more(request, reply))
        return Reply(reply.status, headers, reply.body, reply.stream)


def _varied(headers: Iterable[Header]) -> Iterator[Header]:
    """The same headers; the answer depends on the origin too, also for those who may not read it, or send none."""
    vary = b"Origin"
    for name, value in headers:
        if name == b"vary":
            vary = value + b", Origin"
        else:
            yield name, value
    yield b"vary", vary


def _more(request: Request, reply: Reply) -> tuple[Header, ...]:
    """What may be read of an answer; or, where a browser asks first, what may be sent."""
    if request.method != "OPTIONS" or b"access-control-request-method" not in request.headers:
        return (_EXPOSED,)
    methods = tuple((b"access-control-allow-methods", value) for name, value in reply.headers if name == b"allow")
    return (*methods, _TAKEN, _REMEMBERED)
