"""One timer for many items: a ticker checks them all, and a set of items with a timeout is built on it.

    heads = ExpiringSet(10.0, lambda connection: connection.abort())
    heads.begin(connection)         …         heads.end(connection)

Adding and removing an item are operations on a dict, so timeouts cost next to nothing when they do not happen. Time
goes in ticks, a fraction of the timeout each: an item expires at most one tick late. An empty set does not tick.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Ticker(ABC):
    """Calls `tick` every `pause` seconds, from `start` until it returns False."""

    __slots__ = ("_loop", "_timer", "pause")

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def tick(self) -> bool:
        """Check all items; returns whether to go on. The loop logs an exception, and the ticker goes on."""

    def start(self) -> None:
        """Start ticking, unless it ticks already, and in this event loop."""
        loop = asyncio.get_running_loop()
        if self._timer is None or self._loop is not loop:
            self._loop, self._timer = loop, loop.call_later(self.pause, self._run)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        goes_on = True
        try:
            goes_on = self.tick()
        finally:
            self._timer = None
            if goes_on:
                self.start()


class ExpiringSet(Ticker, Generic[T]):
    """Items with the tick in which they were added, the oldest first; a timeout has `ticks` ticks.

    Those of one tick are in the order in which they were first added in it.
    """

    __slots__ = ("_now", "_on_expired", "_since", "_ticks")

    def __init__(self, seconds: float, on_expired: Callable[[T], None], ticks: int = 8) -> None:
        super().__init__(seconds / ticks)
        self._ticks = ticks
        self._on_expired = on_expired
        self._since: dict[T, int] = {}
        self._now = 0

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, item: object) -> bool:
        return item in self._since

    def begin(self, item: T) -> None:
        """Add an item; the timeout of one that is in the set starts again."""
        if self._timer is None:
            self.start()
        if self._since.get(item) != self._now:
            self._since.pop(item, None)
            self._since[item] = self._now

    def end(self, item: T) -> None:
        """Remove an item, if it is in the set."""
        self._since.pop(item, None)

    def first(self) -> T | None:
        """The oldest item."""
        return next(iter(self._since), None)

    def oldest(self) -> T | None:
        """The oldest item, if it is at least a tick old."""
        item = self.first()
        return item if item is not None and self._since[item] < self._now else None

    def stop(self) -> None:
        """Cancel the timer and remove all items."""
        super().stop()
        self._since.clear()

    def tick(self) -> bool:
        """Remove the items that have expired, and call `on_expired` with each."""
        self._now += 1
        while (item := self.first()) is not None and self._now - self._since[item] > self._ticks:
            self.end(item)
            self._on_expired(item)
        return bool(self._since)
