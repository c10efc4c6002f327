"""Work that goes on beside requests, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


class Background:
    """One task that runs until it is told to stop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.create_task(work)

    async def stop(self) -> None:
        """End it, and wait until it has ended; again, or if it was never started, it does nothing."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
