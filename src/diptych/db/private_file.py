"""The files of a SQLite database are for their owner only: they hold the keys that sign tokens, and everybody's rows.

A new database is made with mode 0600, whatever the umask; SQLite gives its -wal, -shm and -journal the same mode. One
that was made otherwise is left as it is, since its owner may want that, and named in a warning.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from functools import cache

log = logging.getLogger("diptych")
_MODE = 0o600
_BESIDE = ("", "-wal", "-shm", "-journal")


def make_private(path: str) -> None:
    """Make the file of a new database. What keeps it from being made, SQLite tells when it opens it.

    One that is there is not opened: to close it again would end the locks that this process has on it.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), _MODE))


def exposed(path: str) -> list[str]:
    """The files of a database that others than their owner may read or write, a sentence each."""
    found = []
    for name in (path + suffix for suffix in _BESIDE):
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(name).st_mode)
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                what = f"The file {name} has mode {mode:04o}, so others may open it"
                found.append(f"{what}, and holds the keys that sign tokens. Run chmod 600 {name}.")
    return found


@cache
def warn_once(sentence: str) -> None:
    """Say it in the log, once in a process."""
    log.warning("%s", sentence)
