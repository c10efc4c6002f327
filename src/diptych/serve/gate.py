"""What all connections of one server process share: how many there may be, and how long each may keep us waiting.

    a connection → a head, in `head_timeout` → a request, in its time → an answer, while it is read → idle, or the end

A connection waits for a head from its beginning, or from the first byte of the next one. Between two requests it is
idle. One whose client does not read what it was answered is cut when too little of that goes out, or when all of them
together hold too much. One that was told the last word is leaving: what still comes is dropped, so that the client can
read the word, and then it is cut. Where there are as many as there may be, the one that has been idle longest makes
room, or else the one that has kept us waiting for a head; one peer alone has no more than three quarters of them.
"""

from __future__ import annotations

import resource
from typing import Protocol

from diptych.serve.patience import Patience

IDLE = 5.0
"""Seconds for which a connection may be idle between two requests."""
LEAVING = 2.0
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
        self.most_unsent = unsent
        self.unsent = 0
        """Bytes of answers that wait now."""
        self.bodies = bodies
        self.held = 0
        """Bytes of bodies that are held now."""
        self._by_peer: dict[str, int] = {}
        self.count = 0

    def enter(self, peer: str) -> bool:
        """Let a connection in, unless there are too many; `leave` must be called for it in any case."""
        self.count += 1
        own = self._by_peer[peer] = self._by_peer.get(peer, 0) + 1
        if own > max(1, self.most * 3 // 4):
            return False
        return self.count <= self.most or self._make_room()

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
        for each in (self.heads, self.idle, self.unread, self.leaving):
            each.stop()

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
