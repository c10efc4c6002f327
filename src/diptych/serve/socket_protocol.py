"""WebSocket by uvicorn, with a few things of our own.

Streams are told when the transport takes more. What is wrong with a client is no error of ours: a handshake that the
parser does not take is refused, where uvicorn would wait for more of it for ever. Once the application is done with a
socket, the gate gives its peer a few seconds to take the end, and cuts it then. Pongs are not sent to one who reads
nothing: they would pile up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.exceptions import HeaderLineTooLong, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request, Response

from diptych.api.reply import problem
from diptych.errors import Code, Refusal
from diptych.serve.gate import Gate

_NO_HANDSHAKE = Refusal(Code.BAD_REQUEST, "This is no handshake of a WebSocket.")
_LARGE = (RequestLineTooLong, HeaderLineTooLong, TooManyHeaders)
_TOO_LARGE = Refusal(Code.HEADERS_TOO_LARGE, "The handshake of a WebSocket has too many headers, or too long ones.")


def handshake_is_over(send: object) -> None:
    """Say that a WebSocket was refused, which uvicorn would log as an error of ours."""
    protocol = getattr(send, "__self__", None)
    if isinstance(protocol, SocketProtocol):
        protocol.handshake_complete = True


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket."""

    resumed: Callable[[], None] | None = None
    """Called when the transport takes more again."""
    is_lost = False
    """Is the connection gone?"""

    _gate: Gate | None = None
    _peer = ""

    def enter(self, gate: Gate, peer: str) -> None:
        """It counts at this gate until the connection is lost."""
        self._gate, self._peer = gate, peer

    def cut(self) -> None:
        """End it at once, whatever is still to be sent."""
        if not self.is_lost:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came, first of all the head of a handshake. Where that cannot be read, it is refused."""
        super().data_received(data)
        if not self.handshake_initiated and not self.handshake_complete:
            self._refuse(_TOO_LARGE if isinstance(self.conn.handshake_exc, _LARGE) else _NO_HANDSHAKE)

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
