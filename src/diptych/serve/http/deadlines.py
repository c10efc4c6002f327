"""The request timeout, and the limit on concurrent requests.

    task = deadlines.enter()
    try:
        reply = await handler.handle(request)
    except asyncio.CancelledError:
        if not deadlines.is_over(task):
            raise                                   # cancelled for another reason
        reply = …                                   # it timed out
    finally:
        deadlines.leave(task)

A request is an item of an expiring set, which costs less than a microsecond, where `asyncio.timeout` would create and
cancel a timer for every request. `most` limits how many requests run at the same time. Those that wait for their body
do not count: they cost next to nothing, and slow senders could otherwise lock everyone else out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from diptych.fair.expiring import ExpiringSet

Task = asyncio.Task[Any]


class Deadlines(ExpiringSet[Task]):
    """The running requests; one that has timed out is cancelled."""

    def __init__(self, seconds: float, most: int = 2_000) -> None:
        super().__init__(seconds, self._cancel, ticks=20)
        self.most = most
        self._reading: set[Task] = set()
        self._over: set[Task] = set()
        """Requests that were cancelled by their timeout, and run still."""

    def enter(self, task: Task | None = None) -> Task:
        """Register a task, or else the current one, as a running request; again, it does nothing."""
        task = task or asyncio.current_task()
        assert task is not None
        if task in self._since:
            return task
        if self._timer is None or self._loop is not task.get_loop():
            self.start()
        self._since[task] = self._now
        return task

    def leave(self, task: Task) -> None:
        """Unregister a request."""
        if self._reading:
            self._reading.discard(task)
        if self._since.pop(task, None) is None and task in self._over:
            self._over.remove(task)
            task.uncancel()

    @property
    def is_full(self) -> bool:
        """Has the limit on concurrent requests been reached?"""
        return len(self._since) + len(self._over) - len(self._reading) >= self.most

    def reads_body(self) -> Task:
        """Note that the request of the current task waits for its body."""
        task = asyncio.current_task()
        assert task is not None
        self._reading.add(task)
        return task

    def waits_for_body(self, task: Task) -> bool:
        """Does this request wait for its body?"""
        return task in self._reading

    def has_body(self, task: Task) -> None:
        """Note that the body is complete."""
        self._reading.discard(task)

    def is_over(self, task: Task) -> bool:
        """Was the request cancelled by its timeout, and for no other reason?"""
        return task in self._over and task.cancelling() == 1

    def _cancel(self, task: Task) -> None:
        self._over.add(task)
        task.cancel()
