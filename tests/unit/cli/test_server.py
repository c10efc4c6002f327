"""The server process, before it serves."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.supervisors import multiprocess

from diptych.cli.server import Server, Worker


def test_a_process_that_starts_leaves_the_shared_listener_non_blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    """O_NONBLOCK belongs to the listener, not to a descriptor: a process that cleared it, for however short a time,
    would leave the others in accept(), with requests that they had accepted before unanswered."""
    seen: list[bool] = []

    async def startup(server: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        seen.extend(os.get_blocking(listener.fileno()) for listener in (shared, *(sockets or ())))

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    with socket.create_server(("127.0.0.1", 0)) as shared:
        shared.setblocking(False)
        inherited = socket.socket(fileno=os.dup(shared.fileno()))  # as a worker unpickles it
        server = Server(uvicorn.Config("none:none"))
        asyncio.run(server.startup([inherited]))
        for listener in (inherited, *server._duplicates):
            listener.close()
    assert len(seen) > 2 and not any(seen)


def test_a_process_that_still_imports_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn replaces a process that is silent for five seconds: on a busy machine, none would ever have started."""
    monkeypatch.setattr(multiprocess, "get_subprocess", lambda *_: SimpleNamespace(is_alive=lambda: True))
    worker = Worker(uvicorn.Config("none:none"), [])
    worker._server = cast(Any, SimpleNamespace(started=True))
    assert worker.is_alive(0.01) and worker.is_alive(0.01)
    worker.pong()  # it has imported its modules
    assert worker.is_alive(0.01)
    assert not worker.is_alive(0.01)  # it serves, and does not answer


def test_a_process_that_never_answers_is_replaced_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocess, "get_subprocess", lambda *_: SimpleNamespace(is_alive=lambda: True))
    monkeypatch.setattr("diptych.cli.server._STARTING", 0.05)
    worker = Worker(uvicorn.Config("none:none"), [])
    assert worker.is_alive()
    time.sleep(0.1)
    assert not worker.is_alive()


@pytest.mark.parametrize(("workers", "accepts"), [(1, 8), (2, 2)])
def test_of_several_processes_none_accepts_a_whole_burst(
    monkeypatch: pytest.MonkeyPatch, workers: int, accepts: int
) -> None:
    async def startup(server: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        assert len(sockets or ()) == accepts

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(uvicorn.Config("none:none", workers=workers))
        asyncio.run(server.startup([listener]))
        for duplicate in server._duplicates:
            duplicate.close()
