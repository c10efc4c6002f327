"""What the headers of a request say, read once for all requests that repeat them.

    traits_of(b"GET", {b"accept": b"*/*"})         →  HeadTraits(authorization=None, media="application/json", …)
    traits_of(b"GET", {b"if-none-match": b"*"})    →  None

Only heads whose every header is known to be harmless have traits: requests with any other are read by the handler.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from diptych.api.graphql.http import LEGACY, OFFERS
from diptych.api.media import content_type, negotiate
from diptych.serve.http.coding import accepted_coding

_STREAM = "text/event-stream"
ACCEPTS_JSON = frozenset((b"", b"*/*", b"application/json"))
"""What most clients accept: nothing is left to negotiate."""
READ = frozenset((b"accept", b"accept-encoding", b"authorization", b"content-length", b"content-type", b"host"))
"""Headers whose meaning is in the traits, or that were checked with the head."""
IGNORED = frozenset(
    (
        b"accept-charset",
        b"accept-language",
        b"cache-control",
        b"connection",
        b"dnt",
        b"keep-alive",
        b"pragma",
        b"priority",
        b"referer",
        b"sec-ch-ua",
        b"sec-ch-ua-mobile",
        b"sec-ch-ua-platform",
        b"sec-fetch-dest",
        b"sec-fetch-mode",
        b"sec-fetch-user",
        b"sec-gpc",
        b"te",
        b"user-agent",
        b"via",
    )
)
"""Headers that change nothing in a response to a read."""


class HeadTraits(Struct, frozen=True, eq=False):
    """What the headers of a request say, if they ask for nothing special."""

    authorization: bytes | None
    media: str
    """The media type of the response."""
    coding: bytes
    """The content coding that the client accepts, or empty."""


def traits_of(method: bytes, headers: Mapping[bytes, bytes]) -> HeadTraits | None:
    """The traits of a head; None if requests with it always go the whole way."""
    if not headers.keys() <= READ | IGNORED:
        return None
    accept, media = headers.get(b"accept", b""), None
    if method == b"GET":
        media = LEGACY if accept in ACCEPTS_JSON else None
    elif method == b"POST" and content_type(headers.get(b"content-type", b"")) == ("application/json", "utf-8"):
        media = negotiate(accept, (*OFFERS, _STREAM))
    if media is None or media == _STREAM:
        return None
    coding = accepted_coding(headers.get(b"accept-encoding", b""))
    return HeadTraits(headers.get(b"authorization"), media, coding)
