"""Garbage collection in short pauses.

A full collection of CPython visits every live object: with very many streams open it stops the process for a third of
a second, and it starts each time that the number of objects has grown by a quarter. So server processes collect by
themselves. Up to four times a second, what is new is collected and the survivors are frozen: no later collection visits
them, and they are freed by their reference counts. Reference cycles among old objects remain until the next full
collection, once an hour; nothing that a request or a stream leaves behind is such a cycle (`test_garbage.py`). The
service of a cell is one: so everything is collected as well when some cells were closed.
"""

from __future__ import annotations

import gc
import time

_FULL = 3_600.0
"""Seconds between two full collections."""
_IDLE, _BUSY = 1.0, 0.25
"""Seconds between two ticks: the pause of each is as long as there are new objects."""
_CLOSED = 32
"""Cells that are closed between two full collections, at most: each leaves a fifth of a megabyte behind."""
_YOUNG, _MIDDLE = 5_000, 2
"""New objects after which Python itself collects, and how often it does so before it looks at those that survived. What
waits for one commit comes and goes together, some 20 objects for each request; at 700, which is Python's own threshold
(of 3.11 and 3.12), every batch of 32 requests would start a collection, in vain."""
_NEVER = 1_000_000_000
"""A threshold that is never reached."""


class GarbageCollector:
    """The garbage collector of a server process, driven by `tick`."""

    def __init__(self) -> None:
        self._closed = 0
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
        _collect()
        self._next = time.monotonic() + _FULL

    def tick(self, closed_cells: int = 0) -> float:
        """Collect and freeze what is new; everything, once an hour. The seconds until the next tick."""
        if time.monotonic() > self._next or closed_cells - self._closed >= _CLOSED:
            self._closed = closed_cells
            self._full()
        elif any(gc.get_count()[1:]):
            _collect()
            return _BUSY
        return _IDLE

    def _full(self) -> None:
        gc.unfreeze()
        _collect()
        self._next = time.monotonic() + _FULL


def _collect() -> None:
    """Collect what is not frozen, and freeze the survivors."""
    gc.collect()
    gc.freeze()
