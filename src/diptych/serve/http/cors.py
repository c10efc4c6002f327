"""CORS: which other origins may read responses (https://fetch.spec.whatwg.org/#http-cors-protocol).

Off, no response has a CORS header, and browsers block all other origins. On, the origins of the setting `cors_origins`
are allowed, compared byte for byte: no pattern, no suffix, never `null`. A page has to send its token itself:
`Access-Control-Allow-Credentials` is never set, and the API accepts no cookie. The pages of the authorization server,
which do use a cookie, are excluded.

    a Request and its Reply  →  the same Reply with CORS headers
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.api.reply import Header, Reply
from diptych.serve.http.request import Request

EXCLUDED = frozenset({"/oauth/authorize", "/oauth/login", "/oauth/logout", "/oauth/introspect"})
"""Paths without CORS headers: pages and back-channel endpoints of the authorization server."""
_EXPOSED: Header = (
    b"access-control-expose-headers",
    b"Accept-Patch, Allow, Change-Cursor, Cost, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, "
    b"Retry-After, WWW-Authenticate",
)
_ALLOWED: Header = (
    b"access-control-allow-headers",
    b"Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer",
)
_MAX_AGE: Header = (b"access-control-max-age", b"3600")


class Cors:
    """The allowed origins; `*` is all of them."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._all = b"*" in self._origins

    def allows(self, origin: bytes) -> bool:
        return self._all or origin in self._origins

    def apply(self, request: Request, reply: Reply) -> Reply:
        """The reply with its CORS headers."""
        if request.path in EXCLUDED:
            return reply
        headers = reply.headers if self._all else tuple(_varied(reply.headers))
        origin = request.headers.get(b"origin", b"")
        if self._all:  # also without Origin: a shared cache may serve the response to a request with one
            headers = (*headers, (b"access-control-allow-origin", b"*"), *_details(request, reply))
        elif origin in self._origins:
            headers = (*headers, (b"access-control-allow-origin", origin), *_details(request, reply))
        return Reply(reply.status, headers, reply.body, reply.stream)


def _varied(headers: Iterable[Header]) -> Iterator[Header]:
    """The same headers with `Vary: Origin`, also for origins that are not allowed and for requests without one."""
    vary = b"Origin"
    for name, value in headers:
        if name == b"vary":
            vary = value + b", Origin"
        else:
            yield name, value
    yield b"vary", vary


def _details(request: Request, reply: Reply) -> tuple[Header, ...]:
    """The exposed headers; for a preflight request, the allowed methods and headers."""
    if request.method != "OPTIONS" or b"access-control-request-method" not in request.headers:
        return (_EXPOSED,)
    methods = tuple((b"access-control-allow-methods", value) for name, value in reply.headers if name == b"allow")
    return (*methods, _ALLOWED, _MAX_AGE)
