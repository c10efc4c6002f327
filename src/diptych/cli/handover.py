"""Socket hand-over and notification of a service manager, as systemd does it (sd_listen_fds, sd_notify).

A manager that keeps the listening socket open hands it to each process that it starts, as file descriptor 3: while one
process ends and the next one starts, connections wait in the backlog and none is refused.
"""

from __future__ import annotations

import os
import socket

from diptych.errors import StartError

_FIRST = 3
"""The first descriptor that is handed over."""


def handed_over_listener() -> socket.socket | None:
    """The listening socket that was handed over to this process; None if there is none."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    count = os.environ.get("LISTEN_FDS", "")
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):  # not for the processes that this one starts
        os.environ.pop(name, None)
    if count != "1":
        raise StartError(f"One listening socket is expected, and {count or 'none'} were handed over.")
    try:
        listener = socket.socket(fileno=_FIRST)
        is_listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise StartError(f"The listening socket that was handed over cannot be used: {error.strerror}.") from None
    if listener.type != socket.SOCK_STREAM or not is_listening:
        listener.close()
        raise StartError("What was handed over is no listening socket of TCP.")
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.set_inheritable(True)
    return listener


def notify(state: str) -> None:
    """Tell the service manager about a change of state; without one, do nothing."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        try:
            manager.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)
        except OSError:  # a manager that is gone needs no message
            return
