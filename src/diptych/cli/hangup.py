"""SIGHUP for a service of one process: it starts anew, with the same pid and the same listening socket.

    hangup = Hangup()                       before anything changes the environment
    hangup.watch(server, listener)          in the event loop
    hangup.start_anew()                     after the server has stopped: does not return if SIGHUP came

The server stops gracefully, and the process executes its own command again (`execve`). The socket stays open meanwhile:
connections wait in its backlog, and none is refused. The new program reads the model and the settings as they are then.
(Of several processes, uvicorn's supervisor replaces one after the other.)

A hangup of the terminal that the service was started in ends it, as it ends other programs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

import uvicorn

_LISTENER = "_DIPTYCH_LISTENER"
"""The environment variable with the descriptor of a listening socket that is inherited."""
_TERMINAL = 0


class Hangup:
    """What is needed to run the command of this process again."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._had_terminal = os.isatty(_TERMINAL)
        self._kept: socket.socket | None = None

    def watch(self, server: uvicorn.Server, listener: socket.socket) -> None:
        """Stop a server at SIGHUP, and keep its listener; nothing is watched if SIGHUP is ignored (`nohup`)."""
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN and _LISTENER not in self._environment:
            return

        def stop() -> None:
            if self._kept is None and (os.isatty(_TERMINAL) or not self._had_terminal):
                self._kept = listener.dup()
                self._kept.set_inheritable(True)
            server.handle_exit(signal.SIGHUP, None)

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop)

    def start_anew(self) -> None:
        """Execute the command of this process again, if SIGHUP came."""
        if self._kept is None:
            return
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the new program watches it
        sys.stdout.flush()
        sys.stderr.flush()
        inherited = {_LISTENER: str(self._kept.fileno())}
        os.execve(sys.executable, sys.orig_argv, {**self._environment, **inherited})


def inherited_listener() -> socket.socket | None:
    """The listening socket of the program that this process ran before, if there was one."""
    descriptor = os.environ.pop(_LISTENER, "")
    return socket.socket(fileno=int(descriptor)) if descriptor else None
