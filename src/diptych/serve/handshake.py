"""The door of WebSockets: token → path → origin → accept → subprotocol → Socket.

Whoever has no business here is refused by HTTP, before the upgrade: a bad token by 401, a path other than `/graphql` by
404, a foreign origin by 403. No cookie opens anything, so there is nothing that another site could ride on; but
browsers let any site talk to any WebSocket, also to one behind a firewall, where they would not let it read a plain
answer. So what holds for those holds here: no other origin reads them, but those of the setting `cors_origins`.
Programs send no Origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from diptych.api.graphql.http import Parameters
from diptych.api.graphql.socket import NOT_ACCEPTABLE, PROTOCOL
from diptych.api.reply import Reply, problem
from diptych.asking import ASKER, peer_name
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller, InvalidToken
from diptych.live.group import Subscription
from diptych.serve.cors import Cors
from diptych.serve.deadline import Deadlines
from diptych.serve.graphql import Outcome
from diptych.serve.handler import Handler, internal, refused
from diptych.serve.http import Request
from diptych.serve.outbox import Streams
from diptych.serve.rest import not_found
from diptych.serve.socket import Operation, Receive, Socket
from diptych.serve.socket_protocol import handshake_is_over, takes_turns_as
from diptych.serve.wires import Message, Send
from diptych.watch import ReadyWatch

_SWITCHED = 101


async def open_socket(
    handler: Handler, request: Request, scope: Message, receive: Receive, send: Send, streams: Streams,
    deadlines: Deadlines, cors: Cors | None = None,
) -> int:  # fmt: skip
    """Serve one WebSocket to its end, or refuse it; gives the status that its handshake was answered with."""
    peer = peer_name(request.peer)
    service = _Service(handler, peer)
    takes_turns_as(send, peer)
    refusal = await _refusal(service, handler, request, streams, deadlines, cors)
    if refusal is not None:
        reply = refused(request, refusal) if isinstance(refusal, InvalidToken) else problem(refusal)
        return await deny(reply, scope, send)
    if PROTOCOL not in scope["subprotocols"]:
        await send({"type": "websocket.accept"})
        code, reason = NOT_ACCEPTABLE
        await send({"type": "websocket.close", "code": code, "reason": reason})
        return _SWITCHED
    await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
    scope.clear()  # it lasts as long as the socket, and is not needed again
    sent = request.headers.get(b"authorization")
    request.forget()
    await Socket(service, streams, deadlines, sent).drive(receive, send)
    return _SWITCHED


async def _refusal(
    service: _Service, handler: Handler, request: Request, streams: Streams, deadlines: Deadlines, cors: Cors | None
) -> Refusal | None:
    """Why a handshake is refused, which is known in the time of a request."""
    if request.fault is not None:
        return request.fault
    if deadlines.is_full:
        return Refusal(Code.UNAVAILABLE, "Too many requests are under way; try again.")
    task = deadlines.begin()
    try:
        await service.caller(request.headers.get(b"authorization"))
        if request.path != "/graphql":
            return not_found()
        if not _is_own(request, handler.base_url) and not (cors and cors.allows(request.headers[b"origin"])):
            return Refusal(Code.FORBIDDEN, "A page of another origin may not open a WebSocket here.")
        return Refusal(Code.UNAVAILABLE, "The service is going away; try again.") if streams.is_closing else None
    except Refusal as refusal:
        return refusal
    except asyncio.CancelledError:
        if not deadlines.is_over(task):
            raise
        return Refusal(Code.TIMEOUT, "The handshake took too long.")
    except Exception:
        return internal("the handshake of a WebSocket")
    finally:
        deadlines.end(task)


async def deny(reply: Reply, scope: Message, send: Send) -> int:
    """Refuse a handshake by an answer of HTTP, where the server can; gives its status."""
    if "websocket.http.response" not in scope.get("extensions", ()):
        await send({"type": "websocket.close", "code": 1008})
        return 403
    start = {"type": "websocket.http.response.start", "status": reply.status, "headers": list(reply.headers)}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": reply.body})
    handshake_is_over(send)
    return reply.status


def _is_own(request: Request, base_url: str) -> bool:
    """Does a page of this service ask, or no page at all?"""
    origin = request.headers.get(b"origin")
    if origin is None:
        return True
    hosts = {_host(request.headers.get(b"host", b"").decode("latin-1")), _host(urlsplit(base_url).netloc)} - {""}
    scheme, separator, host = origin.decode("latin-1").partition("://")
    return bool(separator) and scheme in ("http", "https") and _host(host) in hosts


def _host(netloc: str) -> str:
    """A host with its port, unless that is the usual one."""
    return netloc.lower().removesuffix(":80").removesuffix(":443")


class _Service:
    """What sockets ask of the handler."""

    __slots__ = ("_handler", "_peer")

    def __init__(self, handler: Handler, peer: str) -> None:
        self._handler = handler
        self._peer = peer

    async def caller(self, sent: bytes | None) -> Caller:
        context = self._handler.context
        ASKER.set(self._peer)
        caller = context.caller(sent) or await context.find(sent or b"")
        if caller.asker:
            ASKER.set(caller.asker)
        return caller

    async def run(self, parameters: Parameters, caller: Caller) -> Outcome:
        return await self._handler.graphql.run(parameters, caller)

    async def subscribe(
        self, ready: ReadyWatch, inputs: Mapping[str, Any], caller: Caller, sink: Operation
    ) -> Subscription:
        return await self._handler.live.subscribe(ready, inputs, caller, sink)
