"""Things that may last so long, and no longer. One timer looks at all of them; a thing itself is noted in a dict and
taken out of it again.

    heads = Patience(10.0, lambda connection: connection.end())
    heads.begin(connection)         …         heads.end(connection)

Time goes in ticks, an eighth of what they may last: a thing is over at most one tick late. Nothing ticks while there is
nothing to wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
_TICKS = 8


class Patience(Generic[T]):
    """Those that last, each with the tick in which it began, the oldest first."""

    __slots__ = ("_now", "_over", "_since", "_timer", "seconds")

    def __init__(self, seconds: float, over: Callable[[T], None]) -> None:
        self.seconds = seconds
        self._over = over
        self._since: dict[T, int] = {}
        self._now = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    def begin(self, item: T) -> None:
        """It lasts from now on; one that was there begins anew."""
        if self._timer is None:
            self._start()
        if item in self._since:
            del self._since[item]
        self._since[item] = self._now

    def end(self, item: T) -> None:
        """It is no longer waited for."""
        self._since.pop(item, None)

    def __contains__(self, item: object) -> bool:
        return item in self._since

    def first(self) -> T | None:
        """The one that has lasted longest."""
        return next(iter(self._since), None)

    def oldest(self) -> T | None:
        """The one that has lasted longest, if that is a tick or more."""
        for item, since in self._since.items():
            return item if since < self._now else None
        return None

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._since.clear()

    def _start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.seconds / _TICKS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._now += 1
        over = []
        for item, since in self._since.items():
            if self._now - since <= _TICKS:
                break  # those that come after it are younger
            over.append(item)
        for item in over:
            self.end(item)
            self._over(item)
        if self._since and self._timer is None:
            self._start()
