"""Files that are there as a whole or not at all: written beside, synced, then renamed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from diptych.db.sqlite.private_file import BESIDE
from diptych.errors import StartError


@contextmanager
def whole_file(target: Path, mode: int = 0o600) -> Iterator[Path]:
    """An empty file beside `target`; at the end it takes the name, and lasts. One process at a time writes it, and only
    its owner can read it unless the mode says more."""
    part = _beside(target)
    try:
        with _locked(part, mode):
            try:
                yield part
                _sync(part)
                part.replace(target)
            except BaseException:
                for suffix in BESIDE:
                    part.with_name(part.name + suffix).unlink(missing_ok=True)
                raise
        _sync(target.parent)
    except BlockingIOError:
        raise StartError(f"{target} is being written by another process.") from None
    except OSError as error:
        raise StartError(f"{target} cannot be written: {error.strerror}.") from None


def _beside(target: Path) -> Path:
    """The name of the file that is written; another one where a process of another user has left one."""
    part = target.with_name(target.name + ".part")
    if os.path.lexists(part) and not os.access(part, os.R_OK | os.W_OK):
        return target.with_name(f"{target.name}.{os.getuid()}.part")
    return part


@contextmanager
def _locked(part: Path, mode: int) -> Iterator[None]:
    """Make a file, or empty the one that a process left when it was killed; a BlockingIOError if one writes it now."""
    handle = _open(part, mode)
    try:
        os.fchmod(handle, os.fstat(handle).st_mode & mode)
        os.ftruncate(handle, 0)
        for suffix in BESIDE[1:]:
            part.with_name(part.name + suffix).unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def _open(part: Path, mode: int) -> int:
    while True:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), part.lstat()):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # meanwhile, the one who wrote it gave it its name


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
