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

So it is known how many requests run, too, and there may be so many. Those that wait for their body do not count: they
cost next to nothing, and whoever sends slowly would keep all others out.
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

    def __init__(self, seconds: float, most: int = 2_000) -> None:
        self.seconds = seconds
        self.most = most
        self._reading: set[Task] = set()
        self.running: dict[Task, int] = {}
        """The tick in which each began."""
        self._now = 0
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> Task:
        """The current task serves a request from now on."""
        task = asyncio.current_task()
        assert task is not None
        if self._timer is None or self._loop is not task.get_loop():
            self._start()
        self.running[task] = self._now
        return task

    def end(self, task: Task) -> None:
        """It no longer does."""
        if self._reading:
            self._reading.discard(task)
        if self.running.pop(task) == _OVER:
            task.uncancel()

    @property
    def is_full(self) -> bool:
        """Are there as many as there may be?"""
        return len(self.running) - len(self._reading) >= self.most

    def reads_body(self) -> Task:
        """The request of the current task waits for its body now."""
        task = asyncio.current_task()
        assert task is not None
        self._reading.add(task)
        return task

    def waits_for_body(self, task: Task) -> bool:
        """Does it?"""
        return task in self._reading

    def has_body(self, task: Task) -> None:
        """It no longer does."""
        self._reading.discard(task)

    def is_over(self, task: Task) -> bool:
        """Was it cancelled for taking too long, and for nothing else?"""
        return self.running[task] == _OVER and task.cancelling() == 1

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
        if not self.running:
            return
        self._start()
        for task, begun in self.running.items():
            if begun == _OVER:
                continue
            if self._now - begun <= _TICKS:
                return  # those that come after it are younger
            self.running[task] = _OVER
            task.cancel()
