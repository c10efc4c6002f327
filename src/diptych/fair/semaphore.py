"""A fair semaphore: a quarter of the permits is reserved for callers that hold none.

A permit is a connection to PostgreSQL, or a thread that reads SQLite. A caller that finds none waits in a fair
queue, with a timeout. The service itself, "", waits for no one else.

    semaphore.acquire_nowait(caller) or await semaphore.acquire(caller)
    try: …
    finally: semaphore.release(caller, seconds)

A permit can be released together with what it is for, a connection: `release(caller, seconds, connection)` hands both
to the next waiter of the same caller, whose `acquire` returns the connection.

Statements that run long take processors from everyone, wherever the database runs, so permits alone are not fair. What
a permit is held for beyond a moment is spent from a token bucket of its caller. A caller whose bucket is empty has
one permit at a time, and all such callers together have a quarter. It joins the queue anew when it releases its permit,
so that nobody waits for two of its statements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Generic, TypeVar

from diptych.errors import Code, Refusal
from diptych.fair.expiring import ExpiringSet
from diptych.fair.queue import FairQueue, full
from diptych.fair.token_bucket import TokenBuckets

P = TypeVar("P")
WAITED: ContextVar[float] = ContextVar("waited", default=0.0)
"""Seconds that the current task has waited for permits, to be left out when its work is measured."""
PATIENCE = 6.0
"""Seconds that a request waits for a permit: longer than a statement may take by default."""
_MOMENT = 0.05
"""Seconds for which a permit is held at no charge."""
_BURST = 2.0
"""Seconds by which a caller may hold permits longer than that, before it has one at a time."""


class FairSemaphore(Generic[P]):
    """A number of permits, and the queue for them. Of one event loop.

    `unclaimed` is called with what was handed to a waiter that was cancelled, and that nobody else waits for.
    """

    __slots__ = (
        "_closed",
        "_free",
        "_held",
        "_is_metered",
        "_queue",
        "_reserved",
        "_slow",
        "_unclaimed",
        "_waiters",
        "size",
    )

    def __init__(
        self,
        size: int,
        waiting: int,
        wait: float,
        slow_share: float = 0.25,
        unclaimed: Callable[[P], None] | None = None,
    ) -> None:
        self.size = size
        self._unclaimed = unclaimed
        self._free = size
        self._reserved = max(1, size // 4) if size > 1 else 0
        self._held: dict[str, int] = {}
        self._slow = TokenBuckets("database time of callers", slow_share, _BURST, 1_000)
        self._is_metered = False
        """May a bucket be less than full?"""
        self._queue: FairQueue[asyncio.Future[P | None]] = FairQueue(waiting)
        self._waiters: ExpiringSet[tuple[str, asyncio.Future[P | None]]] = ExpiringSet(wait, self._time_out, ticks=20)
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

    async def acquire(self, caller: str) -> P | None:
        """Wait for a permit, and return what was released with it; a Refusal if the queue is full, or after the
        timeout."""
        waiter = self.enqueue(caller)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            return await waiter
        except BaseException:
            self.forsake(caller, waiter)
            raise
        finally:
            WAITED.set(WAITED.get() + loop.time() - begun)

    def enqueue(self, caller: str) -> asyncio.Future[P | None]:
        """Join the queue: a future that is done with the permit. Whoever stops waiting for it calls `forsake`."""
        if self._closed:
            raise _closed()
        waiter: asyncio.Future[P | None] = asyncio.get_running_loop().create_future()
        dropped = self._queue.put(caller, waiter)
        if dropped is not None:
            self._refuse(dropped, full())
        self._waiters.begin((caller, waiter))
        return waiter

    def withdraw(self, caller: str, waiter: asyncio.Future[P | None]) -> bool:
        """Leave the queue; says whether the waiter was still there, without a permit."""
        if not self._queue.remove(caller, waiter):
            return False
        self._waiters.end((caller, waiter))
        return True

    def forsake(self, caller: str, waiter: asyncio.Future[P | None]) -> None:
        """Leave the queue after a cancellation; a permit that came meanwhile is passed on."""
        if self.withdraw(caller, waiter) or waiter.cancelled() or waiter.exception() is not None:
            return
        handed = waiter.result()
        if not self.release(caller, 0.0, handed) and handed is not None and self._unclaimed is not None:
            self._unclaimed(handed)

    def is_slow(self, caller: str) -> bool:
        """Has a caller held permits for long lately?"""
        return self._is_metered and bool(caller) and self._slow.debt(caller) > 0

    def wake(self) -> None:
        """Give permits that are free to those who may have them."""
        if self._queue.count:
            self._wake_next()

    def release(self, caller: str, seconds: float = 0.0, handed: P | None = None) -> bool:
        """Release a permit that was held for some seconds; says whether it was handed, with what it is for, to the next
        waiter of the same caller."""
        queue, held = self._queue, self._held
        if seconds > _MOMENT and caller:
            self._slow.spend(caller, seconds - _MOMENT)
            self._is_metered = True
            if queue.count and not self._slow.has_tokens(caller):
                queue.rejoin(caller)
        if queue.count and self._hand_on(caller, handed):
            return True
        left = held[caller] - 1
        if left:
            held[caller] = left
        else:
            del held[caller]
        self._free += 1
        if queue.count:
            self._wake_next()
        return False

    def _hand_on(self, caller: str, handed: P | None) -> bool:
        """Give a permit of a caller to its next waiter, without releasing it, if no other caller waits."""
        if self._is_metered and self._must_wait(caller, self._held[caller] - 1):
            return False
        while (waiter := self._queue.pop_own(caller)) is not None:
            self._waiters.end((caller, waiter))
            if not waiter.done():
                waiter.set_result(handed)
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
            self._refuse(entry, Refusal(Code.UNAVAILABLE, message))

    def _refuse(self, entry: tuple[str, asyncio.Future[P | None]], refusal: Refusal) -> None:
        """Refuse a waiter that has left the queue."""
        self._waiters.end(entry)
        if not entry[1].done():
            entry[1].set_exception(refusal)

    def _wake_next(self) -> None:
        while self._free and (entry := self._queue.pop(self._may_acquire)) is not None:
            self._waiters.end(entry)
            caller, waiter = entry
            if not waiter.done():
                self.acquire_nowait(caller)
                waiter.set_result(None)

    def _may_acquire(self, caller: str, _: object) -> bool:
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

    def _time_out(self, entry: tuple[str, asyncio.Future[P | None]]) -> None:
        if self._queue.remove(*entry) and not entry[1].done():
            entry[1].set_exception(Refusal(Code.UNAVAILABLE, "The database is busy."))


def _closed() -> Refusal:
    return Refusal(Code.UNAVAILABLE, "The database is closed.")
