"""Send queues with backpressure: what waits to be sent on one connection, and for how long it may wait.

    changes → send → transport            while the client reads
    changes → send → queue → transport    while it does not, up to `buffer` bytes; after `timeout` seconds without
                                          progress the stream ends, with the cursor of the last message written

`SendQueue` is the base of both kinds of streams. A message is written to the transport at once, or else queued, so an
idle stream has no queue and no task. Producers wait for `room`; one that does not is stopped by the limit of the queue.
`StreamLimits` holds what all streams of a process share: the limits, and one timer that checks streams with unsent
data.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from diptych.fair.expiring import Ticker

Parts = tuple[bytes, ...]
_OVERHEAD = 128
"""Bytes of a queue entry besides its message."""
_TICKS = 8
_GRACE = 5.0
_LARGE = 65_536
"""Messages of at least this many bytes are counted at once, smaller ones at the next tick."""
_UNSENT = 268_435_456
"""Unsent bytes of all streams together."""
_HELD = 67_108_864
"""Bytes of pending operations of all sockets together."""


class Marked(Protocol):
    """Holds the cursor of the last message that was written to the transport."""

    cursor: str


class Transport(Protocol):
    """The connection under a stream. It calls `SendQueue.flush` when it is writable again."""

    def is_free(self) -> bool:
        """Can the transport be written to without waiting?"""
        ...

    def write(self, parts: Parts) -> None:
        """Write one whole message."""
        ...

    def sent(self) -> int:
        """Progress: a number that grows while the client reads."""
        ...

    def unsent(self) -> int:
        """Bytes (or messages) that were written and not sent yet."""
        ...

    def left(self) -> int:
        """Unsent bytes in memory, also while the connection closes."""
        ...

    def abort(self) -> None:
        """Close the connection at once, and drop unsent data."""
        ...


class SendQueue:
    """The queue of one stream; without a queue, messages go straight to the transport."""

    __slots__ = (
        "_expected",
        "_queue",
        "_seen",
        "_since",
        "_size",
        "_waiting",
        "counted",
        "is_over",
        "streams",
        "transport",
    )

    def __init__(self, streams: StreamLimits | None = None) -> None:
        self.streams = streams or DETACHED
        self.transport: Transport | None = None
        self.is_over = False
        self._queue: deque[tuple[Parts, Marked | None, str]] | None = None
        self._size = 0
        self._expected = 0
        """Bytes of results whose producers wait for room."""
        self.counted = 0
        """Unsent bytes at the last count."""
        self._waiting: list[asyncio.Future[None]] | None = None
        self._seen = -1
        self._since = 0.0

    def send(self, parts: Parts, mark: Marked | None = None, cursor: str = "") -> None:
        """Send a message; `mark.cursor` is set when it is written to the transport."""
        if self.is_over:
            return
        transport, size = self.transport, sum(map(len, parts))
        if transport is not None and self._queue is None and transport.is_free():
            transport.write(parts)
            if mark is not None:
                mark.cursor = cursor
        elif self._size >= self.streams.buffer:
            self.overrun()
            return
        else:
            if self._queue is None:
                self._queue = deque()
            self._queue.append((parts, mark, cursor))
            self._size += size + _OVERHEAD
        self.streams.watch(self)
        if size >= _LARGE:
            self.count()

    @property
    def is_behind(self) -> bool:
        """Are messages queued?"""
        return self._queue is not None

    def flush(self) -> None:
        """Write queued messages while the transport is writable."""
        queue, transport = self._queue, self.transport
        if queue is None or transport is None or self.is_over:
            return
        while queue and transport.is_free():
            parts, mark, cursor = queue.popleft()
            self._size -= sum(map(len, parts)) + _OVERHEAD
            transport.write(parts)
            if mark is not None:
                mark.cursor = cursor
        if not queue:
            self._queue = None
        if self._size * 2 < self.streams.buffer:
            self._wake()

    def has_room(self) -> bool:
        """Is less than half of the queue used, or the stream over?"""
        return self.is_over or self._size * 2 < self.streams.buffer

    async def room(self) -> None:
        """Wait until `has_room`."""
        while not self.has_room():
            waiting = asyncio.get_running_loop().create_future()
            if self._waiting is None:
                self._waiting = []
            self._waiting.append(waiting)
            await waiting

    async def room_for(self, size: int) -> None:
        """Wait for room for a result of this size, which is counted as unsent meanwhile."""
        if self.has_room():
            return
        self._expected += size
        self.count()
        try:
            await self.room()
        finally:
            self._expected -= size
            self.count()

    def count(self) -> None:
        """Count the unsent bytes of this stream, and enforce the limit of all streams."""
        if self.streams is DETACHED:
            return
        unsent = (0 if self.is_over else self._size + self._expected) + (
            0 if self.transport is None else self.transport.left()
        )
        self.streams.unsent += unsent - self.counted
        self.counted = unsent
        if self.streams.unsent > self.streams.most_unsent:
            self.streams.enforce_unsent_limit()

    def abort(self) -> None:
        """End the stream at once, and drop unsent data."""
        self.overrun()
        transport, self.transport = self.transport, None
        self.count()
        if transport is not None:
            transport.abort()

    def overrun(self) -> None:
        """End the stream, with its cursor, because the client reads too slowly."""
        raise NotImplementedError

    def discard(self) -> None:
        """Mark the stream as over, and drop its queue."""
        self.is_over = True
        self._queue = None
        self._size = 0
        self._wake()
        self.streams.unwatch(self)
        self.streams.linger(self)

    def check_progress(self, now: float) -> bool:
        """Is unsent data left? Without progress for `timeout` seconds, the stream is ended."""
        transport = self.transport
        self.count()
        if self.is_over:
            return False
        if self._queue is None and (transport is None or not transport.unsent()):
            self._seen = -1
            return False
        sent = transport.sent() if transport is not None else 0
        if sent != self._seen:
            self._seen, self._since = sent, now
        elif now - self._since >= self.streams.timeout:
            self.overrun()
        return not self.is_over

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        for future in waiting or ():
            if not future.done():
                future.set_result(None)


class TickedConnection(Protocol):
    """A connection that is checked at every tick, with unsent data or not: a WebSocket."""

    def keep_alive(self, now: float) -> None: ...

    def restart(self) -> None: ...


class StreamLimits(Ticker):
    """The limits of all streams of a process, and the timer that checks streams with unsent data."""

    def __init__(self, *, buffer: int = 262_144, timeout: float = 10.0, heartbeat: float = 15.0) -> None:
        super().__init__(min(timeout, heartbeat) / _TICKS)
        self.buffer = buffer
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.grace = min(timeout, _GRACE)
        """Seconds between the end of a stream and the abort of its connection."""
        self.members: set[TickedConnection] = set()
        self.is_closing = False
        self.unsent = 0
        """Unsent bytes of all streams."""
        self.most_unsent = _UNSENT
        self.held = 0
        """Bytes of pending operations."""
        self.most_held = _HELD
        self._unsent: dict[SendQueue, None] = {}
        self._ending: dict[SendQueue, None] = {}
        """Streams that are over, with data that is not sent yet."""
        self._enforcing = False

    def enter(self, member: TickedConnection) -> None:
        self.members.add(member)
        self.start()

    def exit(self, member: TickedConnection) -> None:
        self.members.discard(member)

    def watch(self, queue: SendQueue) -> None:
        """Check this stream until all its data is sent."""
        if self is DETACHED:
            return
        self._unsent[queue] = None
        if self._timer is None:
            self.start()

    def enforce_unsent_limit(self) -> None:
        """Abort the streams with the most unsent bytes until the total is within its limit."""
        if self._enforcing:  # ending a stream counts it again
            return
        self._enforcing = True
        try:
            self._abort_largest()
        finally:
            self._enforcing = False

    def _abort_largest(self) -> None:
        while self.unsent > self.most_unsent:
            most = max((*self._unsent, *self._ending), key=lambda queue: queue.counted, default=None)
            if most is None or not most.counted:
                return
            self._ending.pop(most, None)
            most.abort()

    def linger(self, queue: SendQueue) -> None:
        """Count the unsent bytes of a stream that is over until they are sent or dropped."""
        queue.count()
        if queue.counted and self is not DETACHED:
            self._ending[queue] = None
            self.start()

    def unwatch(self, queue: SendQueue) -> None:
        self._unsent.pop(queue, None)

    def close(self) -> None:
        """Close all sockets: the server is shutting down."""
        self.is_closing = True
        for member in tuple(self.members):
            member.restart()

    def tick(self) -> bool:
        now = asyncio.get_running_loop().time()
        for queue in tuple(self._unsent):
            if queue.is_over or not queue.check_progress(now):
                self.unwatch(queue)
        for queue in tuple(self._ending):
            queue.count()
            if not queue.counted:
                self._ending.pop(queue, None)
        for member in tuple(self.members):
            member.keep_alive(now)
        return bool(self._unsent or self._ending or self.members)


DETACHED = StreamLimits()
"""Default limits for a stream whose response head is not sent yet; it is not watched."""
