"""Threads that are shared by all callers of the authorization server, one of each caller in turn."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from diptych.asking import ASKER
from diptych.db.turns import Turns
from diptych.errors import Code, Refusal

T = TypeVar("T")
_WAIT = 30.0
"""Seconds after which whoever waits is sent away, where no request_timeout does it before."""


class Workers:
    """A few threads behind a fair semaphore: who asks for much waits for itself. The queue is bounded, and no caller
    fills more than half of it.

        await workers.call(work)
    """

    def __init__(self, threads: int, waiting: int, name: str, busy: str) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._turns = Turns(threads, waiting, _WAIT)
        self._busy = busy

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it; a Refusal if too many wait, or if it takes too long."""
        who = await self._enter()
        try:
            yield
        finally:
            self._turns.give(who)

    async def run(self, work: Callable[[], T]) -> T:
        """What work gives, in a thread, for one who has a place; also one who was cancelled waits for its end."""
        task = self._begin(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    async def call(self, work: Callable[[], T]) -> T:
        """Both: what work gives, in its turn. The place is held until the thread has done its work, also when nobody
        waits for that any more."""
        who = await self._enter()
        task = self._begin(work)

        def done(ended: asyncio.Future[T]) -> None:
            self._turns.give(who)
            if not ended.cancelled():
                ended.exception()  # it may be that nobody else looks at it

        task.add_done_callback(done)
        return await asyncio.shield(task)

    async def _enter(self) -> str:
        who = ASKER.get()
        if not self._turns.at_once(who):
            try:
                await self._turns.wait(who)
            except Refusal:
                raise Refusal(Code.UNAVAILABLE, self._busy) from None
        return who

    def _begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Work in a thread that knows who asks, so that its statements take their turn as that one's."""
        return asyncio.get_running_loop().run_in_executor(self._threads, contextvars.copy_context().run, work)

    def stop(self) -> None:
        self._turns.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
