"""WebSocket on uvicorn, with timeouts, backpressure and fair parsing.

`resumed` is called when the transport is writable again. A client's mistake is not logged as an error of ours: a
malformed handshake is refused, where uvicorn would wait for the rest of it forever. When the application is done with a
socket, its peer has a few seconds to complete the closing handshake; then the connection is aborted (see
`ConnectionLimits`). No pongs are sent to a peer that does not read: they would pile up. Frames are parsed fairly
(`frame_scheduler.py`), and only while no message waits for the application.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.exceptions import HeaderLineTooLong, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request, Response

from diptych.api.reply import problem
from diptych.errors import Code, Refusal
from diptych.serve.http.connection_limits import ConnectionLimits
from diptych.serve.http.frame_scheduler import TIME_SLICE
from diptych.serve.http.uvicorn_fast_path import encoded_head

_NO_HANDSHAKE = Refusal(Code.BAD_REQUEST, "This is not a valid WebSocket handshake.")
_LARGE = (RequestLineTooLong, HeaderLineTooLong, TooManyHeaders)
_TOO_LARGE = Refusal(
    Code.HEADERS_TOO_LARGE, "The WebSocket handshake has too many headers, or headers that are too long."
)
_CHUNK = 512
"""Bytes that are parsed between two looks at the clock: 85 frames at most."""


def handshake_is_over(send: object) -> None:
    """Mark a refused handshake as complete, so that uvicorn does not log it as an error of ours."""
    protocol = getattr(send, "__self__", None)
    if isinstance(protocol, SocketProtocol):
        protocol.handshake_complete = True


def set_frame_caller(send: object, caller: str) -> None:
    """Set the caller for which frames are scheduled, where it is known better than by the peer address."""
    protocol = getattr(send, "__self__", None)
    if isinstance(protocol, SocketProtocol):
        protocol.caller = caller


class SocketProtocol(WebSocketsSansIOProtocol):
    resumed: Callable[[], None] | None = None
    """Called when the transport is writable again."""
    is_lost = False
    """Was the connection lost?"""

    _limits: ConnectionLimits | None = None
    _peer = ""
    caller = ""
    """The caller for which frames are scheduled; the peer address until it is known."""
    _rest: bytes = b""
    """Received data; what follows `_parsed` is not parsed yet."""
    _parsed = 0

    def enter(self, limits: ConnectionLimits, peer: str) -> None:
        """Count the connection under these limits until it is lost."""
        self._limits, self._peer = limits, peer
        self.caller = self.caller or peer

    def abort(self) -> None:
        """Close the connection at once, with unsent data or not."""
        if not self.is_lost:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse a handshake, then frames; a malformed handshake is refused."""
        if not self.handshake_initiated:
            super().data_received(data)
            if not self.handshake_initiated and not self.handshake_complete:
                self._refuse(_TOO_LARGE if isinstance(self.conn.handshake_exc, _LARGE) else _NO_HANDSHAKE)
        elif self._rest:
            self._rest, self._parsed = self._rest[self._parsed :] + data, 0
            self.transport.pause_reading()
        elif len(data) <= _CHUNK:
            super().data_received(data)
        else:
            self._rest = data
            self.proceed()

    def proceed(self) -> None:
        """Parse for one time slice; the rest waits until the application has received its messages."""
        until = time.perf_counter() + TIME_SLICE
        while self._rest and not self.transport.is_closing():
            part = self._rest[self._parsed : self._parsed + _CHUNK]
            self._parsed += _CHUNK
            if self._parsed >= len(self._rest):
                self._rest, self._parsed = b"", 0
            super().data_received(part)
            if self._rest and (self.read_paused or time.perf_counter() > until):
                self.transport.pause_reading()
                if not self.read_paused:
                    self._schedule()
                return
        self._rest, self._parsed = b"", 0
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _schedule(self) -> None:
        if self._limits is not None:
            self._limits.frames.wait(self.caller, self)
        elif not self.is_lost:
            self.loop.call_soon(self.proceed)

    async def receive(self) -> ASGIReceiveEvent:
        """The next message; when the queue is empty, parsing or reading resumes."""
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            if self._rest:
                self._schedule()
            else:
                self.transport.resume_reading()
        return message

    def handle_connect(self, event: Request) -> None:
        """Accept the handshake, or refuse it with a problem response."""
        accept = self.conn.accept

        def accept_or_refuse(request: Request) -> Response:
            response = accept(request)
            if response.status_code == 101:
                return response
            reply = problem(_NO_HANDSHAKE)
            head = [*reply.headers, (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")]
            return Response(400, "Bad Request", Headers([(n.decode(), v.decode()) for n, v in head]), reply.body)

        self.conn.accept = accept_or_refuse  # type: ignore[method-assign]  # websockets has no hook
        super().handle_connect(event)
        del self.conn.accept

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse a handshake that cannot be parsed."""
        self.handshake_complete = self.close_sent = True
        reply = problem(refusal)
        self.transport.write((encoded_head(reply, (), keep_alive=False) or b"") + reply.body)
        self.transport.close()

    def handle_ping(self) -> None:
        """Send a pong, unless the peer does not read."""
        output = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(output))

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Start the closing timeout: the application is done with the socket."""
        super().on_task_complete(task)
        if self._limits is not None and not self.is_lost:
            self._limits.closing.begin(self)
            if self._rest:  # the close frame of the peer may be in it
                self._schedule()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.resumed is not None:
            self.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost = None, True
        limits, self._limits = self._limits, None
        if limits is not None:
            limits.leave(self._peer)
            limits.closing.end(self)
            limits.frames.discard(self.caller, self)
        self._rest = b""

    def send_receive_event_to_app(self) -> None:
        """Queue a message for the application. Invalid UTF-8 closes the socket; uvicorn would log an error of ours."""
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.conn.fail(1007)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()
