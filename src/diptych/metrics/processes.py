"""Adds up the metrics of several processes, by files in a folder that they share.

    shared = SharedMetrics(folder, registry)
    shared.publish()                        each second, and at the end
    shared.collect()                        of all processes, whichever is scraped

Each process holds a lock of its own for as long as it lives. What a process has counted counts on after its end, or
else counters would fall and a rate would be wrong: the next scrape moves it into one file for all that have ended. Its
gauges end with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path
from typing import BinaryIO

import msgspec

from diptych.metrics.registry import Description, Labels, Metric, Registry, merged_metrics

_ENDED = "ended"
_Stored = list[tuple[Description, list[tuple[Labels, list[float]]]]]
_decode = msgspec.json.Decoder(_Stored).decode


class SharedMetrics:
    """The metrics of this process and of those beside it."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self._folder = folder
        self._registry = registry
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = self._locked(self._name)
        assert self._lock is not None

    def publish(self) -> None:
        """Write the metrics of this process for the others."""
        self._write(self._name, self._registry.collect())

    def close(self) -> None:
        """Publish for the last time: this process has ended for the others."""
        if self._lock is not None:
            with contextlib.suppress(OSError):  # the folder may be gone
                self.publish()
            self._lock.close()
            self._lock = None

    def collect(self) -> list[Metric]:
        """The metrics of all processes, those that have ended included."""
        self.publish()
        lock = self._locked("scrape", wait=True)
        assert lock is not None
        with lock:
            ended, alive = self._read(_ENDED), []
            for name in sorted(file.stem for file in self._folder.glob("*-*.json")):
                if name == self._name or (of_others := self._locked(name)) is None:
                    alive.append(self._read(name))
                    continue
                with of_others:
                    counted = [metric for metric in self._read(name) if metric.description.kind != "gauge"]
                    ended = merged_metrics([ended, counted])
                    self._write(_ENDED, ended)
                    self._file(name).unlink(missing_ok=True)
                    self._file(name, "lock").unlink(missing_ok=True)
            return merged_metrics([*alive, ended])

    def _file(self, name: str, suffix: str = "json") -> Path:
        return self._folder / f"{name}.{suffix}"

    def _locked(self, name: str, *, wait: bool = False) -> BinaryIO | None:
        """An open lock; None if another process holds it."""
        file = self._file(name, "lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return None
        return file

    def _read(self, name: str) -> list[Metric]:
        with contextlib.suppress(FileNotFoundError):
            stored = _decode(self._file(name).read_bytes())
            return [Metric(description, dict(series)) for description, series in stored]
        return []

    def _write(self, name: str, metrics: list[Metric]) -> None:
        new = self._file(f"{name}.{self._name}", "new")
        new.write_bytes(msgspec.json.encode([(metric.description, [*metric.series.items()]) for metric in metrics]))
        new.rename(self._file(name))
