"""Connection limits and timeouts of one server process.

    connected → head (head timeout) → request (request timeout) → response (write-stall timeout) → idle or closed

The head timeout runs from the start of a connection, or from the first byte of the next head. Between two requests the
idle timeout runs. A connection whose client does not read its response is aborted when too few bytes go out, or when
all such connections together hold too much. After its last response a connection lingers: input is discarded for a
moment, so that the client can read the response, and then it is aborted. A WebSocket that the application has closed is
closing: its peer has a few seconds to complete the closing handshake.

At the limit, the connection that has been idle longest is aborted to make room, or else the one that has waited longest
for a head; one peer may hold at most three quarters of all connections. Connections over the limit are surplus: a few
are kept until their request has arrived, and are answered if it is a health check.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import termios
from contextlib import suppress
from typing import Any, Protocol

from diptych.fair.expiring import ExpiringSet
from diptych.fair.loop_lag import LoopLag
from diptych.serve.http.frame_scheduler import FrameScheduler
from diptych.serve.http.known_heads import KnownHeads

LINGERING = 2.0
"""Seconds for which input is discarded after the last response, so that the client can read it."""
CLOSING = 5.0
"""Seconds in which the peer of a WebSocket must complete the closing handshake."""
SURPLUS = 64
"""Connections over the limit that are kept until their request has arrived."""
HEALTH = frozenset((b"/health/live", b"/health/ready"))
"""Paths that are answered over the connection limit, too."""
_FILES = 256
"""File descriptors that are reserved for other things than connections."""
_BODIES = 67_108_864
"""Bytes of incomplete request bodies, of all requests together."""
_UNSENT = 268_435_456
"""Bytes of unsent responses to clients that do not read, of all connections together."""


class LimitedConnection(Protocol):
    """What the limits call on an HTTP connection."""

    def __hash__(self) -> int: ...

    def head_timed_out(self) -> None:
        """The head timeout has passed."""

    def idle_timed_out(self) -> None:
        """The idle timeout has passed."""

    def check_write_stall(self) -> None:
        """Abort the connection if its client has read too little since the last check."""

    def abort(self) -> None:
        """End it at once."""

    def release(self) -> None:
        """Stop counting the unsent bytes of this connection."""

    def reject(self) -> None:
        """Refuse the connection: it is over the limit."""


class LimitedSocket(Protocol):
    """What the limits call on a WebSocket."""

    def __hash__(self) -> int: ...

    def abort(self) -> None:
        """End it at once."""


class ConnectionLimits:
    """The limits of one process, and its timers: one set for each timeout."""

    def __init__(
        self,
        connections: int = 25_000,
        head: float = 10.0,
        unread: float = 10.0,
        idle: float = 5.0,
        bodies: int = _BODIES,
        unsent: int = _UNSENT,
    ) -> None:
        self.most = max(1, min(connections, _files() - _FILES))
        self.heads: ExpiringSet[LimitedConnection] = ExpiringSet(head, lambda connection: connection.head_timed_out())
        self.idle: ExpiringSet[LimitedConnection] = ExpiringSet(idle, lambda connection: connection.idle_timed_out())
        self.unread: ExpiringSet[LimitedConnection] = ExpiringSet(
            unread, lambda connection: connection.check_write_stall()
        )
        self.lingering: ExpiringSet[LimitedConnection] = ExpiringSet(LINGERING, lambda connection: connection.abort())
        self.closing: ExpiringSet[LimitedSocket] = ExpiringSet(CLOSING, lambda connection: connection.abort())
        self.surplus: ExpiringSet[LimitedConnection] = ExpiringSet(LINGERING, lambda connection: connection.reject())
        self.frames = FrameScheduler(self.most)
        """Which WebSocket parses its frames next."""
        self.lag = LoopLag()
        """How long requests wait for the event loop."""
        self.known_heads = KnownHeads()
        self.health = HEALTH
        """The paths of health checks, undecoded."""
        self.most_unsent = unsent
        self.unsent = 0
        """Bytes of unsent responses now."""
        self.bodies = bodies
        self.held = 0
        """Bytes of incomplete bodies now."""
        self.is_draining = False
        """Does the service shut down? Then a connection is closed after its next response."""
        self._by_peer: dict[str, int] = {}
        self.count = 0

    def enter(self, peer: str) -> bool:
        """Admit a connection, unless the limit is reached; call `leave` for every admitted one."""
        own = self._by_peer.get(peer, 0)
        if own >= max(1, self.most * 3 // 4) or (self.count >= self.most and not self._make_room()):
            return False
        self.count += 1
        self._by_peer[peer] = own + 1
        return True

    def keep_surplus(self, connection: LimitedConnection) -> None:
        """Keep a connection over the limit until its request has arrived; the oldest of too many is rejected."""
        if len(self.surplus) >= SURPLUS and (oldest := self.surplus.first()) is not None:
            self.surplus.end(oldest)
            oldest.reject()
        self.surplus.begin(connection)

    def leave(self, peer: str) -> None:
        """Note that an admitted connection has ended."""
        self.count -= 1
        left = self._by_peer[peer] - 1
        if left:
            self._by_peer[peer] = left
        else:
            del self._by_peer[peer]

    def limit_unsent(self) -> None:
        """Abort the connection that has not been read for longest, if unsent bytes exceed the limit.

        This is called for every one that is added, so one at a time is enough.
        """
        oldest = self.unread.first() if self.unsent > self.most_unsent else None
        if oldest is not None:
            self.unread.end(oldest)
            oldest.release()
            oldest.abort()

    def stop(self) -> None:
        """Cancel all timers."""
        for timers in (self.heads, self.idle, self.unread, self.lingering, self.surplus):
            timers.stop()
        self.closing.stop()
        self.frames.stop()

    def _make_room(self) -> bool:
        for waiting in (self.idle, self.heads):
            oldest = waiting.oldest()
            if oldest is not None:
                waiting.end(oldest)
                oldest.abort()
                return True
        return False


def _files() -> int:
    """The most file descriptors this process may have open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if most != resource.RLIM_INFINITY else 1 << 30


def connection_limits_of(config: Any, state: Any) -> ConnectionLimits:
    """The limits of a uvicorn server process: those of its application, or else the defaults."""
    limits: ConnectionLimits | None = getattr(state, "connection_limits", None)
    if limits is None:
        app: Any = config.loaded_app
        while app is not None and not isinstance(getattr(app, "connection_limits", None), ConnectionLimits):
            app = getattr(app, "app", None)  # unwrap the middleware of uvicorn
        limits = ConnectionLimits() if app is None else app.connection_limits
        state.connection_limits = limits
    assert isinstance(limits, ConnectionLimits)
    return limits


def outstanding(transport: asyncio.Transport) -> int:
    """Bytes that a client has not read, with those in the send buffer of the system."""
    socket = transport.get_extra_info("socket")
    queued = bytearray(4)
    with suppress(OSError, AttributeError, ValueError):
        fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, queued)
    return transport.get_write_buffer_size() + int.from_bytes(queued, "little")
