"""Streams of server-sent events: one subscription, in the body of one answer.

    return await sse_reply(lambda sink: live.subscribe(ready, inputs, caller, sink), None)

Whoever is refused gets an ordinary answer, since nothing was sent. From then on the stream is driven by the door that
sends the head, until the client goes or `end` comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from diptych.api.graphql.http import MALFORMED, RESPONSE, error_reply
from diptych.api.reply import Header, Reply
from diptych.api.sse import BEGIN, HEAD, STREAM, Style, around, beat, end, one_line, refused, result, slow
from diptych.errors import Refusal
from diptych.serve.outbox import Outbox, Streams
from diptych.serve.wires import BodyWire, Send, body_wire

__all__ = ["STREAM", "EventStream", "Subscribed", "sse_refused", "sse_reply", "sse_result"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Subscribed(Protocol):
    """What an open subscription is to a stream."""

    def close(self) -> None: ...


async def sse_reply(
    open_: Callable[[EventStream], Awaitable[Subscribed]], pieces: tuple[bytes, ...] | None, *, head: bool = False
) -> Reply:
    """The answer that a stream is, or a Refusal; for HEAD, nothing is opened. `pieces` are what goes around each change
    in the query style."""
    if head:
        return Reply(200, HEAD)
    stream = EventStream(pieces)
    stream.subscription = await open_(stream)
    return Reply(200, HEAD, stream=stream)


def sse_result(body: bytes) -> Reply:
    """The answer to an operation that has one result."""
    return Reply(200, HEAD, result(body))


def sse_refused(refusal: Refusal, headers: tuple[Header, ...] = ()) -> Reply:
    """An operation is refused. The protocol tells errors of a document through the stream; what is no request at all,
    or no fault of it, has its status, so that clients try again."""
    if refusal.code in MALFORMED:
        return error_reply(refusal, RESPONSE, headers)
    return Reply(200, HEAD, refused(refusal))


class EventStream(Outbox):
    """The Sink of one subscription, and the stream of its reply."""

    __slots__ = ("_after", "_before", "_last", "_style", "cursor", "subscription")

    def __init__(self, pieces: tuple[bytes, ...] | None) -> None:
        super().__init__()
        self.subscription: Subscribed | None = None
        self.cursor = ""
        self._style: Style = "rest" if pieces is None else "graphql"
        self._before, self._after = around(pieces)
        self._last = b""

    # as a Sink

    def put(self, cursor: str, body: bytes) -> None:
        self.tell((b"id: ", cursor.encode(), self._before, one_line(body), self._after), self, cursor)

    def beat(self, cursor: str) -> None:
        if not self.is_behind:  # one who is behind hears enough
            self.tell((beat(cursor),), self, cursor)

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        if not self.is_behind:
            self.cursor = cursor
        self._finish(end(self._style, refusal, self.cursor))

    # as a Stream

    async def drive(self, receive: Receive, send: Send, streams: Streams) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.streams = streams
        self.wire = wire = body_wire(send, self)
        wire.write((BEGIN,))
        if self.is_over:
            wire.finish(self._last)
        else:
            self.flush()
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        except asyncio.CancelledError:
            if not self.is_over:
                raise
            task.uncancel()  # by the wire, which has sent the last word
        finally:
            self.close()

    def close(self) -> None:
        self.shut()
        if self.subscription is not None:
            self.subscription.close()

    def overrun(self) -> None:
        self._finish(slow(self._style, self.cursor))

    def _finish(self, last: bytes) -> None:
        if self.is_over:
            return
        self.close()
        self._last = last
        if self.wire is not None:
            wire = self.wire
            assert isinstance(wire, BodyWire)
            wire.finish(last)
