"""The ASGI door: `Diptych(model, database=…)` is an application that any ASGI server runs, and that mounts into
Starlette and FastAPI.

    app = Diptych(model, database="sqlite:///blog.db")
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from diptych.api.reply import Reply, Stream, problem
from diptych.ask.asked import Limits
from diptych.check.limits import Check, Checks
from diptych.config import Config, load, misspelt
from diptych.db.connect import connect
from diptych.engine import Engine
from diptych.errors import Code, Refusal, StartError
from diptych.identity.issuers.trusted import Issuers
from diptych.identity.tokens import load_secret, load_tokens
from diptych.identity.viewer import Context
from diptych.live.live import Live, LiveSettings
from diptych.meter import Meter
from diptych.model.model import Model
from diptych.model.names import RESERVED_PATHS
from diptych.quota import ReplayQuota
from diptych.serve.body import Arriving, too_large
from diptych.serve.cors import Cors
from diptych.serve.deadline import Deadlines
from diptych.serve.explaining import ExplainingHandler
from diptych.serve.gate import Gate
from diptych.serve.handler import Handler, log, refused
from diptych.serve.handshake import deny, open_socket
from diptych.serve.heads import repeated
from diptych.serve.http import Request
from diptych.serve.logs import REQUEST, log_access, log_nothing
from diptych.serve.oauth import METADATA
from diptych.serve.outbox import Streams
from diptych.serve.persisted import Persisted
from diptych.serve.proxies import Proxies
from diptych.serve.shortcuts import body_at_once, close_after, forget_head, has_gone, reply_at_once
from diptych.watch import Watcher

_ALWAYS = ("/health/live", "/health/ready")
"""Paths that are answered however much there is to do."""
_TOO_LONG = Refusal(Code.TIMEOUT, "The request took too long.")
_LATE = Refusal(Code.BAD_REQUEST, "The body did not arrive in time.")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Diptych:
    """A model as an ASGI application. It opens its store at the lifespan's start, or at the first request.

    `checks` are limits of your own (`check/limits.py`), besides those of Diptych.

    Without a `config`, its settings are those of the environment and of `diptych.toml`; `database` wins over both.

    For development: `add_columns` mends a database that lacks something (tables, columns, indexes) and has `tell` say
    what it did; `explain` tells admins why they are refused.
    """

    def __init__(self, model: Model, *, database: str | None = None, config: Config | None = None,
                 checks: Iterable[Check] = (), add_columns: bool = False, explain: bool = False,
                 tell: Callable[[str], None] | None = None) -> None:  # fmt: skip
        if config is None:
            config = load({})
            for warning in misspelt():
                log.warning("%s", warning)
        self.model = model
        self.config = replace(config, database=database) if database else config
        self.store = connect(self.config)
        self._checks = tuple(checks)
        self._add_columns = add_columns
        self._tell = tell or log.info
        self._handles = ExplainingHandler if explain else Handler
        self._handler: Handler | None = None
        self._deadlines = Deadlines(self.config.request_timeout, self.config.max_requests)
        self.gate = Gate(config.max_connections, config.head_timeout, config.stream_timeout)
        """What the connections of a server process share, if its HTTP protocol is ours."""
        self._streams = Streams(
            buffer=config.stream_buffer, timeout=config.stream_timeout, heartbeat=config.heartbeat
        )
        self._proxies = Proxies(self.config.trusted_proxies) if self.config.trusted_proxies else None
        self._prefix = prefix_of(model, self.config.base_url)
        self.gate.health |= {self._prefix.encode() + path for path in self.gate.health}
        self._cors = Cors(self.config.cors_origins) if self.config.cors_origins else None
        self._log_access = log_access if config.access_log else log_nothing
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
        self.gate.stop()
        if self._handler is not None:
            await self._handler.live.stop()
            await self._handler.context.revoked.stop()
            self._handler.oauth.oauth.stop()
            await self.store.close()
            self._handler = None
        self._streams.is_closing = False

    async def _make(self) -> Handler:
        config = self.config
        fitted = await self.store.open(self.model, add_columns=self._add_columns)
        for done in fitted.done:
            self._tell(done)
        for doubt in fitted.doubts:
            log.warning("%s", doubt)
        checks = Checks(limits_of(config), self._checks)
        engine = Engine(self.model, self.store, checks, await load_secret(self.store), config.plan_cache,
                        Meter(config.planning_share), ReplayQuota(config.replay_size, config.replay_share))  # fmt: skip
        issuers = Issuers(config.issuers, self.model.roles)
        context = Context(self.model, await load_tokens(self.store, config.base_url), self.store, issuers)
        await context.revoked.start()
        settings = LiveSettings(config.heartbeat, config.max_streams, config.feed_keep, config.feed_rows,
                                config.stream_share, config.stream_memory, config.evaluation_share)
        live = Live(Watcher(engine), context, settings)
        await live.start()
        persisted = Persisted(
            self.store, config.persisted_queries, config.persisted_bytes, trusted_only=config.trusted_only
        )
        return self._handles(engine, context, max_body=config.max_body, introspection=config.introspection,
                             base_url=config.base_url, live=live, persisted=persisted)  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            handler, deadlines = self._handler, self._deadlines
            request = self._request(scope, receive)
            REQUEST.set(request)
            begun = time.perf_counter()
            is_full = (len(deadlines.running) >= deadlines.most and deadlines.is_full
                       and request.path not in _ALWAYS)  # fmt: skip
            task = deadlines.begin()
            try:
                if request.fault is not None:
                    reply = refused(request, request.fault)
                elif is_full:
                    reply = refused(request, Refusal(Code.UNAVAILABLE, "Too many requests are under way; try again."))
                else:
                    reply = await handler.handle(request) if handler else await self._first(request)
            except asyncio.CancelledError:
                if has_gone(send):
                    return
                if not deadlines.is_over(task):
                    raise
                reply = refused(request, _LATE if deadlines.waits_for_body(task) else _TOO_LONG)
            finally:
                deadlines.end(task)
            if self._cors is not None:
                reply = self._cors.tell(request, reply)
            if reply.stream is not None:
                request.forget()
                await self._drive(reply, reply.stream, receive, send)
                self._log_access(request, reply.status, 0, begun)
                return
            body = b"" if scope["method"] == "HEAD" else reply.body
            self._log_access(request, reply.status, len(body), begun)
            if not reply_at_once(send, reply, body):
                self.gate.unsent += len(body)  # it may be that the client does not read
                self.gate.limit_unsent()
                try:
                    await _send(send, reply, body)
                finally:
                    self.gate.unsent -= len(body)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)

    def _request(self, scope: Scope, receive: Receive) -> Request:
        root = scope.get("root_path", "")
        raw = scope.get("raw_path")
        path = raw.decode("latin-1") if raw is not None else quote(scope["path"])
        if root:
            root = quote(root)
            path = path.removeprefix(root)
        if self._prefix:
            root, path = self._prefix, without_prefix(path, self._prefix)
        query = scope["query_string"].decode("latin-1")
        headers, fault = dict(scope["headers"]), None
        if len(headers) != len(scope["headers"]):
            headers, fault = _joined(scope["headers"]), repeated(name for name, _ in scope["headers"])
        peer = scope.get("client")
        if self._proxies is not None and peer:
            client, host = self._proxies.seen(peer[0], headers)
            peer = (client, peer[1] if client == peer[0] else 0)
            headers |= {b"host": host.encode("latin-1")} if host else {}
        body = functools.partial(self._read_body, receive, headers)
        return Request(scope.get("method", "GET"), path, query, headers, body, root, peer, fault)

    async def _read_body(self, receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes:
        """The whole body, or a Refusal as soon as it is too large."""
        length = headers.get(b"content-length", b"0").strip()
        if len(length) > 18 or not length.isdigit() or int(length) > most:
            raise too_large(most)
        body = body_at_once(receive)
        if body is None:
            task = self._deadlines.reads_body()
            body = await Arriving(receive, self.gate, most).read()
            self._deadlines.has_body(task)
        if len(body) > most:
            raise too_large(most)
        return body

    async def _drive(self, reply: Reply, stream: Stream, receive: Receive, send: Send) -> None:
        """Send an answer that goes on."""
        try:
            close_after(send)
            await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
            forget_head(send)
            await stream.drive(receive, send, self._streams)
        except asyncio.CancelledError:
            if not has_gone(send):
                raise
        finally:
            stream.close()

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        request = self._request(scope, receive)
        REQUEST.set(request)
        begun = time.perf_counter()
        try:
            handler = self._handler or await self.start()
        except StartError as error:
            log.error("%s", error)
            await deny(problem(Refusal(Code.UNAVAILABLE, "The service cannot answer now.")), scope, send)
            return
        status = await open_socket(handler, request, scope, receive, send, self._streams, self._deadlines, self._cors)
        self._log_access(request, status, 0, begun)

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


def prefix_of(model: Model, base_url: str) -> str:
    """The path of the public address: what all paths that are told begin with."""
    prefix = quote(urlsplit(base_url).path, safe="/%:@!$&'()*+,;=~")
    first = prefix[1:].partition("/")[0]
    if first in RESERVED_PATHS or any(each.path == first for each in model.resources.values()):
        raise StartError(f"The path of base_url begins with /{first}, which is a path of the service itself.")
    return prefix


def without_prefix(path: str, prefix: str) -> str:
    """A path of the service itself, whether a proxy has taken the prefix of the public address away or not.

    The metadata of an issuer that has a path stands before that path (RFC 8414, §3.1).
    """
    if path == METADATA + prefix:
        return METADATA
    rest = path.removeprefix(prefix)
    return rest if len(rest) < len(path) and rest[:1] == "/" else path


def limits_of(config: Config) -> Limits:
    """How much may be asked of a service with these settings."""
    return Limits(
        depth=config.max_depth, complexity=config.max_complexity, aliases=config.max_aliases, roots=config.max_roots,
        directives=config.max_directives, selections=config.max_selections, tokens=config.max_tokens,
        string=config.max_string, document=config.max_document, nesting=config.max_nesting,
        filter_terms=config.max_terms, sort_keys=config.max_sort, page=config.max_page, offset=config.max_offset,
        in_list=config.max_in,
    )  # fmt: skip


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


def _joined(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; one that stands in several lines is a list (RFC 9110, §5.3; RFC 9113, §8.2.3)."""
    found: dict[bytes, bytes] = {}
    for name, value in pairs:
        between = b"; " if name == b"cookie" else b", "
        found[name] = found[name] + between + value if name in found else value
    return found
