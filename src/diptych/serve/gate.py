"""What all connections of one server process share: how many there may be, and how long each may keep us waiting.

    a connection → a head, in `head_timeout` → a request, in its time → an answer, while it is read → idle, or the end

A connection waits for a head from its beginning, or from the first byte of the next one. Between two requests it is
idle. One whose client does not read what it was answered is cut when too little of that goes out, or when all of them
together hold too much. One that was told the last word is leaving: what still comes is dropped, so that the client can
read the word, and then it is cut. A WebSocket that is over is closing: its peer has a few seconds to take its end.

Where there are as many as there may be, the one that has been idle longest makes room, or else the one that has kept
us waiting for a head; one peer alone has no more than three quarters of them. Whoever comes beyond that is surplus: a
few such are kept for as long as a request takes to arrive, and are answered if it asks for the health of the service.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import termios
from contextlib import suppress
from typing import Any, Protocol

from diptych.serve.frames import FrameTurns
from diptych.serve.patience import Patience

IDLE = 5.0
"""Seconds for which a connection may be idle between two requests."""
LEAVING = 2.0
CLOSING = 5.0
"""Seconds in which the peer of a WebSocket that is over must have taken its end."""
SURPLUS = 64
"""Connections beyond the limit that are kept until it is known what they ask for."""
HEALTH = frozenset((b"/health/live", b"/health/ready"))
"""Paths that are answered however many connections there are."""
_FILES = 256
"""Files that a process may have open besides its connections."""
_BODIES = 67_108_864
"""Bytes of bodies that have not arrived completely, of all requests together."""


_UNSENT = 268_435_456
"""Bytes of answers that may wait for clients who have stopped reading, all together."""


class Connection(Protocol):
    """A connection, as far as the gate is concerned."""

    def __hash__(self) -> int: ...

    def too_late(self) -> None:
        """Its head has not come in time."""
        ...

    def idle_over(self) -> None:
        """Nothing more was asked."""
        ...

    def look_unread(self) -> None:
        """Is its answer being read? It may have been cut after this."""
        ...

    def cut(self) -> None:
        """End it at once."""
        ...

    def release(self) -> None:
        """It no longer counts what waits for its client."""
        ...

    def turn_away(self) -> None:
        """There is no place for it."""
        ...


class Socket(Protocol):
    """A WebSocket, as far as the gate is concerned."""

    def __hash__(self) -> int: ...

    def cut(self) -> None:
        """End it at once."""
        ...


class Gate:
    """The limits of one process, with a timer for each kind of waiting."""

    def __init__(
        self, connections: int = 25_000, head: float = 10.0, unread: float = 10.0, bodies: int = _BODIES,
        unsent: int = _UNSENT,
    ) -> None:  # fmt: skip
        self.most = max(1, min(connections, _files() - _FILES))
        self.heads: Patience[Connection] = Patience(head, lambda each: each.too_late())
        self.idle: Patience[Connection] = Patience(IDLE, lambda each: each.idle_over())
        self.unread: Patience[Connection] = Patience(unread, lambda each: each.look_unread())
        self.leaving: Patience[Connection] = Patience(LEAVING, lambda each: each.cut())
        self.closing: Patience[Socket] = Patience(CLOSING, lambda each: each.cut())
        self.surplus: Patience[Connection] = Patience(LEAVING, lambda each: each.turn_away())
        self.frames = FrameTurns(self.most)
        """Whose frames are parsed next."""
        self.health = HEALTH
        """The paths of health checks, as they are sent."""
        self.most_unsent = unsent
        self.unsent = 0
        """Bytes of answers that wait now."""
        self.bodies = bodies
        self.held = 0
        """Bytes of bodies that are held now."""
        self._by_peer: dict[str, int] = {}
        self.count = 0

    def enter(self, peer: str) -> bool:
        """Let a connection in, unless there are too many; `leave` must be called for each that was let in."""
        own = self._by_peer.get(peer, 0)
        if own >= max(1, self.most * 3 // 4) or (self.count >= self.most and not self._make_room()):
            return False
        self.count += 1
        self._by_peer[peer] = own + 1
        return True

    def keep_surplus(self, connection: Connection) -> None:
        """Keep a connection that was not let in until it is known what it asks for; the oldest such makes room."""
        if len(self.surplus) >= SURPLUS and (oldest := self.surplus.first()) is not None:
            self.surplus.end(oldest)
            oldest.turn_away()
        self.surplus.begin(connection)

    def leave(self, peer: str) -> None:
        """A connection has ended."""
        self.count -= 1
        left = self._by_peer[peer] - 1
        if left:
            self._by_peer[peer] = left
        else:
            del self._by_peer[peer]

    def limit_unsent(self) -> None:
        """Where too much waits for clients who do not read, the one that has not read for longest is cut. This is
        called for each that comes, so one at a time is enough."""
        oldest = self.unread.first() if self.unsent > self.most_unsent else None
        if oldest is not None:
            self.unread.end(oldest)
            oldest.release()
            oldest.cut()

    def stop(self) -> None:
        for each in (self.heads, self.idle, self.unread, self.leaving, self.surplus):
            each.stop()
        self.closing.stop()
        self.frames.stop()

    def _make_room(self) -> bool:
        for waiting in (self.idle, self.heads):
            oldest = waiting.oldest()
            if oldest is not None:
                waiting.end(oldest)
                oldest.cut()
                return True
        return False


def _files() -> int:
    """How many files this process may have open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if most != resource.RLIM_INFINITY else 1 << 30


def gate_of(config: Any, state: Any) -> Gate:
    """The gate of a server process of uvicorn: that of its application, or else one with the usual limits."""
    found: Gate | None = getattr(state, "gate", None)
    if found is None:
        app: Any = config.loaded_app
        while app is not None and not isinstance(getattr(app, "gate", None), Gate):  # behind what uvicorn puts there
            app = getattr(app, "app", None)
        found = Gate() if app is None else app.gate
        state.gate = found
    assert isinstance(found, Gate)
    return found


def outstanding(transport: asyncio.Transport) -> int:
    """Bytes that a client has not taken, those that the system holds for it included."""
    found = transport.get_extra_info("socket")
    held = bytearray(4)
    with suppress(OSError, AttributeError, ValueError):
        fcntl.ioctl(found.fileno(), termios.TIOCOUTQ, held)
    return transport.get_write_buffer_size() + int.from_bytes(held, "little")
