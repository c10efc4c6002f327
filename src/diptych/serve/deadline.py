"""The time that a request may take. One timer looks at all that run; a request itself is noted in a dict and taken
out of it again, which costs less than a microsecond, where `asyncio.timeout` makes and ends a timer for each.

    task = deadlines.begin()
    try:
        reply = await handler.handle(request)
    except asyncio.CancelledError:
        if not deadlines.is_over(task):
            raise                                   # someone else cancelled it
        reply = …                                   # it took too long
    finally:
        deadlines.end(task)

Time goes in ticks, a twentieth of what a request may take: it is ended at most one tick late. Nothing ticks while
nothing runs.
"""

from __future__ import annotations

import asyncio
from typing import Any

Task = asyncio.Task[Any]
_TICKS = 20
_OVER = -1
"""In the place of the tick: it was told to end."""


class Deadlines:
    """The requests that run, each with the tick in which it began."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._running: dict[Task, int] = {}
        self._now = 0
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> Task:
        """The current task serves a request from now on."""
        task = asyncio.current_task()
        assert task is not None
        if self._timer is None or self._loop is not task.get_loop():
            self._start()
        self._running[task] = self._now
        return task

    def end(self, task: Task) -> None:
        """It no longer does."""
        if self._running.pop(task) == _OVER:
            task.uncancel()

    def is_over(self, task: Task) -> bool:
        """Was it cancelled for taking too long, and for nothing else?"""
        return self._running[task] == _OVER and task.cancelling() == 1

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._loop is not loop:
            self._loop = loop
            self._timer = loop.call_later(self.seconds / _TICKS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._now += 1
        if not self._running:
            return
        self._start()
        for task, begun in self._running.items():
            if begun == _OVER:
                continue
            if self._now - begun <= _TICKS:
                return  # those that come after it are younger
            self._running[task] = _OVER
            task.cancel()
