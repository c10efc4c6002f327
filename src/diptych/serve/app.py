"""The ASGI application: `Diptych(model, database=…)` runs under any ASGI server, and mounts into Starlette and FastAPI.

app = Diptych(model, database="sqlite:///blog.db")
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from diptych.api.reply import Reply, problem
from diptych.config import Config, for_database, load, misspelt
from diptych.db.connect import connect
from diptych.engine.read import Engine
from diptych.errors import Code, Refusal, StartError
from diptych.fair.admission import RECEIVED
from diptych.fair.eager import Waiting, in_task, start
from diptych.identity.issuers.trusted import Issuers
from diptych.identity.tokens import load_tokens
from diptych.identity.viewer import Context
from diptych.model.model import Model
from diptych.policy.limits import Check
from diptych.serve.asgi import Receive, Scope, Send
from diptych.serve.express import Express, express_of
from diptych.serve.handler import Handler, log
from diptych.serve.http.body import Arrived, is_coded, read_arriving, refuse_coded, too_large
from diptych.serve.http.connection_limits import HEALTH
from diptych.serve.http.cors import Cors
from diptych.serve.http.direct import CompleteRequest
from diptych.serve.http.head_rules import joined_headers, repeated
from diptych.serve.http.proxies import Proxies
from diptych.serve.http.request import Request, with_request_id
from diptych.serve.http.uvicorn_fast_path import (
    body_at_once,
    close_after,
    forget_head,
    has_gone,
    reply_at_once,
    send_reply,
)
from diptych.serve.logs import REQUEST, log_access, log_nothing
from diptych.serve.on_demand import CONSOLE_RECENT, EXPLAINING, MAIL, SLOW_LOG, SOCKETS
from diptych.serve.process_limits import ProcessLimits
from diptych.serve.public_address import prefix_of, with_resource_metadata, without_prefix
from diptych.serve.rate_headers import ADMITTED_PATHS
from diptych.serve.refusals import refusal_reply
from diptych.serve.service_metrics import ServiceMetrics
from diptych.serve.start_engine import make_engine
from diptych.serve.start_jobs import start_jobs
from diptych.serve.stream.send_queue import StreamLimits

if TYPE_CHECKING:
    from diptych.serve.console.recent import Recent

_TOO_LONG = Refusal(Code.TIMEOUT, "The request took too long.")
_LATE = Refusal(Code.BAD_REQUEST, "The body did not arrive in time.")


class Diptych:
    """A model as an ASGI application. It opens its store at the lifespan's start, or at the first request.

    `checks` are custom limits (`policy/limits.py`), in addition to those of the settings.

    Without a `config`, its settings are those of the environment and of `diptych.toml`; `database` wins over both.

    For development: `add_columns` mends a database that lacks something (tables, columns, indexes) and has `tell` say
    what it did; `explain` shows admins why they are refused.
    """

    closed_cells = 0
    """One service has no cells (`cells/app.py`)."""

    def __init__(
        self,
        model: Model,
        *,
        database: str | None = None,
        config: Config | None = None,
        checks: Iterable[Check] = (),
        add_columns: bool = False,
        explain: bool = False,
        tell: Callable[[str], None] | None = None,
        limits: ProcessLimits | None = None,
    ) -> None:
        if config is None:
            config = load({})
            for warning in misspelt():
                log.warning("%s", warning)
        self.model = model if config.triggers else model.without_feed()
        self.config = for_database(config, database) if database else config
        self.store = connect(self.config)
        self._checks = tuple(checks)
        self._add_columns = add_columns
        self._tell = tell or log.info
        self._handles: type[Handler] = importlib.import_module(EXPLAINING).ExplainingHandler if explain else Handler
        self._handler: Handler | None = None
        self._express: Express | None = None
        self._shares_limits = limits is not None
        limits = limits or ProcessLimits(config)
        self._limits, self.deadlines, self.connection_limits = limits, limits.deadlines, limits.connections
        self.streams = StreamLimits(
            buffer=config.stream_buffer, timeout=config.stream_timeout, heartbeat=config.heartbeat
        )
        self._proxies = Proxies(self.config.trusted_proxies) if self.config.trusted_proxies else None
        self._prefix = ""
        self._set_address(self.config.base_url)
        self._cors = Cors(self.config.cors_origins, self.config.cors_headers) if self.config.cors_origins else None
        self._log_access = log_access if config.access_log else log_nothing
        self._recent: Recent | None = None
        self._engine = Engine
        if config.slow_query:
            slow = importlib.import_module(SLOW_LOG)
            self._log_access, self._engine = slow.slow_log(config.slow_query, model.resources, self._log_access)
        if config.console:
            recording = importlib.import_module(CONSOLE_RECENT)
            self._recent, self._engine = recording.Recent(), recording.RecordingEngine
            self._log_access = recording.Recent.around(self._recent, self._log_access)
        self.metrics = ServiceMetrics(self.store, limits, self.streams, config.metrics_folder)
        self._note = self.metrics.requests.note
        self._starting = asyncio.Lock()

    def _set_address(self, base_url: str) -> None:
        """Set the public address: that of the settings, then the one that the database remembers."""
        if any(trusted.issuer == base_url for trusted in self.config.issuers):
            raise StartError(f"The issuer {base_url} is this service itself: its base_url is no other issuer.")
        self.config = replace(self.config, base_url=base_url)
        self._prefix = prefix_of(self.model, base_url)
        self.connection_limits.health |= {self._prefix.encode() + path for path in HEALTH}

    async def start(self) -> Handler:
        """Open the store and create the handler; idempotent."""
        async with self._starting:
            if self._handler is None:
                try:
                    self._handler = await self._make()
                    self._express = express_of(self._handler)
                except BaseException:
                    await self.store.close()
                    raise
        return self._handler

    def begin_drain(self) -> None:
        """Begin to shut down: it is not ready any more, and connections are closed after their next response."""
        self.connection_limits.is_draining = True
        if self._handler is not None:
            self._handler.readiness.is_draining = True

    async def closing(self) -> None:
        """Shut down streams: each ends with its cursor, and no new one is accepted."""
        self.streams.is_closing = True
        if self._handler is not None:
            await self._handler.live.close()
        self.streams.close()

    @property
    def has_mails(self) -> bool:
        """Do mails wait to be sent?"""
        return self._handler is not None and self._handler.has_mails

    async def stop(self) -> None:
        """Close the store."""
        await self.closing()
        self.streams.stop()
        if not self._shares_limits:
            self._limits.stop()
        await self.metrics.stop()
        if self._handler is not None:
            await self._handler.stop()
            await self.store.close()
            self._handler = self._express = None
        self.streams.is_closing = False

    async def _make(self) -> Handler:
        fitted = await self.store.open(self.model, add_columns=self._add_columns)
        for done in fitted.done:
            self._tell(done)
        for doubt in fitted.doubts:
            log.warning("%s", doubt)
        tokens = await load_tokens(self.store, self.config.base_url)
        if tokens.address != self.config.base_url:
            self._set_address(tokens.address)
        config = self.config
        if config.smtp or config.mail_folder:
            importlib.import_module(MAIL).post_of(config, self.model.title)  # reports what is wrong with it
        elif self.model.sign_up is not None:
            log.warning("nobody can sign up: the setting smtp says how mails are sent")
        engine = await make_engine(self._engine, self.model, self.store, config, self._checks)
        engine.note_price = self.metrics.prices.observe
        context = Context(self.model, tokens, self.store, Issuers(config.issuers, self.model.roles))
        handler = self._handles(engine, context, config)  # a setting that is refused leaves nothing running
        handler.recent, handler.metrics = self._recent, self.metrics
        try:
            await context.revoked.start()
            await handler.start()
            if config.triggers:
                await handler.webhooks.start()
            await start_jobs(handler)
            if engine.usage is not None:
                engine.usage.start()
            self.metrics.start(handler.measured())
        except BaseException:
            await handler.stop()
            raise
        return handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = self._request(scope, receive)
            REQUEST.set(request)
            early = self._refused_early(request)
            try:
                reply = await self._in_time(request) if early is None else self._finished(request, early)
            except asyncio.CancelledError:
                if has_gone(send):
                    return
                raise
            if reply.stream is not None:
                await self.stream(reply, scope, receive, send)
            elif not reply_at_once(send, reply, body := b"" if scope["method"] == "HEAD" else reply.body):
                self.connection_limits.unsent += len(body)  # the client may not read it
                self.connection_limits.limit_unsent()
                try:
                    await send_reply(send, reply, body)
                finally:
                    self.connection_limits.unsent -= len(body)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)

    def respond(self, arrived: CompleteRequest) -> Reply | Awaitable[Reply]:
        """Answer a complete request without ASGI: the reply, or an awaitable of it."""
        path, _, query = arrived.url.decode("latin-1").partition("?")
        headers = arrived.headers
        is_refused = arrived.traits is None and b"content-encoding" in headers and is_coded(headers)
        read = refuse_coded if is_refused else Arrived(arrived.body)
        request = Request(arrived.method, path, query, headers, read, "", arrived.peer, None, arrived.lag)
        if self._prefix or self._proxies is not None:
            request = self._seen(request)
        REQUEST.set(request)
        reply: Reply | Waiting[Reply] | None = None
        if self.deadlines.is_full:
            reply = self._refused_early(request)
        elif arrived.traits is not None and self._express is not None:
            reply = self._express.answer(request, arrived.body, arrived.traits)
        if reply is None:
            reply = start(self._handle(request))
        return self._wait(request, reply) if isinstance(reply, Waiting) else self._finished(request, reply)

    async def _wait(self, request: Request, work: Awaitable[Reply]) -> Reply:
        """Await a reply in a task that was entered in the deadlines."""
        try:
            reply = await work
        except asyncio.CancelledError:
            task, deadlines = asyncio.current_task(), self.deadlines
            if task is None or not deadlines.is_over(task):
                raise
            reply = refusal_reply(request, _LATE if deadlines.waits_for_body(task) else _TOO_LONG)
        return self._finished(request, reply)

    def _refused_early(self, request: Request) -> Reply | None:
        """The reply to a request that is not served: its head is invalid, or too many run."""
        if request.fault is not None:
            return refusal_reply(request, request.fault)
        if self.deadlines.is_full and request.path not in ADMITTED_PATHS:
            return refusal_reply(request, Refusal(Code.UNAVAILABLE, "Too many requests are running; try again."))
        return None

    def _handle(self, request: Request) -> Coroutine[Any, Any, Reply]:
        handler = self._handler
        return self._first(request) if handler is None else handler.handle(request)

    async def _in_time(self, request: Request) -> Reply:
        """The reply to a request, for which there is as much time as the request timeout allows."""
        task = self.deadlines.enter()
        try:
            return await self._wait(request, self._handle(request))
        finally:
            self.deadlines.leave(task)

    def _finished(self, request: Request, reply: Reply) -> Reply:
        """The reply as it is sent; one that is whole is logged."""
        if reply.status in (401, 403):
            reply = with_resource_metadata(reply, self.config.base_url, request)
        if self._cors is not None:
            reply = self._cors.apply(request, reply)
        if b"x-request-id" in request.headers:
            reply = with_request_id(request, reply)
        size = 0 if request.method == "HEAD" else len(reply.body)
        self._note(request, reply.status, size)
        if reply.stream is None:
            self._log_access(request, reply.status, size)
        else:
            request.forget()
        return reply

    def _request(self, scope: Scope, receive: Receive) -> Request:
        root = scope.get("root_path", "")
        raw = scope.get("raw_path")
        path = raw.decode("latin-1") if raw is not None else quote(scope["path"])
        if root:
            root = quote(root)
            path = path.removeprefix(root)
        query = scope["query_string"].decode("latin-1")
        headers, fault = dict(scope["headers"]), None
        if len(headers) != len(scope["headers"]):
            headers, fault = joined_headers(scope["headers"]), repeated(name for name, _ in scope["headers"])
        body = refuse_coded if is_coded(headers) else functools.partial(self._read_body, receive, headers)
        received = scope.get(RECEIVED)
        lag = 0.0 if received is None else time.monotonic() - received
        peer = scope.get("client")
        return self._seen(Request(scope.get("method", "GET"), path, query, headers, body, root, peer, fault, lag))

    def _seen(self, request: Request) -> Request:
        """The request as its client sees it: without the prefix of the public address, and without proxies."""
        if self._prefix:
            request.root, request.path = self._prefix, without_prefix(request.path, self._prefix)
        if self._proxies is not None and request.peer:
            address, port = request.peer
            client, host = self._proxies.seen(address, request.headers)
            request.peer = (client, port if client == address else 0)
            if host:
                request.headers = {**request.headers, b"host": host.encode("latin-1")}
        return request

    async def _read_body(self, receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes:
        """Read the whole body; raises a Refusal once it is too large."""
        length = headers.get(b"content-length", b"0").strip()
        if len(length) > 18 or not length.isdigit() or int(length) > most:
            raise too_large(most)
        body = body_at_once(receive)
        if body is None:
            task = self.deadlines.reads_body()
            body = await read_arriving(receive, self.connection_limits, most)
            self.deadlines.has_body(task)
        if len(body) > most:
            raise too_large(most)
        return body

    async def stream(self, reply: Reply, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head of a streaming response by ASGI, and run the stream."""
        stream = reply.stream
        assert stream is not None
        try:
            close_after(send)
            await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
            forget_head(send)
            await stream.drive(receive, send, self.streams)
        except asyncio.CancelledError:
            if not has_gone(send):
                raise
        finally:
            stream.close()
        request = REQUEST.get()
        assert request is not None
        self._log_access(request, reply.status, 0)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        handshake = importlib.import_module(SOCKETS)
        request = self._request(scope, receive)
        REQUEST.set(request)
        try:
            handler = self._handler or await self.start()
        except StartError as error:
            log.error("%s", error)
            await handshake.deny(problem(Refusal(Code.UNAVAILABLE, "The service cannot answer now.")), scope, send)
            return
        status = await handshake.open_socket(
            handler, request, scope, receive, send, self.streams, self.deadlines, self._cors
        )
        self._log_access(request, status, 0)

    async def _first(self, request: Request) -> Reply:
        """Answer a request that arrives before the store is open."""
        await in_task()
        try:
            handler = await self.start()
        except StartError as error:
            log.error("%s", error)
            return refusal_reply(request, Refusal(Code.UNAVAILABLE, "The service cannot answer now."))
        return await handler.handle(request)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})
