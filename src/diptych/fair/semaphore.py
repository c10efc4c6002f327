"""A fair semaphore: a quarter of the permits is reserved for callers that hold none.

A permit is a connection to PostgreSQL, or a thread that reads SQLite. A caller that finds none waits in a fair
queue, with a timeout. The service itself, "", waits for no one else.

    semaphore.acquire_nowait(caller) or await semaphore.acquire(caller)
    try: …
    finally: semaphore.release(caller, since)

Statements that run long take processors from everyone, wherever the database runs, so permits alone are not fair. What
a permit is held for beyond a moment is spent from a token bucket of its caller. A caller whose bucket is empty has
one permit at a time, and all such callers together have a quarter.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from diptych.errors import Code, Refusal
from diptych.fair.expiring import ExpiringSet
from diptych.fair.queue import FairQueue
from diptych.fair.token_bucket import TokenBuckets

Waiter = asyncio.Future[None]
WAITED: ContextVar[float] = ContextVar("waited", default=0.0)
"""Seconds that the current task has waited for permits, to be left out when its work is measured."""
_MOMENT = 0.05
"""Seconds for which a permit is held at no charge."""
_BURST = 2.0
"""Seconds by which a caller may hold permits longer than that, before it has one at a time."""


class FairSemaphore:
    """A number of permits, and the queue for them. Of one event loop."""

    __slots__ = (
        "_closed",
        "_free",
        "_held",
        "_is_metered",
        "_queue",
        "_reserved",
        "_slow",
        "_waiters",
        "size",
    )

    def __init__(self, size: int, waiting: int, wait: float, slow_share: float = 0.25) -> None:
        self.size = size
        self._free = size
        self._reserved = max(1, size // 4) if size > 1 else 0
        self._held: dict[str, int] = {}
        self._slow = TokenBuckets("database time of callers", slow_share, _BURST, 1_000)
        self._is_metered = False
        """May a bucket be less than full?"""
        self._queue: FairQueue[Waiter] = FairQueue(waiting)
        self._waiters: ExpiringSet[tuple[str, Waiter]] = ExpiringSet(wait, self._time_out, ticks=20)
        self._closed = False

    @property
    def free(self) -> int:
        """Permits that nobody holds."""
        return self._free

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return self._queue.count

    def acquire_nowait(self, caller: str) -> bool:
        """Take a permit if there is one for this caller now."""
        held = self._held.get(caller, 0)
        if self._free <= (self._reserved if held and caller else 0) or (
            self._is_metered and self._must_wait(caller, held)
        ):
            return False
        self._held[caller] = held + 1
        self._free -= 1
        return True

    async def acquire(self, caller: str) -> None:
        """Wait for a permit; a Refusal if the queue is full, or after the timeout."""
        if self._closed:
            raise _closed()
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        entry = caller, waiter
        self._queue.put(caller, waiter)
        self._waiters.begin(entry)
        begun = loop.time()
        try:
            await waiter
        except asyncio.CancelledError:
            if not self._queue.remove(caller, waiter) and not waiter.cancelled() and waiter.exception() is None:
                self.release(caller)  # the permit came together with the cancellation: pass it on
            raise
        finally:
            self._waiters.end(entry)
            WAITED.set(WAITED.get() + loop.time() - begun)

    def release(self, caller: str, since: float = 0.0) -> None:
        """Hand a permit, held since a moment of the loop's clock, to the next waiter."""
        if since and caller:
            slow = asyncio.get_running_loop().time() - since - _MOMENT
            if slow > 0:
                self._slow.spend(caller, slow)
                self._is_metered = True
        queue, held = self._queue, self._held
        if queue.count and self._hand_on(caller):
            return
        left = held[caller] - 1
        if left:
            held[caller] = left
        else:
            del held[caller]
        self._free += 1
        if queue.count:
            self._wake_next()

    def _hand_on(self, caller: str) -> bool:
        """Give a permit of a caller to its next waiter, without releasing it, if no other caller waits."""
        if self._is_metered and self._must_wait(caller, self._held[caller] - 1):
            return False
        while (waiter := self._queue.pop_own(caller)) is not None:
            if not waiter.done():
                waiter.set_result(None)
                return True
        return False

    def close(self) -> None:
        """Refuse all waiters, and all that come."""
        self._closed = True
        self._waiters.stop()
        while (entry := self._queue.pop()) is not None:
            if not entry[1].done():
                entry[1].set_exception(_closed())

    def refuse_waiters(self, message: str) -> None:
        """Refuse all that wait now; others may come."""
        while (entry := self._queue.pop()) is not None:
            if not entry[1].done():
                entry[1].set_exception(Refusal(Code.UNAVAILABLE, message))

    def _wake_next(self) -> None:
        while self._free and (entry := self._queue.pop(self._may_acquire)) is not None:
            caller, waiter = entry
            if not waiter.done():
                self.acquire_nowait(caller)
                waiter.set_result(None)

    def _may_acquire(self, caller: str, _: Waiter) -> bool:
        held = self._held.get(caller, 0)
        if self._free <= (self._reserved if caller and held else 0):
            return False
        return not (self._is_metered and self._must_wait(caller, held))

    def _must_wait(self, caller: str, held: int) -> bool:
        """Is the bucket of a caller empty, and has it a permit, or have all such callers their quarter?"""
        if not self._slow.in_use:
            self._is_metered = False
            return False
        if not caller or self._slow.has_tokens(caller):
            return False
        slow = sum(permits for other, permits in self._held.items() if not self._slow.has_tokens(other))
        return held > 0 or slow >= max(1, self._reserved)

    def _time_out(self, entry: tuple[str, Waiter]) -> None:
        if self._queue.remove(*entry) and not entry[1].done():
            entry[1].set_exception(Refusal(Code.UNAVAILABLE, "The database is busy."))


def _closed() -> Refusal:
    return Refusal(Code.UNAVAILABLE, "The database is closed.")
