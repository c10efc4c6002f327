"""CORS: which other origins may read responses (https://fetch.spec.whatwg.org/#http-cors-protocol).

Off, no response has a CORS header, and browsers block all other origins. On, the origins of the setting `cors_origins`
are allowed, compared byte for byte: no pattern, no suffix, never `null`; `localhost` means pages of this machine,
from any port. A page has to send its token itself: `Access-Control-Allow-Credentials` is never set, and the API accepts
no cookie. The pages of the authorization server, which do use a cookie, are excluded, and so is the console.

    a Request and its Reply  →  the same Reply with CORS headers

A preflight request for a path that does not exist is allowed, so that the page can read the 404 of the request itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from diptych.api.reply import NO_STORE, Header, Reply
from diptych.serve.http.request import Request, is_of_console
from diptych.setting_parsers import LOCALHOST

_FOR_CLIENTS = frozenset(
    {"/oauth/token", "/oauth/revoke", "/oauth/userinfo", "/oauth/device_authorization", "/oauth/register"}
)
"""Paths of the authorization server that clients in a browser call. Its others are pages, which have a cookie, and
endpoints for servers: no CORS there."""
_OAUTH = "/oauth/"
_EXPOSED: Header = (
    b"access-control-expose-headers",
    b"Accept-Encoding, Accept-Patch, Accept-Query, Allow, Change-Cursor, Content-Disposition, Cost, Deprecation, ETag, "
    b"Idempotency-Replayed, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Read-Token, Retry-After, "
    b"Server-Timing, Sunset, WWW-Authenticate, X-Request-Id",
)
ALLOWED_HEADERS = (
    # the API's own
    "Accept, Authorization, Change-Reason, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID",
    "Prefer, Read-Token",
    # of caches and of older libraries
    "Cache-Control, If-Modified-Since, If-Unmodified-Since, Pragma, X-Requested-With",
    # of GraphQL clients
    "Apollo-Client-Name, Apollo-Client-Version, Apollo-Require-Preflight, ApolloGraphQL-Client-Name",
    "ApolloGraphQL-Client-Version, GraphQL-Client-Name, GraphQL-Client-Version, GraphQL-Preflight",
    "X-Apollo-Operation-Id, X-Apollo-Operation-Name, X-Apollo-Operation-Type, X-GraphQL-Client-Name",
    "X-GraphQL-Client-Version",
    # of tracing: W3C Trace Context and Baggage, B3, Sentry, Datadog, New Relic, Jaeger, AWS, Google
    "B3, Baggage, Newrelic, Request-Id, Sentry-Trace, Traceparent, Tracestate, Uber-Trace-Id, X-Amzn-Trace-Id",
    "X-B3-Flags, X-B3-ParentSpanId, X-B3-Sampled, X-B3-SpanId, X-B3-TraceId, X-Cloud-Trace-Context",
    "X-Correlation-Id, X-Datadog-Origin, X-Datadog-Parent-Id, X-Datadog-Sampling-Priority, X-Datadog-Tags",
    "X-Datadog-Trace-Id, X-Request-Id",
)
"""Headers that a page may send. Those that mean nothing here are ignored."""
_METHODS: Header = (b"access-control-allow-methods", b"GET, HEAD, QUERY, POST, PUT, PATCH, DELETE")
_MAX_AGE: Header = (b"access-control-max-age", b"3600")
_LOCAL = re.compile(rb"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")


class Cors:
    """The allowed origins (`*` is all of them), and the headers that their pages may send in addition to the usual."""

    def __init__(self, origins: Iterable[str], headers: Iterable[str] = ()) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._all = b"*" in self._origins
        self._local = LOCALHOST.encode() in self._origins
        self._headers: Header = (b"access-control-allow-headers", ", ".join((*ALLOWED_HEADERS, *headers)).encode())

    def allows(self, origin: bytes) -> bool:
        """May pages of this origin read responses?"""
        if self._all or (origin in self._origins and origin != LOCALHOST.encode()):
            return True
        return self._local and _LOCAL.fullmatch(origin) is not None

    def apply(self, request: Request, reply: Reply) -> Reply:
        """The reply with its CORS headers."""
        path = request.path
        if (path.startswith(_OAUTH) and path not in _FOR_CLIENTS) or is_of_console(path):
            return reply
        origin = request.headers.get(b"origin", b"")
        if self._all:  # also without Origin: a shared cache may serve the response to a request with one
            allowed = b"*"
        elif origin and self.allows(origin):
            allowed = origin
        else:
            return Reply(reply.status, tuple(_varied(reply.headers)), reply.body, reply.stream)
        is_preflight = request.method == "OPTIONS" and b"access-control-request-method" in request.headers
        if is_preflight and reply.status == 404:
            reply = Reply(204, NO_STORE)
        headers = reply.headers if self._all else tuple(_varied(reply.headers))
        details = self._preflight(reply) if is_preflight else (_EXPOSED,)
        headers = (*headers, (b"access-control-allow-origin", allowed), *details)
        return Reply(reply.status, headers, reply.body, reply.stream)

    def _preflight(self, reply: Reply) -> tuple[Header, ...]:
        """The allowed methods and headers."""
        methods = [(b"access-control-allow-methods", value) for name, value in reply.headers if name == b"allow"]
        return (*(methods or [_METHODS]), self._headers, _MAX_AGE)


def _varied(headers: Iterable[Header]) -> Iterator[Header]:
    """The same headers with `Vary: Origin`, also for origins that are not allowed and for requests without one."""
    vary = b"Origin"
    for name, value in headers:
        if name == b"vary":
            vary = value + b", Origin"
        else:
            yield name, value
    yield b"vary", vary
