"""The application of many cells: it finds the tenant of a request, and its service answers.

app = Cells(model, load({"cells": "cells.toml"}))

Health of the process is answered here; that of a cell at the address of the cell.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import Awaitable, Iterable
from contextvars import ContextVar
from pathlib import Path

from diptych.api.reply import JSON_TYPE, NO_STORE, Reply, problem
from diptych.cells.directory import Directory, read_directory
from diptych.cells.metrics import CellMetrics
from diptych.cells.pool import Cell, CellPool
from diptych.config import Config
from diptych.errors import Code, Refusal, StartError
from diptych.fair.background import Background
from diptych.model.model import Model
from diptych.policy.limits import Check
from diptych.serve.app import Diptych
from diptych.serve.asgi import Receive, Scope, Send
from diptych.serve.http.direct import CompleteRequest
from diptych.serve.http.proxies import Proxies
from diptych.serve.http.uvicorn_fast_path import send_reply
from diptych.serve.on_demand import SOCKETS
from diptych.serve.process_limits import ProcessLimits

log = logging.getLogger("diptych")
_TICK = 1.0
"""Seconds between two looks at the cells file, at idle cells, and at one that waits for a visit."""
_HEALTH = (b"/health/live", b"/health/ready")
_CELL: ContextVar[Cell] = ContextVar("cell")
"""The cell that answers the current request."""


class Cells:
    """A model served from a database for each tenant, as an ASGI application."""

    def __init__(self, model: Model, config: Config, *, checks: Iterable[Check] = ()) -> None:
        self.config = config
        self._model = model
        self._checks = tuple(checks)
        self._file = Path(config.cells)
        self._read_at = self._changed_at()
        self._directory = read_directory(self._file, config)
        self._limits = ProcessLimits(config)
        self.deadlines, self.connection_limits = self._limits.deadlines, self._limits.connections
        self._proxies = Proxies(config.trusted_proxies) if config.trusted_proxies else None
        self.pool = CellPool(self._make, config.max_cells)
        self.metrics = CellMetrics(self.pool, self._limits, lambda: len(self._directory.databases))
        self._background = Background()
        self._visits: list[str] = []
        """Tenants that this round has not visited yet."""

    @property
    def tenants(self) -> list[str]:
        return list(self._directory.databases)

    @property
    def closed_cells(self) -> int:
        """Cells that were closed since the start."""
        return self.pool.counts["closed"]

    def _make(self, tenant: str) -> Diptych:
        config = self._directory.config_of(tenant, self.config)
        return Diptych(self._model, config=config, checks=self._checks, limits=self._limits)

    async def start(self) -> None:
        """Begin to look after the cells; each is opened by its first request."""
        self._background.start(self._look_after())

    def begin_drain(self) -> None:
        """Begin to shut down: it is not ready any more, and connections are closed after their next response."""
        self.connection_limits.is_draining = True

    async def closing(self) -> None:
        """Shut down streams: each ends with its cursor, and no new one is accepted."""
        await self.pool.closing()

    async def stop(self) -> None:
        """Close all cells."""
        await self._background.stop()
        await self.pool.stop()
        self._limits.stop()

    # requests

    def respond(self, arrived: CompleteRequest) -> Reply | Awaitable[Reply]:
        """Answer a complete request without ASGI: the reply, or an awaitable of it."""
        tenant = self._tenant(arrived.url, arrived.headers, arrived.peer)
        if tenant is None:
            return self._without_tenant(arrived.url)
        cell = self.pool.get(tenant)
        return self._opened(tenant, arrived) if cell is None else _respond(cell, arrived)

    async def _opened(self, tenant: str, arrived: CompleteRequest) -> Reply:
        """Answer the first request of a cell."""
        try:
            cell = await self.pool.open(tenant)
        except Refusal as refusal:
            return problem(refusal)
        reply = _respond(cell, arrived)
        return reply if isinstance(reply, Reply) else await reply

    async def stream(self, reply: Reply, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a streaming response by ASGI."""
        cell = _CELL.get()
        with cell.in_use():
            await cell.app.stream(reply, scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            return
        headers, url = dict(scope["headers"]), scope.get("raw_path") or scope["path"].encode()
        tenant = self._tenant(url, headers, scope.get("client"))
        try:
            if tenant is None:
                reply = self._without_tenant(url)
            else:
                cell = await self.pool.open(tenant)
                with cell.in_use():
                    await cell.app(scope, receive, send)
                return
        except Refusal as refusal:
            reply = problem(refusal)
        if scope["type"] == "websocket":
            await receive()
            await importlib.import_module(SOCKETS).deny(reply, scope, send)
        else:
            await send_reply(send, reply, b"" if scope["method"] == "HEAD" else reply.body)

    def _tenant(self, url: bytes, headers: dict[bytes, bytes], peer: tuple[str, int] | None) -> str | None:
        host = headers.get(b"host", b"")
        if self._proxies is not None and peer:
            host = self._proxies.seen(peer[0], headers)[1].encode("latin-1") or host
        return self._directory.tenant_of(url, headers, host)

    def _without_tenant(self, url: bytes) -> Reply:
        """The reply to a request that names no tenant: health, or nothing. It does not disclose who is a tenant."""
        path = url.partition(b"?")[0]
        if path not in _HEALTH:
            return problem(Refusal(Code.NOT_FOUND, "There is nothing here."))
        if path == _HEALTH[1] and self.connection_limits.is_draining:
            return problem(Refusal(Code.UNAVAILABLE, "The service is shutting down."))
        return Reply(200, ((b"content-type", JSON_TYPE), *NO_STORE), b'{"status":"ok"}')

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    # in the background

    async def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        round_at = loop.time() + self.config.cell_visit
        while True:
            await asyncio.sleep(_TICK)
            self._read_again()
            self.pool.close_idle(self.config.cell_idle)
            if self.config.cell_visit and loop.time() >= round_at:
                round_at = loop.time() + self.config.cell_visit
                self._visits = self.tenants
            await self._visit()

    async def _visit(self) -> None:
        """Open a cell that nobody asks for, so that its webhooks, schedules and retention get their turn."""
        while self._visits:
            tenant = self._visits.pop()
            if tenant in self._directory.databases and self.pool.get(tenant) is None:
                with contextlib.suppress(Refusal):  # it is logged
                    await self.pool.open(tenant)
                return

    def _changed_at(self) -> int:
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return 0

    def _read_again(self) -> None:
        """Take over the cells file if it has changed; one that is wrong changes nothing."""
        changed_at = self._changed_at()
        if changed_at == self._read_at:
            return
        self._read_at = changed_at
        before = self._directory
        try:
            self._directory = read_directory(self._file, self.config)
        except StartError as error:
            log.error("the cells stay as they are: %s", error)
            return
        for tenant in _changed(before, self._directory):
            self.pool.retire(tenant)


def _respond(cell: Cell, arrived: CompleteRequest) -> Reply | Awaitable[Reply]:
    """The reply of a cell, which stays open until it is sent."""
    _CELL.set(cell)
    reply = cell.app.respond(arrived)
    if not isinstance(reply, Reply):
        return cell.waiting(reply)
    if reply.stream is not None:
        cell.hold(time.monotonic())
    return reply


def _changed(before: Directory, after: Directory) -> list[str]:
    """Tenants that are gone, or whose cell is to be opened anew."""
    if (before.address, before.claim) != (after.address, after.claim):
        return list(before.databases)
    return [tenant for tenant, database in before.databases.items() if after.databases.get(tenant) != database]
