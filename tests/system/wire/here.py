"""A server in a thread of the test's own process, so that what it counts can be looked at."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from diptych import Diptych
from diptych.serve.http.protocol import Protocol
from diptych.serve.http.websocket_protocol import SocketProtocol
from tests.support.running import Client


class Here(NamedTuple):
    """A server in a thread of this process, whose gate can be looked at."""

    client: Client
    app: Diptych


@contextmanager
def here(app: Diptych, behind: Callable[[Diptych], Any] = lambda app: app) -> Iterator[Here]:
    """Serve by uvicorn, as `diptych serve` does, behind a middleware if wanted. The system holds little for those who
    do not read."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    config = uvicorn.Config(
        behind(app),
        http=Protocol,
        ws=SocketProtocol,
        ws_ping_interval=None,
        log_level="critical",
        ws_per_message_deflate=False,
        proxy_headers=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Here(Client(f"http://127.0.0.1:{listener.getsockname()[1]}"), app)
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
