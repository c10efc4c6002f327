"""The server process, before it serves."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest
import uvicorn

from diptych.cli.server import Server


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
