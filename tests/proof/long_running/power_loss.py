"""Crash images of a SQLite database: what a disk may hold after the power has failed at any moment.

A VFS records each write, truncation, sync and deletion of the database and its write-ahead log, beside the
acknowledgements that clients got. From the recording, images are made: cut at a random moment, with what was synced
before it, and with any part of what was not. What was written while a sync ran may be lost, too.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
"""Bytes that a disk writes as a whole, at least."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a place of a file; a truncation has none."""

    file: str
    at: int
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync that has returned: all writes of the file before `upto`, a place in the recording, are durable."""

    file: str
    upto: int


@dataclass(frozen=True, slots=True)
class Delete:
    """A file that is gone; SQLite deletes nothing that it still needs, so the directory is taken as synced."""

    file: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a client was told: from here on it must not be lost."""

    what: Any


Event = Write | Sync | Delete | Acknowledged


class Recorder(apsw.VFS):
    """The default VFS while it is registered. It records what happens to files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        self._folder = str(folder)
        self._lock = threading.Lock()
        super().__init__("diptych-recorder", "unix", makedefault=True)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self._folder):
            return super().xOpen(name, flags)
        return _RecordedFile(self, os.path.basename(path), name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        if name.startswith(self._folder):
            self.add(Delete(os.path.basename(name)))

    def add(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)


class _RecordedFile(apsw.VFSFile):
    def __init__(self, vfs: Recorder, file: str, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        self._file = file
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._vfs.add(Write(self._file, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._vfs.add(Write(self._file, newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        upto = len(self._vfs.events)
        super().xSync(flags)
        self._vfs.add(Sync(self._file, upto))


class Luck(Enum):
    """What becomes of writes that were not synced."""

    LOST = "lost"
    IN_ORDER = "in order"
    AT_RANDOM = "at random"
    TORN = "torn"


@dataclass(slots=True)
class _Disk:
    """A file: what is durable, and the writes that may be lost, with their places in the recording."""

    durable: bytearray | None = None
    pending: list[tuple[int, Write]] = field(default_factory=list)

    def sync(self, upto: int) -> None:
        content = self.durable if self.durable is not None else bytearray()
        for _, write in (entry for entry in self.pending if entry[0] < upto):
            apply(content, write.at, write.data)
        self.pending = [entry for entry in self.pending if entry[0] >= upto]
        self.durable = content

    def after(self, luck: Luck, dice: random.Random) -> bytes | None:
        """The content after a crash, or None: a file that was never synced may be missing."""
        kept = [] if luck is Luck.LOST else [write for _, write in self.pending]
        if luck is Luck.IN_ORDER:
            kept = kept[: dice.randint(0, len(kept))]
        if self.durable is None and not kept:
            return None
        content = bytearray(self.durable or b"")
        for write in kept:
            if luck is Luck.IN_ORDER or (luck is Luck.AT_RANDOM and dice.random() < 0.5):
                apply(content, write.at, write.data)
            elif luck is Luck.TORN:
                _tear(content, write, dice)
        return bytes(content)


def apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        return
    content.extend(bytes(max(0, at - len(content))))
    content[at : at + len(data)] = data


def _tear(content: bytearray, write: Write, dice: random.Random) -> None:
    """Write some sectors of it."""
    if write.data is None:
        if dice.random() < 0.5:
            apply(content, write.at, None)
        return
    start, end = write.at, write.at + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        if dice.random() < 0.5:
            apply(content, start, write.data[start - write.at : stop - write.at])
        start = stop


@dataclass(frozen=True, slots=True)
class Image:
    """The files after a crash, and what had been acknowledged before it."""

    luck: Luck
    moment: int
    files: dict[str, bytes]
    acknowledged: list[Any]

    def write_to(self, folder: Path) -> None:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def crash_images(events: list[Event], count: int, dice: random.Random) -> Iterator[Image]:
    """Images at random moments of a recording."""
    moments = sorted(dice.randrange(1, len(events) + 1) for _ in range(count))
    disks: dict[str, _Disk] = {}
    acknowledged: list[Any] = []
    done = 0
    for moment in moments:
        for place in range(done, moment):
            match events[place]:
                case Write() as write:
                    disks.setdefault(write.file, _Disk()).pending.append((place, write))
                case Sync(file, upto):
                    disks.setdefault(file, _Disk()).sync(upto)
                case Delete(file):
                    disks.pop(file, None)
                case Acknowledged(what):
                    acknowledged.append(what)
        done = moment
        luck = dice.choice(list(Luck))
        contents = {name: disk.after(luck, dice) for name, disk in disks.items()}
        files = {name: content for name, content in contents.items() if content is not None}
        yield Image(luck, moment, files, list(acknowledged))


def count_faults(images: Iterable[Image], faults: Callable[[Image, Path], Iterable[str]], folder: Path) -> Counter[str]:
    """How many images have which fault, without its number."""
    found: Counter[str] = Counter()
    for number, image in enumerate(images):
        place = folder / f"{number}"
        place.mkdir()
        found.update(f"{image.luck.value}: {fault.lstrip('0123456789 ')}" for fault in faults(image, place))
        shutil.rmtree(place)
    return found
