"""HTTP/1.1 by uvicorn and httptools, with six things of our own, and WebSocket by uvicorn with two.

The head of a request has a limit: without one, a client can fill the memory with a header. An upgrade that is
not taken is ignored and the request is served as it is (RFC 9110, §7.8): every stock Java client offers h2c, and
httptools would drop the body of its request. What is no HTTP at all is refused in our own words. A whole answer
goes out in one write. And when a client goes away, the task that serves it is cancelled, so that whatever that holds
(a connection to the database, a place in a line) is free for others at once. And streams, which write to the transport
by themselves (`wires.py`), are told when it takes more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from diptych.api.reply import Reply, problem
from diptych.errors import Code, Refusal

MAX_HEAD = 65_536
_MALFORMED = Refusal(Code.BAD_REQUEST, "This is not a request of HTTP/1.1.")
_TOO_LARGE = Refusal(Code.HEADERS_TOO_LARGE, f"The request line and the headers may have {MAX_HEAD} bytes.")
_HOP = (b"connection", b"upgrade", b"http2-settings")


def reply_at_once(send: object, reply: Reply, body: bytes) -> bool:
    """Write a whole answer in one go, if `send` is uvicorn's own and nothing stands in the way; else say no.

    Two ASGI messages are two writes, each of which costs more than a point read, and every header is searched.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.access_log:
        return False
    if cycle.flow.write_paused or cycle.disconnected or cycle.response_started:
        return False
    lines = [STATUS_LINE[reply.status]]
    for name, value in (*cycle.default_headers, *reply.headers):
        lines += (name, b": ", value, b"\r\n")
    if reply.status not in (204, 304):
        lines.append(b"content-length: %d\r\n" % len(reply.body))
    if not cycle.keep_alive:
        lines.append(b"connection: close\r\n")
    head = b"".join(lines)
    if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r\n\r\n"):
        return False  # a header that is none: uvicorn refuses it
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"%b\r\n%b" % (head, body))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


def has_gone(send: object) -> bool:
    """Has the client gone away? Only uvicorn's own `send` can tell."""
    cycle = getattr(send, "__self__", None)
    return type(cycle) is RequestResponseCycle and cycle.disconnected


def close_after(send: object) -> None:
    """Let the connection end with this answer, if `send` is uvicorn's own: after a stream, nobody waits for more."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle:
        cycle.keep_alive = False


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

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.resumed is not None:
            self.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost = None, True

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


class Protocol(HttpToolsProtocol):
    """One connection."""

    resumed: Callable[[], None] | None = None
    """Called when the transport takes more again."""
    is_lost = False
    """Is the connection gone?"""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self._refusal = _MALFORMED
        self._begun = 0
        """Bytes of a head that is not complete."""
        self._received = 0
        self._declined = False
        """Does this request offer an upgrade that is not taken?"""
        self._serving: tuple[RequestResponseCycle, asyncio.Task[None]] | None = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._serving = cycle, task

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.resumed is not None:
            self.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost = None, True
        if self._serving is not None:
            cycle, task = self._serving
            if not cycle.response_complete:
                cycle.disconnected = True  # of several requests in a row, uvicorn tells the last one only
                task.cancel()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._received = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")
        else:
            if self.cycle is not None and self.cycle.scope is self.scope:
                self._begun = 0
            else:
                self._begun += len(data)
                if self._begun > MAX_HEAD:
                    self._refusal = _TOO_LARGE
                    self.send_400_response("")

    def on_headers_complete(self) -> None:
        if self._begun + self._received > MAX_HEAD and self._head() > MAX_HEAD:
            self._refusal = _TOO_LARGE
            raise ValueError
        self._declined = self.parser.should_upgrade() and not self._should_upgrade()
        if not self._declined:
            HttpToolsProtocol.on_headers_complete(self)

    def on_body(self, body: bytes) -> None:
        if not self._declined:
            HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        if not self._declined:
            HttpToolsProtocol.on_message_complete(self)

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, and close."""
        reply = problem(self._refusal)
        length, close = (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")
        head = [*self.server_state.default_headers, *reply.headers, length, close]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in head)
        self.transport.write(b"".join((STATUS_LINE[reply.status], lines, b"\r\n", reply.body)))
        self.transport.close()

    def _should_upgrade(self) -> bool:
        """Only an offer of WebSocket that is whole is taken; of any other, nothing could come."""
        return super()._should_upgrade() and any(name == b"sec-websocket-key" for name, _ in self.headers)

    def _head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _upgrade(self, rest: bytes) -> None:
        """Take an offer of WebSocket; from any other, read the request again without the offer."""
        if self._should_upgrade():
            self.handle_websocket_upgrade()
            self.parser = None  # type: ignore[assignment]  # it would keep this protocol, which has nothing left to do
            return
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] not in _HOP]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join((line, *kept, b"\r\n", rest)))
