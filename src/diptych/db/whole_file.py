"""Files that are there as a whole or not at all: written beside, synced, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.db.sqlite.private_file import BESIDE
from diptych.errors import StartError


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """An empty file beside `target` that only its owner can read; at the end it takes the name, and lasts."""
    part = target.with_name(target.name + ".part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        yield part
        _sync(part)
        part.replace(target)
        _sync(target.parent)
    except OSError as error:
        raise StartError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        for suffix in BESIDE:
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
