"""A thread pool behind a fair semaphore, for the blocking work of the authorization server."""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.fair.semaphore import FairSemaphore

T = TypeVar("T")
_WAIT = 30.0
"""Longest wait for a thread, in seconds, unless `request_timeout` is shorter."""


def _set_priority(nice: int) -> None:
    """Lower the priority of the current thread. For work in C only: a thread that holds the interpreter must not be
    delayed."""
    if nice and sys.platform == "linux":  # where a thread has a priority of its own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


class Workers:
    """A few threads, shared round-robin by callers. The queue is bounded, and no caller fills more than half of it.

    await workers.call(work)
    """

    def __init__(self, threads: int, waiting: int, name: str, busy: str, nice: int = 0) -> None:
        self._threads = ThreadPoolExecutor(threads, name, partial(_set_priority, nice))
        self._semaphore: FairSemaphore[None] = FairSemaphore(threads, waiting, _WAIT)
        self._busy = busy

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a permit, and hold it; a Refusal if the queue is full or the wait is too long."""
        caller = await self._acquire()
        try:
            yield
        finally:
            self._semaphore.release(caller)

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread, under a permit that the caller holds; a cancelled caller waits for its end."""
        task = self._start(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    async def call(self, work: Callable[[], T]) -> T:
        """Run work in a thread, under a permit that is held until the thread has finished, even if the caller was
        cancelled."""
        caller = await self._acquire()
        task = self._start(work)

        def done(ended: asyncio.Future[T]) -> None:
            self._semaphore.release(caller)
            if not ended.cancelled():
                ended.exception()  # mark it as retrieved: the caller may have gone

        task.add_done_callback(done)
        return await asyncio.shield(task)

    async def _acquire(self) -> str:
        caller = CALLER.get()
        if not self._semaphore.acquire_nowait(caller):
            try:
                await self._semaphore.acquire(caller)
            except Refusal:
                raise Refusal(Code.UNAVAILABLE, self._busy) from None
        return caller

    def _start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Start work in a thread with the context of the caller, so that its statements are counted as the caller's."""
        return asyncio.get_running_loop().run_in_executor(self._threads, contextvars.copy_context().run, work)

    def stop(self) -> None:
        self._semaphore.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
