"""Encodes server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

The two styles differ. REST has one unnamed event for each change, so that `onmessage` of a browser gets it, and one
named `end`, after which the stream closes:

    id: <cursor>                                 id: <cursor>
    data: {"cursor":…,"kind":"CREATED",…}        event: end
                                                 data: {"code":"SLOW_READER","message":…,"cursor":…}

GraphQL uses the graphql-sse protocol in its distinct connections mode: `next` with a result, then `complete`. A client
that gets `complete` does not reconnect; one whose connection ends without it does. So a stream that ends for good is
completed, and one that can continue elsewhere is not.

Heartbeats are the same in both: a cursor without data. It moves the Last-Event-ID of a browser and raises no event.
"""

from __future__ import annotations

import msgspec

from diptych.api.reply import Header, graphql_errors
from diptych.ask.measures import Style
from diptych.errors import Code, Refusal

STREAM = "text/event-stream"
HEAD: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),  # a proxy that compresses would hold events back
    (b"vary", b"Authorization, Accept"),
    (b"x-accel-buffering", b"no"),  # nginx would buffer events
)
BEGIN = b"retry: 1000\n\n"
"""Reconnection time of a browser, in milliseconds."""
SLOW_READER = "SLOW_READER"
_SLOW = "Nothing was read for too long; connect again with the cursor."
_AWAY = "The service is going away; connect again with the cursor."
_COMPLETE = b"event: complete\ndata:\n\n"


def around(pieces: tuple[bytes, ...] | None) -> tuple[bytes, bytes]:
    """The bytes between the cursor of a change and its JSON, and after it; `pieces` wrap a change in GraphQL."""
    if pieces is None:
        return b"\ndata: ", b"\n\n"
    return b"\nevent: next\ndata: " + pieces[0], pieces[1] + b"\n\n"


def one_line(body: bytes) -> bytes:
    """JSON without line breaks, which are white space in JSON and would end the data of an event."""
    if b"\n" in body or b"\r" in body:
        return body.replace(b"\n", b" ").replace(b"\r", b" ")
    return body


def beat(cursor: str) -> bytes:
    return b":\nid: %b\n\n" % cursor.encode()


def result(body: bytes) -> bytes:
    """The whole stream of an operation with one result."""
    return b"event: next\ndata: %b\n\n%b" % (one_line(body), _COMPLETE)


def refused_stream(refusal: Refusal) -> bytes:
    """The whole stream of an operation that is refused (graphql-sse: errors come through an accepted connection)."""
    return result(msgspec.json.encode({"errors": graphql_errors(refusal)}))


def slow(style: Style, cursor: str) -> bytes:
    """The last event of a stream whose client reads too slowly."""
    if style == "rest":
        return _end({"code": SLOW_READER, "message": _SLOW}, cursor)
    error = {"message": _SLOW, "extensions": {"code": SLOW_READER, "cursor": cursor}}
    return _id(cursor) + b"event: next\ndata: %b\n\n" % msgspec.json.encode({"errors": [error]})


def end(style: Style, refusal: Refusal | None, cursor: str) -> bytes:
    """The last event of a stream: why it ends (None: the server stops), and where to resume."""
    if style == "rest":
        code, message = (refusal.code, refusal.message) if refusal else (Code.UNAVAILABLE, _AWAY)
        return _end({"code": code.value, "message": message}, cursor)
    if refusal is None or refusal.code is Code.UNAVAILABLE:
        return beat(cursor)
    errors = graphql_errors(refusal)
    for error in errors:
        error["extensions"]["cursor"] = cursor
    return _id(cursor) + result(msgspec.json.encode({"errors": errors}))


def _end(fields: dict[str, str], cursor: str) -> bytes:
    data = msgspec.json.encode({**fields, "cursor": cursor})
    return _id(cursor) + b"event: end\ndata: %b\n\n" % data


def _id(cursor: str) -> bytes:
    return b"id: %b\n" % cursor.encode() if cursor else b""
