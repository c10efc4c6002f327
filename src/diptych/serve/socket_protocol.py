"""WebSocket by uvicorn, with a few things of our own.

Streams are told when the transport takes more. What is wrong with a client is no error of ours: a handshake that the
parser does not take is refused, where uvicorn would wait for more of it for ever. Once the application is done with a
socket, the gate gives its peer a few seconds to take the end, and cuts it then. Pongs are not sent to one who reads
nothing: they would pile up. Frames are parsed in turns (`frames.py`), and no more of them while a message waits for the
application.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.exceptions import HeaderLineTooLong, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request, Response

from diptych.api.reply import problem
from diptych.errors import Code, Refusal
from diptych.serve.frames import MOMENT
from diptych.serve.gate import Gate

_NO_HANDSHAKE = Refusal(Code.BAD_REQUEST, "This is no handshake of a WebSocket.")
_LARGE = (RequestLineTooLong, HeaderLineTooLong, TooManyHeaders)
_TOO_LARGE = Refusal(Code.HEADERS_TOO_LARGE, "The handshake of a WebSocket has too many headers, or too long ones.")
_SLICE = 512
"""Bytes that are parsed before the clock is looked at: 85 frames at most."""


def handshake_is_over(send: object) -> None:
    """Say that a WebSocket was refused, which uvicorn would log as an error of ours."""
    protocol = getattr(send, "__self__", None)
    if isinstance(protocol, SocketProtocol):
        protocol.handshake_complete = True


def takes_turns_as(send: object, caller: str) -> None:
    """Say under which name a WebSocket takes its turns, where that is known better than by its peer."""
    protocol = getattr(send, "__self__", None)
    if isinstance(protocol, SocketProtocol):
        protocol.caller = caller


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket."""

    resumed: Callable[[], None] | None = None
    """Called when the transport takes more again."""
    is_lost = False
    """Is the connection gone?"""

    _gate: Gate | None = None
    _peer = ""
    caller = ""
    """Under which name it takes its turn; until it is known, that of its peer."""
    _rest: bytes = b""
    """What was received and is not parsed yet, from `_parsed` on."""
    _parsed = 0

    def enter(self, gate: Gate, peer: str) -> None:
        """It counts at this gate until the connection is lost."""
        self._gate, self._peer = gate, peer
        self.caller = self.caller or peer

    def cut(self) -> None:
        """End it at once, whatever is still to be sent."""
        if not self.is_lost:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came, first of all the head of a handshake. Where that cannot be read, it is refused."""
        if not self.handshake_initiated:
            super().data_received(data)
            if not self.handshake_initiated and not self.handshake_complete:
                self._refuse(_TOO_LARGE if isinstance(self.conn.handshake_exc, _LARGE) else _NO_HANDSHAKE)
        elif self._rest:
            self._rest, self._parsed = self._rest[self._parsed :] + data, 0
            self.transport.pause_reading()
        elif len(data) <= _SLICE:
            super().data_received(data)
        else:
            self._rest = data
            self.proceed()

    def proceed(self) -> None:
        """Parse for a moment; whatever is left has another turn, once the application has taken its messages."""
        until = time.perf_counter() + MOMENT
        while self._rest and not self.transport.is_closing():
            part = self._rest[self._parsed : self._parsed + _SLICE]
            self._parsed += _SLICE
            if self._parsed >= len(self._rest):
                self._rest, self._parsed = b"", 0
            super().data_received(part)
            if self._rest and (self.read_paused or time.perf_counter() > until):
                self.transport.pause_reading()
                if not self.read_paused:
                    self._wait_turn()
                return
        self._rest, self._parsed = b"", 0
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _wait_turn(self) -> None:
        if self._gate is not None:
            self._gate.frames.wait(self.caller, self)
        elif not self.is_lost:
            self.loop.call_soon(self.proceed)

    async def receive(self) -> ASGIReceiveEvent:
        """The next message; once all are taken, more is parsed, or else read."""
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            if self._rest:
                self._wait_turn()
            else:
                self.transport.resume_reading()
        return message

    def handle_connect(self, event: Request) -> None:
        """Begin; what is no handshake is refused in our own words."""
        accept = self.conn.accept

        def ours(asked: Request) -> Response:
            found = accept(asked)
            if found.status_code == 101:
                return found
            reply = problem(_NO_HANDSHAKE)
            head = [*reply.headers, (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")]
            return Response(400, "Bad Request", Headers([(n.decode(), v.decode()) for n, v in head]), reply.body)

        self.conn.accept = ours  # type: ignore[assignment, method-assign]
        super().handle_connect(event)

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse what the parser of handshakes does not take."""
        reply = problem(refusal)
        head = [*reply.headers, (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in head)
        self.handshake_complete = self.close_sent = True
        self.transport.write(b"".join((STATUS_LINE[reply.status], lines, b"\r\n", reply.body)))
        self.transport.close()

    def handle_ping(self) -> None:
        """Send a pong, unless the peer reads nothing."""
        output = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(output))

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application is done with it."""
        super().on_task_complete(task)
        if self._gate is not None and not self.is_lost:
            self._gate.closing.begin(self)
            if self._rest:  # the close frame of the peer may be in it
                self._wait_turn()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.resumed is not None:
            self.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost = None, True
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.leave(self._peer)
            gate.closing.end(self)
            gate.frames.leave(self.caller, self)
        self._rest = b""

    def send_receive_event_to_app(self) -> None:
        """Hand over a message. What is no UTF-8 closes the socket; uvicorn would log it as an error of ours."""
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.conn.fail(1007)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()
