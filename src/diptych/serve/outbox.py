"""What waits to be sent on one connection, and how long it may wait.

    changes → tell → wire            while the client reads
    changes → tell → queue → wire    while it does not, up to `buffer` bytes; after `timeout` seconds without any
                                     progress it is cut off, with the cursor of what was handed over

An Outbox is the base of both kinds of streams. Whatever is told goes to the wire at once, or else into the queue; so
one that is empty costs nothing, and there is no task that waits for it. Who fills it asks first whether there is room;
one who does not ask is stopped by the limit. `Streams` is what all streams of a process share: the limits, and one
timer that looks after those that have something to send.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

Parts = tuple[bytes, ...]
_OVERHEAD = 128
"""Bytes that an entry of the queue takes, besides those of its message."""
_TICKS = 8
_GRACE = 5.0
_LARGE = 65_536
"""A message of so many bytes is counted at once, and smaller ones when they are looked at."""
_UNSENT = 268_435_456
"""Bytes that may wait for readers of streams, all together."""
_HELD = 67_108_864
"""Bytes of operations that may wait for an answer, all together."""


class Marked(Protocol):
    """Whatever knows the cursor up to which it was told."""

    cursor: str


class Wire(Protocol):
    """A connection, as far as a stream is concerned. It calls `Outbox.flush` when it is free again."""

    def is_free(self) -> bool:
        """Does it take more now?"""
        ...

    def write(self, parts: Parts) -> None:
        """Take one whole message."""
        ...

    def sent(self) -> int:
        """How much has left: a number that grows while the client reads."""
        ...

    def unsent(self) -> int:
        """How much was taken and has not left."""
        ...

    def left(self) -> int:
        """How much of it is still held, also when the connection is about to end."""
        ...

    def abort(self) -> None:
        """End the connection, whatever is still to be sent."""
        ...


class Outbox:
    """One end of a stream."""

    __slots__ = (
        "_expected", "_queue", "_seen", "_since", "_size", "_waiting", "counted", "is_over", "streams", "wire",
    )  # fmt: skip

    def __init__(self, streams: Streams | None = None) -> None:
        self.streams = streams or BEFORE
        self.wire: Wire | None = None
        self.is_over = False
        self._queue: deque[tuple[Parts, Marked | None, str]] | None = None
        self._size = 0
        self._expected = 0
        """Bytes of results that wait for room."""
        self.counted = 0
        """Bytes that wait for its reader, when they were counted last."""
        self._waiting: list[asyncio.Future[None]] | None = None
        self._seen = -1
        self._since = 0.0

    def tell(self, parts: Parts, mark: Marked | None = None, cursor: str = "") -> None:
        """Send a message; `mark` learns of its cursor when it is handed to the wire."""
        if self.is_over:
            return
        wire, size = self.wire, sum(map(len, parts))
        if wire is not None and self._queue is None and wire.is_free():
            wire.write(parts)
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
        """Is there anything that the wire does not take yet?"""
        return self._queue is not None

    def flush(self) -> None:
        """The wire is free: give it what has waited."""
        queue, wire = self._queue, self.wire
        if queue is None or wire is None or self.is_over:
            return
        while queue and wire.is_free():
            parts, mark, cursor = queue.popleft()
            self._size -= sum(map(len, parts)) + _OVERHEAD
            wire.write(parts)
            if mark is not None:
                mark.cursor = cursor
        if not queue:
            self._queue = None
        if self._size * 2 < self.streams.buffer:
            self._let_in()

    def has_room(self) -> bool:
        """Is less than half of the queue used? For one that is over, there is nothing to wait for."""
        return self.is_over or self._size * 2 < self.streams.buffer

    async def room(self) -> None:
        """Wait until it is so."""
        while not self.has_room():
            waiting = asyncio.get_running_loop().create_future()
            if self._waiting is None:
                self._waiting = []
            self._waiting.append(waiting)
            await waiting

    async def room_for(self, size: int) -> None:
        """Wait for room with a result of this size, which counts as one that the client has not read."""
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
        """Count what waits for this reader; where too much waits for all of them, some are cut off."""
        if self.streams is BEFORE:
            return
        unsent = (0 if self.is_over else self._size + self._expected) + (0 if self.wire is None else self.wire.left())
        self.streams.unsent += unsent - self.counted
        self.counted = unsent
        if self.streams.unsent > self.streams.most_unsent:
            self.streams.relieve()

    def cut(self) -> None:
        """End the stream at once; what its reader has not taken is dropped."""
        self.overrun()
        wire, self.wire = self.wire, None
        self.count()
        if wire is not None:
            wire.abort()

    def overrun(self) -> None:
        """The client reads too slowly: end the stream with its cursor."""
        raise NotImplementedError

    def shut(self) -> None:
        """Tell nothing more, and forget what was not told."""
        self.is_over = True
        self._queue = None
        self._size = 0
        self._let_in()
        self.streams.unwatch(self)
        self.streams.ends(self)

    def look(self, now: float) -> bool:
        """Has it still something to send? If that was so for too long without progress, it is cut off."""
        wire = self.wire
        self.count()
        if self.is_over:
            return False
        if self._queue is None and (wire is None or not wire.unsent()):
            self._seen = -1
            return False
        sent = wire.sent() if wire is not None else 0
        if sent != self._seen:
            self._seen, self._since = sent, now
        elif now - self._since >= self.streams.timeout:
            self.overrun()
        return not self.is_over

    def _let_in(self) -> None:
        waiting, self._waiting = self._waiting, None
        for each in waiting or ():
            if not each.done():
                each.set_result(None)


class Member(Protocol):
    """A connection that may have nothing to send, and is looked after all the same."""

    def attend(self, now: float) -> None: ...

    def leave(self) -> None: ...


class Streams:
    """All streams of a process: what they may use, and a timer for those that have something to send."""

    def __init__(self, *, buffer: int = 262_144, timeout: float = 10.0, heartbeat: float = 15.0) -> None:
        self.buffer = buffer
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.grace = min(timeout, _GRACE)
        """Seconds in which a stream that was told its end must have taken it."""
        self.members: set[Member] = set()
        self.is_closing = False
        self.unsent = 0
        """Bytes that wait for readers."""
        self.most_unsent = _UNSENT
        self.held = 0
        """Bytes of operations that are not answered yet."""
        self.most_held = _HELD
        self._unsent: dict[Outbox, None] = {}
        self._ending: dict[Outbox, None] = {}
        """Streams that are over, and whose last bytes are not sent yet."""
        self._relieves = False
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, member: Member) -> None:
        self.members.add(member)
        self._start()

    def exit(self, member: Member) -> None:
        self.members.discard(member)

    def watch(self, box: Outbox) -> None:
        """Look at it until all is sent."""
        if self is BEFORE:
            return
        self._unsent[box] = None
        if self._timer is None:
            self._start()

    def relieve(self) -> None:
        """Cut off the readers for whom most waits, until what waits is within its bound."""
        if self._relieves:  # ending a stream counts it once more
            return
        self._relieves = True
        try:
            self._cut_largest()
        finally:
            self._relieves = False

    def _cut_largest(self) -> None:
        while self.unsent > self.most_unsent:
            most = max((*self._unsent, *self._ending), key=lambda box: box.counted, default=None)
            if most is None or not most.counted:
                return
            self._ending.pop(most, None)
            most.cut()

    def ends(self, box: Outbox) -> None:
        """Count what is left of a stream that is over until it is sent or dropped."""
        box.count()
        if box.counted and self is not BEFORE:
            self._ending[box] = None
            self._start()

    def unwatch(self, box: Outbox) -> None:
        self._unsent.pop(box, None)

    def close(self) -> None:
        """The server goes away."""
        self.is_closing = True
        for member in tuple(self.members):
            member.leave()

    def stop(self) -> None:
        """Look after nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        if self._timer is None:
            pause = min(self.timeout, self.heartbeat) / _TICKS
            self._timer = asyncio.get_running_loop().call_later(pause, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for box in tuple(self._unsent):
            if box.is_over or not box.look(now):
                self.unwatch(box)
        for box in tuple(self._ending):
            box.count()
            if not box.counted:
                self._ending.pop(box, None)
        for member in tuple(self.members):
            member.attend(now)
        if self._unsent or self._ending or self.members:
            self._start()


BEFORE = Streams()
"""What holds for a stream whose head is not sent yet; nobody looks after it so long."""
