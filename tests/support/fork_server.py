"""Starts `diptych COMMAND …` by a fork of a process that has imported it: that takes a tenth of the time.

    process = start(["serve", "--port", "0"], env=environment())      # a process of its own, as subprocess.Popen makes it

Most of what a command takes is its imports. So a process imports them once for all tests of a session, and forks for each
command. It does nothing else: no loop, no thread and no database exists before the fork. What depends on the start of an
interpreter (another PYTHON… variable) is started as ever, and so is everything where a process
cannot be waited for by a descriptor, which is everywhere but on Linux. The long form of the tests starts real ones only.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, TextIO, cast

_IMPORTED = (
    "diptych.cli.api_key",
    "diptych.cli.client",
    "diptych.cli.dev",
    "diptych.cli.documents",
    "diptych.cli.reload",
    "diptych.cli.serve",
    "diptych.cli.token",
    "diptych.db.postgres.store",
    "diptych.db.sqlite.store",
    "diptych.demo.data",
    "diptych.demo.model",
    "diptych.serve.on_demand",
    "uvicorn.lifespan.on",
)
_MOST = 1 << 20
"""Bytes of a message to the process that forks."""


class Process(Protocol):
    """The part of `subprocess.Popen` that tests use."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdout(self) -> TextIO | None: ...
    @property
    def stderr(self) -> TextIO | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def start(
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    *,
    session: bool = False,
    one_stream: bool = False,
) -> Process:
    """Start a command; `one_stream` joins stderr to stdout."""
    if not _can_fork(arguments, env):
        command = [sys.executable, "-m", "diptych", *arguments]
        errors = subprocess.STDOUT if one_stream else subprocess.PIPE
        return cast(
            Process,
            subprocess.Popen(
                command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=session
            ),
        )
    return _server().start(arguments, env, str(cwd or Path.cwd()), session, one_stream)


@functools.cache
def _has_descriptors() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _can_fork(arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """Would a new interpreter come to the same?"""
    from tests.support.effort import LONG  # noqa: PLC0415  # the process that forks cannot import it

    own = _environment()
    said = {name for name in (*env, *own) if env.get(name) != own.get(name)} - {"PYTEST_CURRENT_TEST"}
    measured = any(name.startswith("COVERAGE_") for name in env)
    harmless = all(name.startswith("DIPTYCH_") or name == "PATH" for name in said)
    return _has_descriptors() and harmless and not (measured or LONG)


@functools.cache
def _environment() -> dict[str, str]:
    """The environment of the process that forks."""
    from tests.support.running import environment  # noqa: PLC0415  # it imports this module

    return environment()


@functools.cache
def _server() -> _ForkServer:
    return _ForkServer()


class _ForkServer:
    """The process that forks, as this one sees it. It ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], env=_environment(), pass_fds=[theirs.fileno()]
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._control.close()
        self._process.wait()

    def start(
        self, arguments: Sequence[str], env: Mapping[str, str], cwd: str, session: bool, one_stream: bool
    ) -> Forked:
        out, child_out = os.pipe()
        err, child_err = (None, child_out) if one_stream else os.pipe()
        message = {"arguments": [*arguments], "env": {**env}, "cwd": cwd, "session": session}
        try:
            pid = self._ask(message, child_out, child_err)
        finally:
            for each in {child_out, child_err}:
                os.close(each)
        return Forked(self, pid, _text(out), None if err is None else _text(err))

    def reap(self, pid: int) -> int:
        """The exit code of a process that has ended."""
        return self._ask({"reap": pid})

    def _ask(self, message: Mapping[str, Any], *descriptors: int) -> int:
        with self._lock:
            socket.send_fds(self._control, [json.dumps(message).encode()], descriptors)
            return int(self._control.recv(100))


def _text(descriptor: int) -> TextIO:
    return open(descriptor, encoding="utf-8")


class Forked:
    """A process that was forked for a command."""

    def __init__(self, server: _ForkServer, pid: int, stdout: TextIO, stderr: TextIO | None) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.returncode: int | None = None
        self._server = server
        self._descriptor = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["diptych"], timeout or 0)
        return code

    def _wait(self, timeout: float | None) -> int | None:
        with self._lock:
            if self.returncode is None:
                waiting = select.poll()
                waiting.register(self._descriptor, select.POLLIN)
                if waiting.poll(None if timeout is None else timeout * 1000):
                    self.returncode = self._server.reap(self.pid)
                    os.close(self._descriptor)
            return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# the process that forks


def _fork_for_each(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """What a fork is to do, in that fork; None at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MOST, 2)
        if not message:
            return None
        asked = json.loads(message)
        if "reap" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["reap"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                return asked, descriptors
        for each in descriptors:
            os.close(each)
        control.send(str(answer).encode())


def _become(asked: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Be as if `python -m diptych` had been called."""
    out, err = descriptors
    os.dup2(out, 1)
    os.dup2(err, 2)
    for each in {out, err}:
        os.close(each)
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["diptych", *asked["arguments"]]
    sys.path[0] = asked["cwd"]


def _on_demand() -> list[str]:
    """What a service imports while it runs."""
    named = vars(importlib.import_module("diptych.serve.on_demand"))
    return [value for name, value in named.items() if name.isupper()]


def _run() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as control:
        for name in (*_IMPORTED, *_on_demand()):
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # what a fork does not touch, it does not copy
        assert threading.active_count() == 1, "a fork has one thread only"
        found = _fork_for_each(control)
    if found:
        _become(*found)
        _end_at_once(sys.modules["diptych.cli"].main)


def _end_at_once(main: Callable[[], object]) -> NoReturn:
    """Run a command, and end without the end of an interpreter: to free all objects would copy their pages before."""
    try:
        main()
        code: object = 0
    except SystemExit as end:
        code = end.code
        if not isinstance(code, int | None):
            print(code, file=sys.stderr)
            code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does: it waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(int(code or 0))  # type: ignore[call-overload]


if __name__ == "__main__":
    _run()
