"""Reload of `diptych dev`: a supervisor that starts the server process again when a source file changes.

    supervise(serve_process, settings, listener, roots=[Path.cwd()])      # until SIGINT or SIGTERM

1. The operating system reports changes (inotify, FSEvents …, by `watchfiles`): waiting costs next to nothing.
2. Events are collected from before a process starts until it is ended: no change is missed.
3. Only folders of source are watched, so virtual environments, caches and hidden folders take no watches; and only
   `.py` files count, so a database beside the model can be written to.
4. The bytecode of what changed is removed, so that no process runs an older version of the same second and size.
5. A process that cannot start shows why and ends; the next change starts another one.
6. The supervisor holds the listening socket: who connects during a reload is answered by the next process.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from watchfiles import Change
from watchfiles._rust_notify import RustNotify  # it watches once it is made, `watch()` once it is waited for

log = logging.getLogger("diptych")
_STEP, _DEBOUNCE = 100, 1_000
"""Milliseconds: changes are complete when none has come for a step, and reported after the debounce at the latest."""
_POLL = 500
"""Milliseconds between two looks at all files, where the system reports no changes."""
_NO_SOURCE = frozenset({"node_modules", "site-packages"})
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""What a virtual environment has at its top."""
_SPAWN = multiprocessing.get_context("spawn")


def supervise(target: Callable[..., None], *args: Any, roots: Iterable[Path]) -> None:
    """Run `target(*args)` in a process, and again in a new one after each change under the roots, until a signal."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    source = SourceWatch(roots, stopped)
    while not stopped.is_set():
        process = _start(target, args)
        changed = source.wait()
        if changed:
            log.info("Reloading: %s changed", ", ".join(map(_shown, changed)))
        process.terminate()
        process.join()
        for file in changed:
            _forget_bytecode(file)


def _forget_bytecode(file: Path) -> None:
    """Remove the cached bytecode of a file: Python takes it for that of any version of the same second and size."""
    with suppress(OSError, NotImplementedError):
        Path(cache_from_source(str(file))).unlink(missing_ok=True)


class SourceWatch:
    """Watches the source files under some folders, from the moment that it is made."""

    def __init__(self, roots: Iterable[Path], stopped: threading.Event) -> None:
        self._roots = [root.resolve() for root in roots]
        self._stopped = stopped
        self._open()

    def _open(self) -> None:
        """Watch all folders that there are now."""
        while True:
            self._folders = frozenset(source_folders(self._roots))
            try:
                self._events = _events(self._folders)
            except FileNotFoundError:  # one is gone already
                continue
            if self._folders == frozenset(source_folders(self._roots)):  # and no other came meanwhile
                return

    def wait(self) -> list[Path]:
        """Wait for changes: the files that changed since the last call, or nothing when it is stopped."""
        while True:
            events = self._events.watch(_DEBOUNCE, _STEP, 0, self._stopped)
            if isinstance(events, str):  # "stop", or "signal"
                return []
            if self._folders_of(events):
                before = self._events
                self._open()
                late = before.watch(_DEBOUNCE, _STEP, _STEP, None)
                events |= set() if isinstance(late, str) else late
            new = source_folders(self._folders_of(events))
            files = {Path(path) for _, path in events if path.endswith(".py")}
            files.update(file for folder in new for file in folder.glob("*.py"))
            if files:
                return sorted(files)

    def _folders_of(self, events: Iterable[tuple[int, str]]) -> list[Path]:
        """Folders of source that came or went: their watches are missing or void."""
        moved = [Path(path) for change, path in events if change != Change.modified]
        return [path for path in moved if path in self._folders or (path.is_dir() and _is_source(path))]


def source_folders(roots: Iterable[Path]) -> Iterator[Path]:
    """The roots and all folders under them, without those that hold no source of the user's own."""
    for root in roots:
        for name, names, _ in os.walk(root):
            folder = Path(name)
            names[:] = [child for child in names if _is_source(folder / child)]
            yield folder


def _is_source(folder: Path) -> bool:
    if folder.name.startswith((".", "__")) or folder.name in _NO_SOURCE:
        return False
    return not any((folder / mark).exists() for mark in _ENVIRONMENT)


def _events(folders: Iterable[Path]) -> RustNotify:
    """Collects changes in these folders, not below them."""
    paths = [str(folder) for folder in folders]
    polls = os.environ.get("WATCHFILES_FORCE_POLLING", "") not in ("", "false", "disable", "disabled")
    try:
        return RustNotify(paths, False, polls, _POLL, False, True)
    except FileNotFoundError:
        raise
    except OSError as error:  # the limit of watches is reached
        log.warning("changes are looked for every %d ms: %s", _POLL, error)
        return RustNotify(paths, False, True, _POLL, False, True)


def _start(target: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
    """A new process. Ctrl-C reaches it only once its server handles signals: before, the supervisor ends it."""
    process = _SPAWN.Process(target=_run, args=(target, args, _stdin()))
    with _blocked(signal.SIGINT):
        process.start()
    return process


def _run(target: Callable[..., None], args: tuple[Any, ...], stdin: int | None) -> None:
    """What the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if stdin is not None:
        sys.stdin = open(stdin, closefd=False)  # noqa: SIM115  # multiprocessing closed it; debuggers read it
    target(*args)


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    """A signal waits, here and in the processes that are started here."""
    resource_tracker.ensure_running()  # with the first process it would start, and unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stdin() -> int | None:
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # there is none
        return None


def _shown(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)
