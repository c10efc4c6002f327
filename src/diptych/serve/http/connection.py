"""The connection under HTTP/1.1: its timers, its unsent bytes, and how it is closed.

Head timeout, write-stall timeout, idle timeout (see `ConnectionLimits`); a body is bound by the timeout of its request.
Every state of a connection has a timer (docs/reference/limits.md has the table). When a client disconnects, the task of
its request is cancelled, which releases what it holds (a database connection, a permit) at once.

Streams write to the transport themselves (`stream/transports.py`); `resumed` is called when it is writable again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from diptych.api.reply import problem
from diptych.errors import Code, Refusal
from diptych.fair.caller import peer_name
from diptych.serve.http.connection_limits import connection_limits_of, outstanding
from diptych.serve.http.uvicorn_fast_path import encoded_head

CROWDED = Refusal(Code.UNAVAILABLE, "Too many connections are open; try again.")
_LATE = Refusal(Code.BAD_REQUEST, "The head of the request did not arrive in time.")
_LEAST = 16_384
"""Bytes of a response that a client must read in each write-stall timeout."""


class _NoEvent:
    """An event that nobody waits for."""

    def set(self) -> None:
        pass


class RequestHead(Struct, frozen=True, eq=False):
    """The head of a request, as its response needs it."""

    method: bytes
    url: bytes
    headers: list[tuple[bytes, bytes]]
    version: str
    keep_alive: bool
    lag: float
    """Seconds for which the request waited for the event loop."""


class Exchange:
    """A request of the direct path that waits; uvicorn uses it as it would use a cycle of its own.

    It has its head, since that of the connection may be the next one's when its response is made.
    """

    __slots__ = ("disconnected", "head", "keep_alive", "response_complete")
    more_body = False
    message_event = _NoEvent()
    scope = None

    def __init__(self, head: RequestHead) -> None:
        self.head = head
        self.keep_alive = head.keep_alive
        self.response_complete = False
        self.disconnected = False


class HttpConnection(HttpToolsProtocol):
    """One connection, without its requests."""

    resumed: Callable[[], None] | None = None
    """Called when the transport is writable again."""
    is_lost = False
    """Was the connection lost?"""
    discard_input = False
    """Is all further input discarded?"""
    _is_surplus = False
    """Is it over the connection limit, so that only health checks are answered?"""
    _awaited = False
    """Is the head timeout running?"""
    _idle = False
    _bodiless = False
    """Is the head that was parsed last that of a HEAD request, whose response has no body?"""
    _begun = 0
    """Bytes of an incomplete head."""
    _held = 0
    """Unsent bytes that are counted for this client, while it does not read."""
    _unread = 0
    """Bytes the client had not read at the last check."""
    _last: Refusal | None = None
    """The refusal to send after the responses that are still pending."""
    _peer = ""
    _serving: tuple[RequestResponseCycle | Exchange, asyncio.Task[None]] | None = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.connection_limits = connection_limits_of(config, server_state)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._peer = peer_name(self.client)
        self._awaited = True
        if self.connection_limits.enter(self._peer):
            self.connection_limits.heads.begin(self)
        else:
            self._is_surplus = True
            self.connection_limits.keep_surplus(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.resumed, self.is_lost, self.discard_input = None, True, True
        limits = self.connection_limits
        if not self._is_surplus:
            limits.leave(self._peer)
        self._let_go()
        self.pipeline.clear()
        self._cancel()

    def _let_go(self) -> None:
        """End all timers, and count no unsent bytes: the connection has ended, or is a WebSocket now."""
        limits = self.connection_limits
        for timers in (limits.heads, limits.idle, limits.unread, limits.lingering, limits.surplus):
            timers.end(self)
        self._holds(0)

    def _cancel(self) -> None:
        """Cancel the request being served: nobody waits for its response."""
        if self._serving is not None:
            cycle, task = self._serving
            if not cycle.response_complete:
                cycle.disconnected = True  # uvicorn notifies only the last of several pipelined requests
                task.cancel()

    def lingering_close(self) -> None:
        """Close the write side and discard input for a while, so that the client can read the last response."""
        if self.transport.is_closing() or self in self.connection_limits.lingering:
            return
        self.discard_input = True
        self.flow.resume_reading()
        self.connection_limits.lingering.begin(self)
        if self.transport.can_write_eof():
            with suppress(OSError):
                self.transport.write_eof()
        else:
            self.transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if not self.is_lost:
            self.transport.abort()

    # called by ConnectionLimits

    def reject(self) -> None:
        if (
            self._serving is None
            and self not in self.connection_limits.lingering
            and len(self.connection_limits.lingering) < self.connection_limits.most // 4
        ):
            self._refuse(CROWDED)
        else:
            self.abort()

    def head_timed_out(self) -> None:
        self._awaited = False
        if self._begun:
            self._misread(_LATE)
        else:
            self.transport.close()

    def idle_timed_out(self) -> None:
        if not self.transport.get_write_buffer_size():
            self.transport.close()
            return
        self.connection_limits.idle.begin(self)
        if self not in self.connection_limits.unread:
            self._watch_reading()

    def check_write_stall(self) -> None:
        left = outstanding(self.transport)
        if self.transport.get_write_buffer_size() and left + _LEAST > self._unread:
            self.abort()
        else:
            self._unread = left
            self.connection_limits.unread.begin(self)

    def _watch_reading(self) -> None:
        self._unread = outstanding(self.transport)
        self.connection_limits.unread.begin(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.resumed is None:  # a stream has its own write-stall timeout
            self._watch_reading()
            self._holds(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():  # else it is checked until the last byte is read
            self.connection_limits.unread.end(self)
        self._holds(0)
        if self.resumed is not None:
            self.resumed()

    def release(self) -> None:
        self._holds(0)

    def _holds(self, unsent: int) -> None:
        """Set the number of unsent bytes counted for this client; over the limit of all clients, the oldest is
        aborted."""
        self.connection_limits.unsent += unsent - self._held
        self._held = unsent
        if unsent:
            self.connection_limits.limit_unsent()

    def _rest(self) -> None:
        """Start the idle timeout."""
        self._idle = True
        self.connection_limits.idle.begin(self)

    def _end_idle(self) -> None:
        if self._idle:
            self._idle = False
            self.connection_limits.idle.end(self)

    # refusals

    def _misread(self, refusal: Refusal) -> None:
        """Refuse malformed input, after all pending responses, and close."""
        if self.discard_input and self._last is None:
            return
        cycle, self.discard_input = self.cycle, True
        if cycle is not None and cycle.more_body and cycle.scope is self.scope:  # the body of this request is malformed
            if self.pipeline:
                self.pipeline.popleft()
            elif cycle.response_started:
                self.lingering_close() if cycle.response_complete else self.abort()
                return
            else:
                self._cancel()
                self._refuse(refusal)
                return
        if self._is_serving:
            self._last = refusal
        else:
            self._refuse(refusal)

    def _refuse(self, refusal: Refusal) -> None:
        """Write the last response of this connection, and close it."""
        self._last = None
        if self.transport.is_closing():
            return
        reply = problem(refusal)
        head = encoded_head(reply, self.server_state.default_headers, keep_alive=False) or b""
        self.transport.write(head if self._bodiless else head + reply.body)
        self.lingering_close()

    @property
    def _is_serving(self) -> bool:
        """Is a response pending?"""
        return self._serving is not None and not self._serving[0].response_complete
