"""Admission control while the event loop is busy: callers who take much of its time wait for those who do not.

    if lag > BUSY:                                  it waited so long after it was received
        return await admission.run(caller, work)
    return await work

The loop runs callbacks first in, first out, and a callback that runs blocks all others. While the lag is short,
requests start at once. When it grows long, each request is measured, and its time in the loop is spent from a token
bucket of its caller. Requests of callers whose bucket is empty wait in a fair queue. They are admitted one by one, or
more at a time as long as iterations of the loop stay short; after a long one, admission pauses for as long as it took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from diptych.fair.queue import FairQueue
from diptych.fair.token_bucket import TokenBuckets

T = TypeVar("T")
RECEIVED = "diptych.received"
"""The moment at which a request was received, in the ASGI scope; servers other than ours do not set it."""
BUSY = 0.005
"""Lag in seconds from which on the loop counts as busy."""
_RATE, _BURST = 0.01, 0.05
"""Tokens of each caller: its part of a busy loop's time, and the seconds that it may save up."""
_SHORT = 0.002
"""Seconds that a short iteration of the loop takes at most."""
_AT_ONCE = 16
"""Requests that are admitted together, at most."""


class Admission:
    """Admits the requests of one event loop; at most `waiting` of them wait."""

    __slots__ = ("_buckets", "_queue", "_task")

    def __init__(self, waiting: int = 10_000) -> None:
        self._buckets = TokenBuckets("loop time of callers", _RATE, _BURST)
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(waiting)
        self._task: asyncio.Task[None] | None = None

    async def run(self, caller: str, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine once it is admitted, and return its result; a Refusal if the queue is full."""
        if not self._buckets.has_tokens(caller):
            try:
                await self._wait_for_admission(caller)
            except BaseException:
                work.close()
                raise
        measured = Measured(work)
        try:
            return await measured
        finally:
            self._buckets.spend(caller, measured.seconds)

    async def _wait_for_admission(self, caller: str) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._queue.put(caller, waiter)
        if self._task is None:
            self._task = loop.create_task(self._admit())
        try:
            await waiter
        finally:
            self._queue.remove(caller, waiter)

    async def _admit(self) -> None:
        """Admit waiting requests until the queue is empty."""
        many = 1
        while self._queue:
            begun = time.monotonic()
            for _ in range(many):
                admitted = self._queue.pop()
                if admitted is not None and not admitted[1].done():
                    admitted[1].set_result(None)
            await asyncio.sleep(0)  # they start in the next iteration of the loop
            await asyncio.sleep(0)
            took = time.monotonic() - begun
            many = min(_AT_ONCE, 2 * many) if took <= _SHORT else max(1, many // 2)
            if took > BUSY:
                await asyncio.sleep(took)
        self._task = None

    def stop(self) -> None:
        """Stop admitting requests that wait."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


class Measured(Generic[T]):
    """Awaits a coroutine and counts the seconds for which its steps ran, without the time that it waits."""

    __slots__ = ("_work", "seconds")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        sent, error = None, None
        while True:
            begun = time.monotonic()
            try:
                awaited = self._work.send(sent) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self.seconds += time.monotonic() - begun
            sent, error = None, None
            try:
                sent = yield awaited
            except BaseException as raised:
                error = raised
