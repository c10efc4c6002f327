"""HTTP/1.1 on uvicorn and httptools, with limits and stricter parsing.

    known_heads.py    heads that clients repeat, from an LRU cache
    protocol.py       heads and bodies, parsed and checked; upgrades
    exchanges.py      requests, handed to the application; their responses
    connection.py     timers, unsent bytes, closing

*Heads.* The size of a request head is limited, and its fields are checked (`head_rules.py`). Malformed input gets a
problem response of ours, after the responses to the pipelined requests before it. Trailers are dropped: they arrive
after the head was checked, and are not part of it. An upgrade that is not supported is ignored, and the request is
served over HTTP/1.1 (RFC 9110, §7.8): every stock Java client offers h2c, and httptools would drop its body.

*Sizes.* The number of pipelined requests is limited, and the connection closes after the response to the last one.
Chunk sizes and trailers are limited in relation to the body. A request that is answered before its body has arrived is
the last one of its connection.
"""

from __future__ import annotations

import importlib
from contextvars import copy_context

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from diptych.api.reply import Reply
from diptych.errors import Refusal
from diptych.serve.http.connection import CROWDED
from diptych.serve.http.direct import CompleteRequest
from diptych.serve.http.exchanges import AHEAD, Exchanges
from diptych.serve.http.head_rules import (
    HEAD_TOO_LARGE,
    HTTP_1_1_REQUIRED,
    MALFORMED_HEAD,
    MAX_HEAD,
    body_fault,
    is_handshake,
    origin_form,
    refusal_of_head,
)
from diptych.serve.http.known_heads import KnownHead
from diptych.serve.on_demand import SOCKET_PROTOCOL

_FRAMING = 8
"""Bytes of chunk framing allowed per byte of a body, in addition to the size of a head."""
_HOP = (b"upgrade", b"http2-settings")


class Protocol(Exchanges):
    """One HTTP connection."""

    _trailing = False
    """Is the head complete, but not the message?"""
    _declined = False
    """Does this request offer an upgrade that is ignored?"""
    _bodied = 0
    """Bytes of the body so far."""
    _around = 0
    """Bytes after the head that are not body: chunk framing and trailers."""
    _refusal: Refusal | None = None
    """Why the parser failed, set by a callback before it raises."""
    _in_head = True
    """Is the head of a request awaited, or incomplete?"""
    _heads = 0
    """Heads that have begun."""
    _known: KnownHead | None = None
    """The head that was known last, if it has traits: that of the next request is probably the same.

    So it takes a few KiB at most. One with other headers may have 200 of them, and take 30 KiB for as long as the
    connection lasts, or a stream on it.
    """

    def data_received(self, data: bytes) -> None:
        if self.discard_input:
            return
        is_new = self._idle or not (self._heads or self._begun)  # the data begins with a request line
        if is_new and self._answer_known(data):
            return
        self._end_idle()
        self._received = len(data)
        before = self._heads
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            if self._direct:
                self._leave_direct()
            self._refuse_input()
            return
        if self._direct:
            if self._complete:
                self._keep_head(data, is_new)
                self._answer()
                return
            self._leave_direct()
        if self._trailing:
            self._around += len(data)
            if self._around > 2 * MAX_HEAD and self._around > 2 * MAX_HEAD + _FRAMING * self._bodied:
                self._misread(MALFORMED_HEAD)
        elif self._in_head:
            # if the head begins after another message, its share of the data is not known
            self._await_head(len(data) if self._heads == before or self._heads == 1 else 1)
        elif not self._is_serving:  # only a line ending arrived
            self._rest()

    def _answer_known(self, data: bytes) -> bool:
        """Answer a whole request whose head was parsed before; the parser waits between two messages meanwhile."""
        limits, app = self.connection_limits, self._app
        if app is None or self._is_surplus or self.flow.write_paused:
            return False
        known = limits.known_heads.find(data, self._known)
        if known is None:
            return False
        url, head = known
        self._known = head if head.traits is not None else None
        body = data[-head.length :] if head.length else b""
        lag = limits.lag.note(self.loop)
        context = copy_context()
        reply = context.run(
            app.respond, CompleteRequest(head.method, url, head.by_name, self.client, body, lag, head.traits)
        )
        self._heads += 1
        is_usual = head.traits is not None and self._idle and not limits.is_draining
        if is_usual and type(reply) is Reply and reply.stream is None:
            limits.idle.begin(self)
            self._write(reply)  # heads with traits are of GET and POST
            self.server_state.total_requests += 1
            return True
        self._end_idle()
        if self._awaited:
            self._awaited = self._in_head = False
            limits.heads.end(self)
        self.url, self._method, self.headers, self._lag = url, head.line, head.headers, lag
        self._bodiless = head.line == b"HEAD"
        self._keep_alive, self._version = not limits.is_draining, "1.1"
        self._follow(reply, context)
        return True

    def _keep_head(self, data: bytes, is_whole: bool) -> None:
        """Remember the head of a request, if the data is all of it, and the connection stays open."""
        if is_whole and self._keep_alive and self._version == "1.1":
            self.connection_limits.known_heads.keep(data, self._method, self.headers, self._by_name)

    def _await_head(self, more: int) -> None:
        """Count the bytes of an incomplete head, and start the head timeout."""
        self._begun += more
        if self._begun > MAX_HEAD:
            self._misread(HEAD_TOO_LARGE)
        elif not self._awaited:
            self._awaited = True
            self.connection_limits.heads.begin(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._trailing:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_message_begin(self) -> None:
        if self._direct:  # another request is pipelined behind it
            self._leave_direct()
        self._in_head = True
        self._heads += 1
        self.url = b""
        self._bodiless = self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        self._trailing = True
        self._in_head = False
        self._around = self._bodied = 0
        if self._begun + self._received > MAX_HEAD and self._head() > MAX_HEAD:
            self._refusal = HEAD_TOO_LARGE
            raise ValueError
        self._begun = 0
        method = self._method = self.parser.get_method()
        self._version = self.parser.get_http_version()
        self._bodiless = method == b"HEAD"
        if self.url[:1] != b"/":
            self.url, self.headers[:] = origin_form(self.url, self.headers)
        by_name = self._by_name = dict(self.headers)
        self._refusal = refusal_of_head(method, self.url, self._version, self.headers, by_name)
        if self._is_surplus and self.url not in self.connection_limits.health:
            self._refusal = CROWDED
        if self._refusal is not None or method == b"CONNECT":
            raise ValueError
        if self._awaited:
            self._awaited = False
            self.connection_limits.heads.end(self)
        self._declined = False
        if self.parser.should_upgrade():
            self._declined = not self._should_upgrade()
            self._refusal = None if self._declined else body_fault(self.headers)
            if self._refusal is not None:
                raise ValueError
            self.scope = {"method": method.decode("ascii"), "headers": self.headers}  # type: ignore[typeddict-item]  # all that uvicorn reads
            return
        self._keep_alive = self.parser.should_keep_alive() and not self.connection_limits.is_draining
        self._lag = self.connection_limits.lag.note(self.loop)
        self._direct = self._is_plain(by_name)
        if not self._direct:
            self._open_cycle()

    def _is_plain(self, by_name: dict[bytes, bytes]) -> bool:
        """Can the request take the direct path, if all of it has arrived?"""
        if (
            self._app is None
            or self._is_surplus
            or self.flow.write_paused
            or self.expect_100_continue
            or b"transfer-encoding" in by_name
            or len(by_name) != len(self.headers)
            or self.pipeline
            or self._is_serving
        ):
            return False
        length = by_name.get(b"content-length")
        return length is None or int(length) <= self._received

    def on_body(self, body: bytes) -> None:
        self._bodied += len(body)
        if self._direct:
            self._body = self._body + body if self._body else body
        elif not self._declined:
            HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        self._trailing = False
        if self._direct:
            self._complete = True
            return
        if self._declined:
            return
        HttpToolsProtocol.on_message_complete(self)
        if len(self.pipeline) >= AHEAD:  # further requests need another connection
            self.discard_input = True
            raise ValueError

    def send_400_response(self, msg: str) -> None:
        self._refuse_input()

    def _refuse_input(self) -> None:
        """Refuse the input that the parser did not accept."""
        if self._heads == 1 and self.parser.get_method() == b"PRI":  # the preface of HTTP/2 (RFC 9113, §3.4)
            self.discard_input = True
            self.transport.write(HTTP_1_1_REQUIRED)
            self.lingering_close()
            return
        refusal, self._refusal = self._refusal, None
        self._misread(refusal or MALFORMED_HEAD)

    # upgrades

    def _should_upgrade(self) -> bool:
        """Only a complete WebSocket handshake by GET is accepted, if no response is pending or unread.

        A surplus connection stays one: it is not counted, and a WebSocket is.
        """
        if not super()._should_upgrade() or not is_handshake(self.parser.get_method(), self.headers):
            return False
        return not (self._is_serving or self._is_surplus or self.flow.write_paused)

    def _head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _upgrade(self, rest: bytes) -> None:
        """Switch to WebSocket; for any other upgrade, parse the request again without the Upgrade header."""
        self._trailing = False
        if self._should_upgrade():
            self._let_go()
            self.handle_websocket_upgrade()
            protocol = self.transport.get_protocol()
            if isinstance(protocol, importlib.import_module(SOCKET_PROTOCOL).SocketProtocol):
                protocol.enter(self.connection_limits, self._peer)
            self.parser = None  # type: ignore[assignment]  # breaks a reference cycle with this protocol
            return
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] not in (*_HOP, b"connection")]
        if not self.parser.should_keep_alive():
            kept.append(b"connection: close\r\n")
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join((line, *kept, b"\r\n", rest)))
