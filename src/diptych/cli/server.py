"""The server processes of `diptych dev` and `diptych serve`, run by uvicorn.

The socket listens before the address is announced: a port in use is an error in one sentence, port 0 is announced as
the port that was assigned, and connections wait in the backlog until the first process is ready. Several processes
make their application from the environment, each its own; a single one serves the one that made the tables.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import math
import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias, cast

import click
import uvicorn
import uvloop
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess

from diptych.api.graphql.socket import MAX_MESSAGE
from diptych.cli.garbage import GarbageCollector
from diptych.cli.handover import handed_over_listener, notify
from diptych.cli.hangup import Hangup, inherited_listener
from diptych.cli.model import load_model
from diptych.cli.operators import announce_operators, listen_for_operators, metrics_folder, serve_operators
from diptych.cli.settings import config_of, sentence
from diptych.config import Config, as_environment
from diptych.errors import DiptychError, StartError
from diptych.model.model import Model
from diptych.serve.app import Diptych
from diptych.serve.http.protocol import Protocol
from diptych.serve.logs import logging_of
from diptych.serve.on_demand import socket_protocol, warm_up

if TYPE_CHECKING:
    from diptych.cells.app import Cells

Application: TypeAlias = "Diptych | Cells"
_CELLS = "diptych.cells.app"
_BACKLOG = 2048
_WARM_UP = 1.0
"""Seconds after the start until what every process needs sooner or later is imported, in a thread."""
_ACCEPTS = 8
"""Connections accepted in one iteration of the event loop."""
_SHARED_ACCEPTS = 2
"""The same for each of several processes: the first to wake leaves the rest of a burst to the others."""

_ACCEPTED = 0.5
"""Seconds in which the first request of a connection that was accepted last must arrive, if the service drains or
starts anew.
"""
_STARTING, _UNANSWERED = 60, 5.0
"""Seconds after which one of several processes that does not answer is replaced: while it starts, and later."""


def listen(config: Config) -> socket.socket:
    """A listening socket on the address of the service, or the one that was handed over."""
    handed_over = handed_over_listener()
    if handed_over is not None:
        return handed_over
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


def serve_here(
    config: Config, prepared: AbstractAsyncContextManager[Application], announce: Callable[[Config, int], object]
) -> None:
    """Serve until a signal, in this process: the application that made tables and keys goes on to serve. SIGHUP starts
    the process anew."""
    hangup, inherited = Hangup(), inherited_listener()

    async def serve() -> None:
        async with prepared as app:
            operators = listen_for_operators(config)
            with inherited or listen(config) as listener:
                server = Server(uvicorn_settings(config, lambda: app))
                hangup.watch(server, listener)
                announce(app.config, listener.getsockname()[1])
                announce_operators(operators)
                await server.serve(sockets=[listener, *operators])

    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
    hangup.start_anew()


def serve_by_workers(config: Config, listener: socket.socket) -> None:
    """Serve until a signal, in as many processes as the settings say."""
    operators = listen_for_operators(config)
    announce_operators(operators)
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        for opened in (listener, *operators):
            stack.enter_context(opened)
        config = stack.enter_context(metrics_folder(config))
        settings = uvicorn_settings(config, f"{__name__}:{application.__name__}")
        notify("READY=1")  # connections wait until the first process is ready
        multiprocess.Process = Worker  # type: ignore[misc]  # there is no other way to name it
        multiprocess.Multiprocess(settings, sockets=[listener, *operators]).run()


def serve_process(settings: uvicorn.Config, listener: socket.socket) -> None:
    """Serve until a signal, in a child process."""
    settings.configure_logging()
    with listener:
        Server(settings).run(sockets=[listener])


def uvicorn_settings(config: Config, made: Callable[[], Application] | str) -> uvicorn.Config:
    """The settings of uvicorn, for the function that gives the application; other processes find it by its name, and it
    makes the application from the environment."""
    _allow_files()
    os.environ.update(as_environment(config))
    return uvicorn.Config(
        made,
        factory=True,
        workers=config.workers,
        loop="uvloop",
        http=Protocol,
        ws=cast("type[asyncio.Protocol]", socket_protocol),
        ws_max_size=MAX_MESSAGE,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="on",
        timeout_worker_healthcheck=_STARTING,
        timeout_graceful_shutdown=math.ceil(config.request_timeout) + 1,
        log_config=logging_of(config),
        log_level="info" if config.log_level == "debug" else config.log_level,  # `logs.py` says why
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application reads them by itself (`serve/http/proxies.py`)
    )


def _allow_files() -> None:
    """Raise the limit of open files to the maximum, since every connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def application() -> Application:
    """The application of a server process."""
    return _application(dev=False)


def dev_application() -> Application:
    """The application of a development server; a separate function, so that no setting can enable it in production."""
    return _application(dev=True)


def cells_of(model: Model, config: Config) -> Cells:
    """The application of many cells, imported only where there are some."""
    made: Cells = importlib.import_module(_CELLS).Cells(model, config)
    return made


DEV_APPLICATION = f"{__name__}:{dev_application.__name__}"


def _application(*, dev: bool) -> Application:
    try:
        config = config_of({})
        model = load_model(config.model)
        if config.cells and not dev:
            return cells_of(model, config)
        return Diptych(
            model,
            config=replace(config, sample=False),
            add_columns=dev,
            explain=dev,
            tell=click.echo if dev else None,
        )
    except DiptychError as error:
        click.echo(sentence(error), err=True)
        if dev:
            click.echo("Mend it and save: the service starts again, and answers the requests that wait.", err=True)
        sys.exit(STARTUP_FAILURE)


class Server(uvicorn.Server):
    """A server process. At shutdown, streams get a last cursor before their connections are closed; a client that does
    not read it does not delay the others.

    libuv accepts one connection of a listener in each iteration of the event loop, so under load new connections,
    health checks among them, would queue for many iterations. Each duplicate of the listener's descriptor accepts one
    more.

    An idle server wakes once a second, instead of ten times: for the Date header, and to
    collect garbage. A signal ends it at once.
    """

    _duplicates: Sequence[socket.socket] = ()
    _operators: Sequence[asyncio.Server] = ()
    _signals = 0
    """Signals to end that came."""
    _wake: Callable[[], object] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        sockets, operators = (sockets or [])[:1], (sockets or [])[1:]
        for listener in sockets:
            listener.setblocking(False)  # shared by all processes: dup() of a blocking one would block their accept()
        accepts = _ACCEPTS if self.config.workers == 1 else _SHARED_ACCEPTS
        self._duplicates = [listener.dup() for listener in sockets for _ in range(accepts - 1)]
        await super().startup([*sockets, *self._duplicates] or None)
        if operators and (app := self._app) is not None:
            self._operators = [await serve_operators(app.metrics, listener) for listener in operators]
        if multiprocessing.parent_process() is None:
            notify("READY=1")

    async def main_loop(self) -> None:
        loop, signalled = asyncio.get_running_loop(), asyncio.Event()
        warming = loop.call_later(_WARM_UP, loop.run_in_executor, None, warm_up)
        self._wake = functools.partial(loop.call_soon_threadsafe, signalled.set)
        garbage, app = GarbageCollector(), self._app
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(garbage.tick(app.closed_cells if app is not None else 0)):
                    await signalled.wait()
        warming.cancel()  # a process that stops at once has no threads for it any more

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        super().handle_exit(sig, frame)
        if self._wake is not None:
            self._wake()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if multiprocessing.parent_process() is None and signal.SIGHUP not in self._captured_signals:
            notify("STOPPING=1")
        app = self._app
        if app is not None:
            app.begin_drain()
            await self._drain(app.config.drain)
            await app.closing()
            patience = _ACCEPTED if signal.SIGHUP in self._captured_signals else min(app.config.drain, _ACCEPTED)
            await self._serve_accepted([*(sockets or ())[:1], *self._duplicates], patience)
        await super().shutdown([*(sockets or ()), *self._duplicates])
        for server in self._operators:
            server.close()
        if multiprocessing.parent_process() is None:
            self._captured_signals.clear()  # a clean exit: uvicorn would raise the signal again

    @property
    def _app(self) -> Application | None:
        app = self.config.loaded_app
        while app is not None and not hasattr(app, "begin_drain"):  # inside uvicorn's middleware
            app = getattr(app, "app", None)
        return cast("Application | None", app)

    async def _drain(self, seconds: float) -> None:
        """Serve on while load balancers notice that it is not ready; a second signal ends that."""
        end = time.monotonic() + seconds
        while self._signals < 2 and (left := end - time.monotonic()) > 0:
            await self.on_tick(0)  # the Date header
            await asyncio.sleep(min(left, 0.1))

    async def _serve_accepted(self, listeners: Sequence[socket.socket], patience: float) -> None:
        """Stop listening, and answer those who have connected and whose request is on its way."""
        for server in self.servers:
            server.close()
        for listener in listeners:
            listener.close()
        await asyncio.sleep(patience)


class Worker(multiprocess.Process):
    """One of several server processes.

    It answers once it has imported its modules. On a busy machine that takes longer than a process that serves may be
    silent, and uvicorn would replace it for ever.
    """

    _asked_at = 0.0
    _answered = False

    def is_alive(self, timeout: float = _UNANSWERED) -> bool:
        if self._answered:
            return super().is_alive(min(timeout, _UNANSWERED))
        if not self.process.is_alive():
            return False
        with contextlib.suppress(OSError, EOFError):
            if not self._asked_at:
                self._asked_at = time.monotonic()
                self.parent_conn.send(b"ping")
            if self.parent_conn.poll():
                self.parent_conn.recv()
                self._answered = True
        return self._answered or time.monotonic() < self._asked_at + _STARTING

    @property
    def server(self) -> uvicorn.Server:
        if self._server is None:
            self._server = Server(self.config)
        return self._server
