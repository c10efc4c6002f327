"""WebSocket by uvicorn, with two things of our own: streams are told when the transport takes more, and what is wrong
with a client is no error of ours."""

from __future__ import annotations

from collections.abc import Callable

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from diptych.api.reply import problem
from diptych.errors import Code, Refusal


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

    def handle_connect(self, event: Request) -> None:
        """Begin; what is no handshake is refused in our own words."""
        accept = self.conn.accept

        def ours(asked: Request) -> Response:
            found = accept(asked)
            if found.status_code == 101:
                return found
            reply = problem(Refusal(Code.BAD_REQUEST, "This is no handshake of a WebSocket."))
            head = [*reply.headers, (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")]
            return Response(400, "Bad Request", Headers([(n.decode(), v.decode()) for n, v in head]), reply.body)

        self.conn.accept = ours  # type: ignore[assignment, method-assign]
        super().handle_connect(event)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.resumed is not None:
            self.resumed()

    gone: Callable[[], None] | None = None
    """Called when the connection has ended."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost = None, True
        if self.gone is not None:
            self.gone()
            self.gone = None

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
