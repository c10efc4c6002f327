"""Requests and their responses on one connection: by ASGI, pipelined, or by the direct path.

The direct path is for complete, ordinary requests: the application answers from the parser's callback, without a scope,
a cycle or ASGI messages, and without a task unless it has to wait (decision 0031). Everything else goes by ASGI, to the
same handler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextvars import Context, copy_context
from functools import partial
from typing import Any
from urllib.parse import unquote

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from diptych.api.reply import Reply
from diptych.fair.admission import RECEIVED
from diptych.serve.http.connection import Exchange, HttpConnection, RequestHead
from diptych.serve.http.direct import CompleteRequest, DirectApp
from diptych.serve.http.uvicorn_fast_path import encoded_head

_KEEP_ALIVE = (b"connection", b"keep-alive")
"""In HTTP/1.0, the client asks to keep a connection open, and the response confirms it."""
AHEAD = 16
"""Pipelined requests that may wait behind the current one."""


class Exchanges(HttpConnection):
    """One connection with its requests, which are parsed by `Protocol`."""

    _direct = False
    """Is the current request held back until it is complete, for the direct path?"""
    _complete = False
    """Is the request that is held back complete?"""
    _method = b""
    _version = ""
    _keep_alive = True
    _lag = 0.0
    """Seconds for which the request waited for the event loop."""
    _received = 0
    """Bytes that were received last."""
    _body = b""
    """The body of a request that is held back."""

    _by_name: dict[bytes, bytes]
    """The headers of the current request."""
    _app: DirectApp | None = None
    """The application, if it answers without ASGI."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if hasattr(self.app, "respond") and not self.root_path:
            self._app = self.app

    # by ASGI

    def _open_cycle(self) -> RequestResponseCycle:
        """Hand the current request to the application by ASGI, after those that are pipelined before it."""
        before, cycle = self.cycle, self._new_cycle(self._head_parsed, self.expect_100_continue)
        self.cycle, self.scope = cycle, cycle.scope
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))
            cycle.keep_alive = cycle.keep_alive and len(self.pipeline) < AHEAD
        return cycle

    @property
    def _head_parsed(self) -> RequestHead:
        """The head that was parsed last."""
        return RequestHead(self._method, self.url, self.headers, self._version, self._keep_alive, self._lag)

    def _new_cycle(self, head: RequestHead, expects_continue: bool = False) -> RequestResponseCycle:
        path, _, query = head.url.partition(b"?")
        scope: Any = {  # an HTTPScope, with a key of our own
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": head.version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": head.method.decode("ascii"),
            "root_path": self.root_path,
            "path": self.root_path + unquote(path.decode("ascii")),
            "raw_path": self.root_path.encode("ascii") + path,
            "query_string": query,
            "headers": head.headers,
            "state": self.app_state.copy(),
            RECEIVED: time.monotonic() - head.lag,
        }
        return RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=expects_continue,
            keep_alive=head.keep_alive and not self._is_surplus and head.version != "1.0",
            on_response=self.on_response_complete,
        )

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._serve(cycle, self.loop.create_task(cycle.run_asgi(app)))

    def _serve(self, cycle: RequestResponseCycle | Exchange, task: asyncio.Task[None]) -> None:
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._serving = cycle, task

    def on_response_complete(self) -> None:
        assert self._serving is not None
        cycle, _ = self._serving
        self._responded(cycle.more_body, cycle.keep_alive)

    def _responded(self, more_body: bool, keep_alive: bool) -> None:
        """Start the next pipelined request; if there is none, the connection is idle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            if not self.is_lost and self.transport.get_write_buffer_size():
                self._watch_reading()
        elif more_body or (self.discard_input and not keep_alive):  # the rest of the input is not a request
            self.lingering_close()
        elif self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._last is not None:
            self._refuse(self._last)
        elif not self.discard_input:
            self.flow.resume_reading()
            if not self._awaited:
                self._rest()

    # the direct path

    def _leave_direct(self) -> None:
        """Serve the request that is held back by ASGI."""
        self._direct = False
        cycle = self._open_cycle()
        cycle.body += self._body
        cycle.more_body = not self._complete
        self._body, self._complete = b"", False

    def _answer(self) -> None:
        """Answer a complete request: at once, or in a task if it has to wait."""
        self._direct = self._complete = False
        body, self._body = self._body, b""
        by_name, self._by_name = self._by_name, {}  # the head may be large, and the connection long-lived
        assert self._app is not None
        context = copy_context()
        arrived = CompleteRequest(self._method.decode("ascii"), self.url, by_name, self.client, body, self._lag)
        self._follow(context.run(self._app.respond, arrived), context)

    def _follow(self, reply: Reply | Awaitable[Reply], context: Context) -> None:
        """Send the reply to the current request, or wait for it in a task."""
        assert self._app is not None
        if not isinstance(reply, Reply):
            exchange = self.cycle = Exchange(self._head_parsed)  # type: ignore[assignment]  # uvicorn reads only what both have
            task = self.loop.create_task(self._wait(exchange, reply), context=context)
            self._app.deadlines.enter(task)  # it counts at once
            self.tasks.add(task)
            self._serving = exchange, task
            task.add_done_callback(self._waited)
        elif reply.stream is None:
            self._send(reply, self._keep_alive, self._version, self._bodiless)
        else:
            stream, cycle = reply.stream, self._new_cycle(self._head_parsed)
            self.cycle, self.scope = cycle, cycle.scope
            task = self.loop.create_task(self._stream(cycle, reply), context=context)
            task.add_done_callback(lambda _: stream.close())  # it may be cancelled before it begins
            self._serve(cycle, task)

    async def _wait(self, exchange: Exchange, work: Awaitable[Reply]) -> None:
        """Wait for a reply, and send it."""
        try:
            reply = await work
        except asyncio.CancelledError:
            if exchange.disconnected:
                return
            raise
        except Exception:
            self.logger.exception("The response could not be made.")
            self.transport.close()
            return
        if exchange.disconnected:
            if reply.stream is not None:
                reply.stream.close()
        elif reply.stream is None:
            exchange.response_complete = True
            head = exchange.head
            keep_alive = exchange.keep_alive and not self.connection_limits.is_draining
            self._send(reply, keep_alive, head.version, head.method == b"HEAD")
        else:
            assert self._serving is not None and self._app is not None
            task, cycle = self._serving[1], self._new_cycle(exchange.head)
            self._app.deadlines.leave(task)  # a stream lasts for as long as it likes
            if self.cycle is exchange:  # type: ignore[comparison-overlap]  # else, what arrives is that of a request that is pipelined behind it
                self.cycle, self.scope = cycle, cycle.scope
            self._serving = cycle, task
            await self._stream(cycle, reply)

    def _waited(self, task: asyncio.Task[None]) -> None:
        assert self._app is not None
        self.tasks.discard(task)
        self._app.deadlines.leave(task)
        if task.cancelled() and not self.is_lost:  # perhaps before it began: nobody has answered
            self.transport.close()

    async def _stream(self, cycle: RequestResponseCycle, reply: Reply) -> None:
        """Send a streaming response by ASGI."""
        assert self._app is not None
        cycle.more_body = False
        await cycle.run_asgi(partial(self._app.stream, reply))

    def _send(self, reply: Reply, keep_alive: bool, version: str, bodiless: bool) -> None:
        """Write a whole response, which ends the current request."""
        self._write(reply, keep_alive, version, bodiless)
        if not keep_alive and not self.discard_input:
            self.transport.close()
        self._responded(False, keep_alive)

    def _write(self, reply: Reply, keep_alive: bool = True, version: str = "1.1", bodiless: bool = False) -> None:
        defaults = self.server_state.default_headers
        if keep_alive and version == "1.0":
            defaults = [*defaults, _KEEP_ALIVE]
        head = encoded_head(reply, defaults, keep_alive)
        if head is None:
            raise RuntimeError("a header of the response is not valid")
        self.transport.write(head if bodiless else head + reply.body)
