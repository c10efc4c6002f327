"""Says of a process whether it still runs, to others on the same machine.

    mark_of(os.getpid())        "3f0a9c1e.4026531836.4711.88213"

A mark has the boot of the machine, the namespace of process ids (that of a container), the id, and when it started: so
the id of an ended process that another one got is not mistaken for it. Where the system does not tell, there is none.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

_PROC = Path("/proc")


def mark_of(pid: int) -> str:
    """The mark of a process; "" if the system does not report when it started."""
    started = _started(pid)
    return f"{_place()}.{pid}.{started}" if _place() and started else ""


def is_running(mark: str) -> bool | None:
    """Does the process with this mark run? None if that is not known, since it is in another place."""
    rest, _, started = mark.rpartition(".")
    place, _, pid = rest.rpartition(".")
    if not place or place != _place() or not pid.isdecimal():
        return None
    return _started(int(pid)) == started


@functools.cache
def _place() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii")[:8]
        return f"{boot}.{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks since the boot; "" if there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]
