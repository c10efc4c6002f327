"""File modes of a SQLite database: owner only, since it holds the keys that sign tokens, and everybody's rows.

A new database is made with mode 0600, whatever the umask; SQLite gives its -wal, -shm and -journal the same mode. One
that has another mode is left as it is, since its owner may want that, and named in a warning.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from functools import cache

log = logging.getLogger("diptych")
_MODE = 0o600
BESIDE = ("", "-wal", "-shm", "-journal")
"""The files of a database, by what follows its name."""


def make_private(path: str) -> None:
    """Create the file of a new database. If that fails, SQLite reports why when it opens the file.

    An existing file is not opened: closing it would drop the POSIX locks of this process on it.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), _MODE))


def exposed(path: str) -> list[str]:
    """A warning for each file of a database that others than its owner may read or write."""
    warnings = []
    for name in (path + suffix for suffix in BESIDE):
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(name).st_mode)
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                exposure = f"The file {name} has mode {mode:04o}, so others may open it"
                warnings.append(f"{exposure}, and holds the keys that sign tokens. Run chmod 600 {name}.")
    return warnings


@cache
def warn_once(sentence: str) -> None:
    """Log a warning once in a process."""
    log.warning("%s", sentence)
