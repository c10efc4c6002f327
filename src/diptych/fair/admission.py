"""Admission control while the event loop is busy: callers who take much of its time wait for those who do not.

    if admission.is_needed(caller, lag):            it waited long after it was received, or others wait
        return await admission.run(caller, work)
    return await work

The loop runs callbacks first in, first out, and a callback that runs blocks all others. While the lag is short,
requests start at once. When it grows long, each request is measured, and its time in the loop is spent from a token
bucket of its caller. Requests of callers whose bucket is empty wait in a fair queue. In each iteration of the loop as
many are admitted as take about a quantum together, so callers with tokens wait for no more than that. As long as there
is a queue, all requests pass through here: none overtakes another of the same caller. The queue ends when it is so
short that the loop would not count as busy if all of it were admitted: clients that send a request as soon as they have
a response never let it become empty. A caller that is alone has nobody to wait for, and the loop counts as busy later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from diptych.fair.queue import FairQueue, full
from diptych.fair.token_bucket import TokenBuckets

T = TypeVar("T")
RECEIVED = "diptych.received"
"""The moment at which a request was received, in the ASGI scope; servers other than ours do not set it."""
BUSY, BUSY_ALONE = 0.005, 0.025
"""Lag in seconds from which on the loop counts as busy: with several callers, and with one."""
_ALONE = 0.25
"""Seconds after which a caller is alone, if there was no other."""
_RATE, _BURST = 0.01, 0.05
"""Tokens of each caller: its part of a busy loop's time, and the seconds that it may save up."""
_QUANTUM = 0.002
"""Seconds of the loop that requests from the queue take in an iteration, about."""
_AT_ONCE = 64
"""Requests that are admitted together, at most."""
_WEIGHT = 1 / 8
"""How much the last request counts for what the next one is expected to take."""


class Admission:
    """Admits the requests of one event loop; at most `waiting` of them wait."""

    __slots__ = ("_buckets", "_expected", "_last", "_queue", "_since", "_task")

    def __init__(self, waiting: int = 10_000) -> None:
        self._buckets = TokenBuckets("loop time of callers", _RATE, _BURST)
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(waiting)
        self._task: asyncio.Task[None] | None = None
        self._expected = _QUANTUM
        """Seconds that a request from the queue takes, by the last ones."""
        self._last, self._since = "", 0.0
        """The last caller, and since when there was no other."""

    @property
    def waiting(self) -> int:
        """Requests that wait to be admitted."""
        return len(self._queue)

    def is_needed(self, caller: str, lag: float) -> bool:
        """Must a request that has waited so long for the loop be run by `run`? To be asked for every request."""
        if caller != self._last:
            self._last, self._since = caller, time.monotonic()
        if self._task is not None:
            return True
        return lag > BUSY and (lag > BUSY_ALONE or not self._is_alone())

    def _is_alone(self) -> bool:
        return time.monotonic() - self._since >= _ALONE

    async def run(self, caller: str, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine once it is admitted, and return its result; a Refusal if the queue is full."""
        is_queued = not self._buckets.has_tokens(caller)
        if is_queued:
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
            if is_queued:
                self._expected += _WEIGHT * (measured.seconds - self._expected)

    async def _wait_for_admission(self, caller: str) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        dropped = self._queue.put(caller, waiter)
        if dropped is not None and not dropped[1].done():
            dropped[1].set_exception(full())
        if self._task is None:
            self._task = loop.create_task(self._admit())
        try:
            await waiter
        finally:
            self._queue.remove(caller, waiter)

    async def _admit(self) -> None:
        """Admit waiting requests, some in each iteration of the loop, until few are left, and those at once."""
        try:
            while not self._is_short():
                self._let_go(max(1, int(_QUANTUM / max(self._expected, _QUANTUM / _AT_ONCE))))
                await asyncio.sleep(0)  # they start in the next iteration of the loop,
                await asyncio.sleep(0)  # and what arrives meanwhile in the one after that
            self._let_go(len(self._queue))
        finally:
            self._task = None

    def _is_short(self) -> bool:
        """Would all that waits take at most half of what makes the loop count as busy?"""
        return len(self._queue) * self._expected <= (BUSY_ALONE if self._is_alone() else BUSY) / 2

    def _let_go(self, requests: int) -> None:
        for _ in range(requests):
            admitted = self._queue.pop()
            if admitted is None:
                break
            if not admitted[1].done():
                admitted[1].set_result(None)

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
                result: T = end.value
                return result
            finally:
                self.seconds += time.monotonic() - begun
            sent, error = None, None
            try:
                sent = yield awaited
            except BaseException as raised:
                error = raised
