"""The ASGI door: `Diptych(model, database=…)` is an application that any ASGI server runs, and that mounts into
Starlette and FastAPI.

    app = Diptych(model, database="sqlite:///blog.db")
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from diptych.api.reply import Reply, Stream, problem
from diptych.check.cost import Limits
from diptych.config import Config
from diptych.db.connect import connect
from diptych.engine import Engine
from diptych.errors import Code, Refusal, StartError
from diptych.identity.issuers.trusted import Issuers
from diptych.identity.tokens import load_secret, load_tokens
from diptych.identity.viewer import Context
from diptych.live.live import Live, LiveSettings
from diptych.model.model import Model
from diptych.serve.deadline import Deadlines
from diptych.serve.explaining import ExplainingHandler
from diptych.serve.handler import Handler, log, refused
from diptych.serve.handshake import deny, open_socket
from diptych.serve.http import Request
from diptych.serve.outbox import Streams
from diptych.serve.protocol import close_after, has_gone, reply_at_once
from diptych.watch import Watcher

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Diptych:
    """A model as an ASGI application. It opens its store at the lifespan's start, or at the first request.

    For development: `add_columns` adds columns that a table lacks, `explain` tells admins why they are refused.
    """

    def __init__(self, model: Model, *, database: str | None = None, config: Config | None = None,
                 add_columns: bool = False, explain: bool = False) -> None:  # fmt: skip
        config = config or Config()
        self.model = model
        self.config = replace(config, database=database) if database else config
        self.store = connect(self.config)
        self._add_columns = add_columns
        self._handles = ExplainingHandler if explain else Handler
        self._handler: Handler | None = None
        self._deadlines = Deadlines(self.config.request_timeout)
        self._streams = Streams(
            buffer=config.stream_buffer, timeout=config.stream_timeout, heartbeat=config.heartbeat
        )
        self._starting = asyncio.Lock()

    async def start(self) -> Handler:
        """Open the store and make everything ready; again, it does nothing."""
        async with self._starting:
            if self._handler is None:
                try:
                    self._handler = await self._make()
                except BaseException:
                    await self.store.close()
                    raise
        return self._handler

    async def closing(self) -> None:
        """The server goes away: every stream is told where to go on, and ends; no other one begins."""
        self._streams.is_closing = True
        if self._handler is not None:
            await self._handler.live.close()
        self._streams.close()

    async def stop(self) -> None:
        """Close the store."""
        await self.closing()
        self._streams.stop()
        self._deadlines.stop()
        if self._handler is not None:
            await self._handler.live.stop()
            await self._handler.context.revoked.stop()
            self._handler.oauth.oauth.stop()
            await self.store.close()
            self._handler = None
        self._streams.is_closing = False

    async def _make(self) -> Handler:
        config = self.config
        await self.store.open(self.model, add_columns=self._add_columns)
        limits = Limits(depth=config.max_depth, complexity=config.max_complexity, page=config.max_page)
        engine = Engine(self.model, self.store, limits, await load_secret(self.store), config.plan_cache)
        issuers = Issuers(config.issuers, self.model.roles)
        context = Context(self.model, await load_tokens(self.store, config.base_url), self.store, issuers)
        await context.revoked.start()
        settings = LiveSettings(config.heartbeat, config.max_streams, config.feed_keep, config.feed_rows)
        live = Live(Watcher(engine), context, settings)
        await live.start()
        return self._handles(engine, context, max_body=config.max_body, introspection=config.introspection,
                             base_url=config.base_url, live=live)  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = _request(scope, receive)
            handler, deadlines = self._handler, self._deadlines
            task = deadlines.begin()
            try:
                reply = await handler.handle(request) if handler else await self._first(request)
            except asyncio.CancelledError:
                if has_gone(send):
                    return
                if not deadlines.is_over(task):
                    raise
                reply = refused(request, Refusal(Code.TIMEOUT, "The request took too long."))
            finally:
                deadlines.end(task)
            if reply.stream is not None:
                await self._drive(reply, reply.stream, receive, send)
                return
            body = b"" if scope["method"] == "HEAD" else reply.body
            if not reply_at_once(send, reply, body):
                await _send(send, reply, body)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)

    async def _drive(self, reply: Reply, stream: Stream, receive: Receive, send: Send) -> None:
        """Send an answer that goes on."""
        try:
            close_after(send)
            await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
            await stream.drive(receive, send, self._streams)
        except asyncio.CancelledError:
            if not has_gone(send):
                raise
        finally:
            stream.close()

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        request = _request(scope, receive)
        try:
            handler = self._handler or await self.start()
        except StartError as error:
            log.error("%s", error)
            await deny(problem(Refusal(Code.UNAVAILABLE, "The service cannot answer now.")), scope, send)
            return
        await open_socket(handler, request, scope, receive, send, self._streams, self._deadlines)

    async def _first(self, request: Request) -> Reply:
        """The answer to a request that comes before the store is open."""
        try:
            handler = await self.start()
        except StartError as error:
            log.error("%s", error)
            return refused(request, Refusal(Code.UNAVAILABLE, "The service cannot answer now."))
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


async def _send(send: Send, reply: Reply, body: bytes) -> None:
    """An answer in ASGI messages."""
    length = (b"content-length", b"%d" % len(reply.body))
    headers = [*reply.headers, length] if reply.status not in (204, 304) else list(reply.headers)
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except asyncio.CancelledError:
        if not has_gone(send):
            raise


def _request(scope: Scope, receive: Receive) -> Request:
    root = scope.get("root_path", "")
    raw = scope.get("raw_path")
    path = raw.decode("latin-1") if raw is not None else quote(scope["path"])
    if root:
        root = quote(root)
        path = path.removeprefix(root)
    query = scope["query_string"].decode("latin-1")
    headers = dict(scope["headers"])
    if len(headers) != len(scope["headers"]):
        headers = _joined(scope["headers"])
    body = functools.partial(_read_body, receive, headers)
    return Request(scope.get("method", "GET"), path, query, headers, body, root, scope.get("client"))


def _joined(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; one that stands in several lines is a list (RFC 9110, §5.3; RFC 9113, §8.2.3)."""
    found: dict[bytes, bytes] = {}
    for name, value in pairs:
        between = b"; " if name == b"cookie" else b", "
        found[name] = found[name] + between + value if name in found else value
    return found


async def _read_body(receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes:
    """The whole body, or a Refusal as soon as it is too large."""
    length = headers.get(b"content-length", b"0")
    if len(length) > 18 or not length.isdigit() or int(length) > most:
        raise _too_large(most)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        body = await _read_rest(receive, body, most)
    if len(body) > most:
        raise _too_large(most)
    return body


async def _read_rest(receive: Receive, first: bytes, most: int) -> bytes:
    chunks, size = [first], len(first)
    more = True
    while more and size <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(Code.BAD_REQUEST, "The client went away.")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
    return b"".join(chunks)


def _too_large(most: int) -> Refusal:
    return Refusal(Code.PAYLOAD_TOO_LARGE, f"The body may have {most} bytes.")
