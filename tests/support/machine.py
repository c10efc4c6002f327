"""Limits of time that hold on a busy machine too.

    machine = Machine()                            # before what is measured
    …
    assert seconds < machine.limit(0.05)           # 50 ms where nothing else runs, more where others take the processors

What is measured is how long a process has to wait for a processor, before and after: not what the test itself does
meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_BURSTS = 8
_WORK = 0.004
"""Seconds of processor time that one burst takes."""


class Machine:
    """How busy the machine is with other things."""

    def __init__(self) -> None:
        self._before = slowdown()

    def limit(self, seconds: float) -> float:
        """A limit for an idle machine, as it is for this one."""
        return seconds * max(self._before, slowdown())


def is_within(seconds: float, work: Callable[[], object], tries: int = 3) -> bool:
    """Does it take no longer than that once in so many tries? What else the machine does can only add to a try."""
    for _ in range(tries):
        machine, begun = Machine(), time.perf_counter()
        work()
        if time.perf_counter() - begun < machine.limit(seconds):
            return True
    return False


def slowdown() -> float:
    """How many times as long as it should a computation takes, since others compute as well."""
    begun, used = time.perf_counter(), time.thread_time()
    for _ in range(_BURSTS):
        end = time.thread_time() + _WORK
        while time.thread_time() < end:
            pass
        time.sleep(0.001)  # as a server does that waits for its next request
    waited = (time.perf_counter() - begun) - (time.thread_time() - used) - _BURSTS * 0.001
    return 1.0 + max(0.0, waited) / (_BURSTS * _WORK)
