"""HTTP/1.1 by uvicorn and httptools, with a few things of our own.

*Heads.* They have a limit, without which a client could fill the memory with a header, and rules (`heads.py`). What is
no HTTP at all is refused in our own words, behind the answers to what was asked before it. Trailers are dropped: they
came after the head was judged, and are no part of it. An upgrade that is not taken is ignored and the request is served
as it is (RFC 9110, §7.8): every stock Java client offers h2c, and httptools would drop the body of its request.

*Time.* Whoever keeps us waiting is ended by the timers of the gate (`gate.py`): a head that does not come, an answer
that is not read, a connection that is idle. A body has the time of its request. No state of a connection is without a
timer (the table is in docs/limits.md). When a client goes away, the task that serves it is cancelled, so that whatever
that holds (a connection to the database, a place in a line) is free for others at once.

*Room.* Of requests that are sent before the answers to others were given, so many are taken, and the connection ends
with the answer to the last. What is sent around a body (sizes of chunks, trailers) may have no more bytes than that.
A request that is answered before its body has come is the last of its connection.

Streams, which write to the transport by themselves (`wires.py`), are told when it takes more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from diptych.api.reply import problem
from diptych.asking import peer_name
from diptych.errors import Code, Refusal
from diptych.serve.gate import gate_of, outstanding
from diptych.serve.heads import MALFORMED, MAX_HEAD, TOO_LARGE, body_fault, fault_of, is_handshake, origin_form
from diptych.serve.socket_protocol import SocketProtocol

_CROWDED = Refusal(Code.UNAVAILABLE, "Too many connections are open here; try again.")
_LATE = Refusal(Code.BAD_REQUEST, "The head of the request did not arrive in time.")
_AHEAD = 16
"""Requests that may be sent before those before them were answered."""
_FRAMING = 8
"""So many bytes may be sent around each byte of a body, besides as many as a head may have."""
_LEAST = 16_384
"""Bytes of an answer that must be read while the gate is patient."""
_HOP = (b"upgrade", b"http2-settings")


class Protocol(HttpToolsProtocol):
    """One connection."""

    resumed: Callable[[], None] | None = None
    """Called when the transport takes more again."""
    is_lost = False
    """Is the connection gone?"""
    is_deaf = False
    """Is whatever else comes dropped?"""
    _is_surplus = False
    """Was it not let in, so that it may ask for nothing but health?"""
    _awaited = False
    """Does the gate wait for a head?"""
    _idle = False
    _bodiless = False
    _trailing = False
    """Is the head complete, and the message not?"""
    _declined = False
    """Does this request offer an upgrade that is not taken?"""
    _begun = 0
    """Bytes of a head that is not complete."""
    _received = 0
    _bodied = 0
    """Bytes of its body."""
    _around = 0
    """Bytes of a message besides its body, since its head was complete."""
    _held = 0
    """Bytes of answers that wait for the client, when it had stopped reading."""
    _unread = 0
    """Bytes that the client had not read when that was looked at last."""
    _refusal: Refusal | None = None
    """What is wrong with what the parser was given last."""
    _last: Refusal | None = None
    """What is said when all that was asked before is answered."""
    _peer = ""
    _serving: tuple[RequestResponseCycle, asyncio.Task[None]] | None = None

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self.gate = gate_of(config, server_state)

    # the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = peer_name(self.client)
        self._awaited = True
        if self.gate.enter(self._peer):
            self.gate.heads.begin(self)
        else:
            self._is_surplus = True
            self.gate.keep_surplus(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost, self.is_deaf = None, True, True
        gate = self.gate
        if not self._is_surplus:
            gate.leave(self._peer)
        for each in (gate.heads, gate.idle, gate.unread, gate.leaving, gate.surplus):
            each.end(self)
        self._holds(0)
        self.pipeline.clear()
        self._cancel()

    def _cancel(self) -> None:
        """Nobody waits for the answer that is being made."""
        if self._serving is not None:
            cycle, task = self._serving
            if not cycle.response_complete:
                cycle.disconnected = True  # of several requests in a row, uvicorn tells the last one only
                task.cancel()

    def leave(self) -> None:
        """Say nothing more, and end. What still comes is dropped for a while, so that what was said can be read."""
        if self.transport.is_closing() or self in self.gate.leaving:
            return
        self.is_deaf = True
        self.flow.resume_reading()
        self.gate.leaving.begin(self)
        if self.transport.can_write_eof():
            with suppress(OSError):
                self.transport.write_eof()
        else:
            self.transport.close()

    def cut(self) -> None:
        if not self.is_lost:
            self.transport.abort()

    # as the gate sees it

    def turn_away(self) -> None:
        if self._serving is None and self not in self.gate.leaving and len(self.gate.leaving) < self.gate.most // 4:
            self._refuse(_CROWDED)
        else:
            self.cut()

    def too_late(self) -> None:
        self._awaited = False
        if self._begun:
            self._refusal = _LATE
            self._misread()
        else:
            self.transport.close()

    def idle_over(self) -> None:
        if not self.transport.get_write_buffer_size():
            self.transport.close()
            return
        self.gate.idle.begin(self)
        if self not in self.gate.unread:
            self._watch_reading()

    def look_unread(self) -> None:
        left = outstanding(self.transport)
        if self.transport.get_write_buffer_size() and left + _LEAST > self._unread:
            self.cut()
        else:
            self._unread = left
            self.gate.unread.begin(self)

    def _watch_reading(self) -> None:
        self._unread = outstanding(self.transport)
        self.gate.unread.begin(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.resumed is None:  # a stream looks after itself
            self._watch_reading()
            self._holds(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():  # else it is watched until the last byte is read
            self.gate.unread.end(self)
        self._holds(0)
        if self.resumed is not None:
            self.resumed()

    def release(self) -> None:
        self._holds(0)

    def _holds(self, unsent: int) -> None:
        """So many bytes are held for this client; where all together hold too many, the oldest go."""
        self.gate.unsent += unsent - self._held
        self._held = unsent
        if unsent:
            self.gate.limit_unsent()

    # requests and answers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._serving = cycle, task

    def on_response_complete(self) -> None:
        """The next request that was sent before this answer has its turn; if there is none, the connection is idle."""
        self.server_state.total_requests += 1
        self._bodiless = False
        if self.transport.is_closing():
            if not self.is_lost and self.transport.get_write_buffer_size():
                self._watch_reading()
            return
        assert self._serving is not None
        cycle, _ = self._serving
        if cycle.more_body or (self.is_deaf and not cycle.keep_alive):  # what is still to come is no request
            self.leave()
        elif self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._last is not None:
            self._refuse(self._last)
        elif not self.is_deaf:
            self.flow.resume_reading()
            if not self._awaited:
                self._idle = True
                self.gate.idle.begin(self)

    def _rest(self) -> None:
        """Nothing is under way here."""
        self._idle = True
        self.gate.idle.begin(self)

    def data_received(self, data: bytes) -> None:
        if self.is_deaf:
            return
        if self._idle:
            self._idle = False
            self.gate.idle.end(self)
        self._received = len(data)
        before = self.scope
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._misread()
        else:
            if self._trailing:
                self._around += len(data)
                if self._around > 2 * MAX_HEAD and self._around > 2 * MAX_HEAD + _FRAMING * self._bodied:
                    self._refusal = MALFORMED
                    self._misread()
            elif self.cycle is None or self.cycle.scope is not self.scope:
                # where it begins behind another message, how much of the data belongs to it is not known
                self._await_head(len(data) if self.cycle is None or self.scope is before else 1)
            elif self.cycle.response_complete:  # no more than the end of a line came
                self._rest()

    def _await_head(self, more: int) -> None:
        """A part of a head has come."""
        self._begun += more
        if self._begun > MAX_HEAD:
            self._refusal = TOO_LARGE
            self._misread()
        elif not self._awaited:
            self._awaited = True
            self.gate.heads.begin(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._trailing:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._trailing = True
        self._around = self._bodied = 0
        if self._begun + self._received > MAX_HEAD and self._head() > MAX_HEAD:
            self._refusal = TOO_LARGE
            raise ValueError
        self._begun = 0
        method = self.parser.get_method()
        self._bodiless = method == b"HEAD"
        if self.url[:1] != b"/":
            self.url, self.headers[:] = origin_form(self.url, self.headers)
        self._refusal = fault_of(method, self.url, self.parser.get_http_version(), self.headers)
        if self._is_surplus and self.url not in self.gate.health:
            self._refusal = _CROWDED
        if self._refusal is not None or method == b"CONNECT":
            raise ValueError
        if self._awaited:
            self._awaited = False
            self.gate.heads.end(self)
        self._declined = False
        if self.parser.should_upgrade():
            self._declined = not self._should_upgrade()
            self._refusal = None if self._declined else body_fault(self.headers)
            if self._refusal is not None:
                raise ValueError
        if not self._declined:
            HttpToolsProtocol.on_headers_complete(self)
            if len(self.pipeline) >= _AHEAD or self._is_surplus:
                self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._bodied += len(body)
        if not self._declined:
            HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        self._trailing = False
        if self._declined:
            return
        HttpToolsProtocol.on_message_complete(self)
        if len(self.pipeline) >= _AHEAD:  # whatever comes behind it is for another connection
            self.is_deaf = True
            raise ValueError

    # refusals

    def send_400_response(self, msg: str) -> None:
        self._misread()

    def _misread(self) -> None:
        """Refuse what cannot be read, when all that was asked before it is answered, and end."""
        if self.is_deaf and self._last is None:
            return
        refusal, self._refusal = self._refusal or MALFORMED, None
        cycle, self.is_deaf = self.cycle, True
        if cycle is not None and cycle.more_body and cycle.scope is self.scope:  # it is the body of this one
            if self.pipeline:
                self.pipeline.popleft()
            elif cycle.response_started:
                self.leave() if cycle.response_complete else self.cut()
                return
            else:
                self._cancel()
                self._refuse(refusal)
                return
        if self._serving is None or self._serving[0].response_complete:
            self._refuse(refusal)
        else:
            self._last = refusal

    def _refuse(self, refusal: Refusal) -> None:
        """The last word of this connection."""
        self._last = None
        if self.transport.is_closing():
            return
        reply = problem(refusal)
        length, close = (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")
        head = [*self.server_state.default_headers, *reply.headers, length, close]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in head)
        body = b"" if self._bodiless else reply.body
        self.transport.write(b"".join((STATUS_LINE[reply.status], lines, b"\r\n", body)))
        self.leave()

    # upgrades

    def _should_upgrade(self) -> bool:
        """Only an offer of WebSocket that is whole, by GET, behind nothing that waits for its answer, is taken."""
        if not super()._should_upgrade() or not is_handshake(self.parser.get_method(), self.headers):
            return False
        return self._serving is None or self._serving[0].response_complete

    def _head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _upgrade(self, rest: bytes) -> None:
        """Take an offer of WebSocket; from any other, read the request again without the offer."""
        self._trailing = False
        if self._should_upgrade():
            self.handle_websocket_upgrade()
            protocol = self.transport.get_protocol()
            if isinstance(protocol, SocketProtocol):
                protocol.enter(self.gate, self._peer)
            self.parser = None  # type: ignore[assignment]  # it would keep this protocol, which has nothing left to do
            return
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] not in (*_HOP, b"connection")]
        if not self.parser.should_keep_alive():
            kept.append(b"connection: close\r\n")
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join((line, *kept, b"\r\n", rest)))
