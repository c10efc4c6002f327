"""Server-sent events: one subscription, in the body of one response.

    return await sse_reply(lambda sink: live.subscribe(ready, inputs, caller, sink), None)

A refused subscription is an ordinary response, since nothing was sent yet. After that, the application sends the head
and runs `EventStream.drive` until the client disconnects or `end` is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from diptych.api.graphql.http import RESPONSE, TRANSPORT_CODES, error_reply
from diptych.api.reply import Header, Reply
from diptych.api.sse import BEGIN, HEAD, STREAM, around, beat, end, one_line, refused_stream, result, slow
from diptych.ask.measures import Style
from diptych.errors import Refusal
from diptych.live.group import Subscription
from diptych.serve.asgi import Receive, Send
from diptych.serve.stream.send_queue import SendQueue, StreamLimits
from diptych.serve.stream.transports import BodyTransport, body_transport

__all__ = ["STREAM", "EventStream", "sse_refused", "sse_reply", "sse_result"]


async def sse_reply(
    open_: Callable[[EventStream], Awaitable[Subscription]], pieces: tuple[bytes, ...] | None, *, head: bool = False
) -> Reply:
    """Open a subscription and return the reply that streams it; raises a Refusal. HEAD opens nothing.

    `pieces` is the JSON around a change in GraphQL responses; None for REST.
    """
    if head:
        return Reply(200, HEAD)
    stream = EventStream(pieces)
    stream.subscription = await open_(stream)
    return Reply(200, HEAD, stream=stream)


def sse_result(body: bytes) -> Reply:
    """The event stream of an operation with a single result."""
    return Reply(200, HEAD, result(body))


def sse_refused(refusal: Refusal, headers: tuple[Header, ...] = ()) -> Reply:
    """The response to a refused operation.

    The protocol (GraphQL over SSE) sends errors of the document as an event. A malformed request, or a fault that is
    not the client's, has its HTTP status, so that clients can retry.
    """
    if refusal.code in TRANSPORT_CODES:
        return error_reply(refusal, RESPONSE, headers)
    return Reply(200, HEAD, refused_stream(refusal))


class EventStream(SendQueue):
    """The Sink of one subscription, and the stream of its reply."""

    __slots__ = ("_after", "_before", "_last", "_style", "cursor", "subscription")

    def __init__(self, pieces: tuple[bytes, ...] | None) -> None:
        super().__init__()
        self.subscription: Subscription | None = None
        self.cursor = ""
        self._style: Style = "rest" if pieces is None else "graphql"
        self._before, self._after = around(pieces)
        self._last = b""

    # as a Sink

    def put(self, cursor: str, body: bytes) -> None:
        self.send((b"id: ", cursor.encode(), self._before, one_line(body), self._after), self, cursor)

    def beat(self, cursor: str) -> None:
        if not self.is_behind:  # a client with pending events needs no heartbeat
            self.send((beat(cursor),), self, cursor)

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        if not self.is_behind:
            self.cursor = cursor
        self._finish(end(self._style, refusal, self.cursor))

    # as a Stream

    async def drive(self, receive: Receive, send: Send, streams: StreamLimits) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.streams = streams
        self.transport = transport = body_transport(send, self)
        transport.write((BEGIN,))
        if self.is_over:
            transport.finish(self._last)
        else:
            self.flush()
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        except asyncio.CancelledError:
            if not self.is_over:
                raise
            task.uncancel()  # cancelled by the transport, after the last event was sent
        finally:
            self.close()

    def close(self) -> None:
        self.discard()
        subscription, self.subscription = self.subscription, None
        if subscription is not None:
            subscription.close()

    def overrun(self) -> None:
        self._finish(slow(self._style, self.cursor))

    def _finish(self, last: bytes) -> None:
        if self.is_over:
            return
        self.close()
        self._last = last
        if self.transport is not None:
            transport = self.transport
            assert isinstance(transport, BodyTransport)
            transport.finish(last)
