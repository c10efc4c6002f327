"""The listener of the operators' port, beside that of the service: `--metrics-address 9464`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace

import click
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from diptych.config import Config
from diptych.errors import StartError
from diptych.serve.operators import Observed, OperatorPort

_BACKLOG = 64


def listen_for_operators(config: Config) -> list[socket.socket]:
    """The listening socket of the operators' port; none if the setting is empty."""
    if not config.metrics_address:
        return []
    host, _, port = config.metrics_address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, int(port)), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        raise StartError(f"Metrics cannot be served on {config.metrics_address}: {error}.") from None
    listener.set_inheritable(True)
    return [listener]


def announce_operators(listeners: list[socket.socket]) -> None:
    """Print the address of the operators' port, if there is one."""
    for listener in listeners:
        host, port = listener.getsockname()[:2]
        click.echo(f"Metrics  http://{f'[{host}]' if ':' in host else host}:{port}/metrics")
        sys.stdout.flush()


@contextlib.contextmanager
def metrics_folder(config: Config) -> Iterator[Config]:
    """The settings with a folder for the metrics of all processes, which is removed at the end."""
    if config.metrics_folder or not (config.metrics_address or config.metrics_roles):
        yield config
        return
    with tempfile.TemporaryDirectory(prefix="diptych-metrics-", ignore_cleanup_errors=True) as folder:
        yield replace(config, metrics_folder=folder)


async def serve_operators(observed: Observed, listener: socket.socket) -> asyncio.Server:
    """Serve metrics and health on a listener, until it is closed."""
    settings = uvicorn.Config(
        OperatorPort(observed), lifespan="off", log_config=None, access_log=False, server_header=False
    )
    settings.load()
    state = ServerState()
    listener.setblocking(False)
    return await asyncio.get_running_loop().create_server(
        lambda: HttpToolsProtocol(config=settings, server_state=state, app_state={}), sock=listener
    )
