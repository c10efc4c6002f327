"""The server processes of `diptych dev` and `diptych serve`, by uvicorn.

The address is taken before anything is announced: a port that is in use is refused in one sentence, port 0 is
announced as the port that it became, and whoever connects from then on is answered as soon as the first
process is ready. The processes make their application from the environment.
"""

from __future__ import annotations

import contextlib
import gc
import math
import multiprocessing
import os
import resource
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess
from uvicorn.supervisors.statreload import StatReload

from diptych.api.graphql.socket import MAX_MESSAGE
from diptych.cli.failure import sentence
from diptych.cli.model import load_model
from diptych.cli.settings import config_of
from diptych.config import Config, as_environment
from diptych.errors import DiptychError, StartError
from diptych.serve.app import Diptych
from diptych.serve.logs import logging_of
from diptych.serve.protocol import Protocol
from diptych.serve.socket_protocol import SocketProtocol

_BACKLOG = 2048


def listen(config: Config) -> socket.socket:
    """The address of a service, taken."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listener = socket.create_server((config.host, config.port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        cause = os.strerror(number) if number and number > 0 else "there is no such host"
        raise StartError(f"The service cannot listen on {config.host}, port {config.port}: {cause}.") from None
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.set_inheritable(True)
    return listener


def run(config: Config, listener: socket.socket, *, dev: bool) -> None:
    """Serve until a signal ends it."""
    _allow_files()
    os.environ.update(as_environment(config))
    made = dev_application if dev else application
    settings = uvicorn.Config(
        f"{__name__}:{made.__name__}", factory=True, workers=config.workers, reload=dev, loop="uvloop",
        http=Protocol, ws=SocketProtocol, ws_max_size=MAX_MESSAGE, ws_ping_interval=None,
        ws_per_message_deflate=False, lifespan="on", timeout_graceful_shutdown=math.ceil(config.request_timeout) + 1,
        log_config=logging_of(config), log_level=config.log_level, access_log=False,
        server_header=False, proxy_headers=False,  # the application reads them by itself (`serve/proxies.py`)
    )  # fmt: skip
    server = Server(settings)
    with listener, contextlib.suppress(KeyboardInterrupt):
        if dev:
            ModelReload(settings, target=server.run, sockets=[listener]).run()
        elif config.workers > 1:
            multiprocess.Process = Worker  # type: ignore[misc]  # there is no other way to name it
            multiprocess.Multiprocess(settings, sockets=[listener]).run()
        else:
            server.run(sockets=[listener])


def _allow_files() -> None:
    """Every connection is an open file: take as many as the system lets us have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def application() -> Diptych:
    """The application of a server process."""
    return _application(dev=False)


def dev_application() -> Diptych:
    """The same for development; a function of its own, so that no setting can make it that of a service."""
    return _application(dev=True)


def _application(*, dev: bool) -> Diptych:
    try:
        config = config_of({})
        app = Diptych(load_model(config.model), config=replace(config, sample=False), add_columns=dev, explain=dev,
                      tell=click.echo if dev else None)  # fmt: skip
        gc.collect()
        gc.freeze()  # what is here now stays: the collector need not look at it again
        return app
    except DiptychError as error:
        click.echo(sentence(error), err=True)
        sys.exit(STARTUP_FAILURE)


class Server(uvicorn.Server):
    """A server process. Before connections are closed, streams are told where to go on; whoever does not read that
    keeps nobody from leaving."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.loaded_app
        while app is not None and not isinstance(app, Diptych):  # behind what uvicorn puts before it
            app = getattr(app, "app", None)
        if app is not None:
            await app.closing()
        await super().shutdown(sockets)
        if multiprocessing.parent_process() is None:
            self._captured_signals.clear()  # it was asked to end, and ends well: uvicorn would die by the signal


class Worker(multiprocess.Process):
    """One of several server processes."""

    @property
    def server(self) -> uvicorn.Server:
        if self._server is None:
            self._server = Server(self.config)
        return self._server


class ModelReload(StatReload):
    """Starts the server process anew when a source file changes, here or beside the model.

    Files are noted before the process starts, so that no change is missed. What is installed there (`.venv`) is
    left out: looking through it four times a second would cost more than serving.
    """

    def startup(self) -> None:
        self._note()
        super().startup()

    def restart(self) -> None:
        self._note()
        super(StatReload, self).restart()

    def _note(self) -> None:
        self.mtimes = {file: file.stat().st_mtime for file in self.iter_py_files()}

    def iter_py_files(self) -> Iterator[Path]:
        for root in _roots():
            for folder, folders, files in os.walk(root):
                folders[:] = [name for name in folders if _is_source(Path(folder, name))]
                yield from (Path(folder, name) for name in files if name.endswith(".py"))


def _roots() -> list[Path]:
    module = sys.modules[config_of({}).model.partition(":")[0]]
    here, home = Path.cwd(), Path(module.__file__ or ".").resolve().parent
    return [here] if home.is_relative_to(here) else [here, home]


def _is_source(folder: Path) -> bool:
    hidden = folder.name.startswith((".", "__")) or folder.name == "node_modules"
    return not hidden and not (folder / "pyvenv.cfg").exists()
