"""The WebSocket handshake: token → path → origin → accept → subprotocol → Socket.

A handshake is refused with an HTTP status, before the upgrade: an invalid token with 401, a path other than `/graphql`
with 404, a foreign origin with 403. The API accepts no cookie, so cross-site WebSocket hijacking gains nothing; but
browsers let any site connect to any WebSocket, also behind a firewall, where CORS would block a plain response. So the
rule of CORS applies here, too: no other origins but those of `cors_origins`. Programs send no Origin.
"""

from __future__ import annotations

import asyncio

from diptych.api.graphql.socket import LEGACY, LEGACY_ERROR, LEGACY_PROTOCOL, NOT_ACCEPTABLE, PROTOCOL
from diptych.api.reply import Reply, problem
from diptych.errors import Code, Refusal
from diptych.fair.caller import peer_name
from diptych.identity.issuer import origin_of
from diptych.identity.viewer import InvalidToken
from diptych.serve.asgi import Message, Receive, Send
from diptych.serve.endpoint.rest import row_not_found
from diptych.serve.handler import Handler
from diptych.serve.http.cors import Cors
from diptych.serve.http.deadlines import Deadlines
from diptych.serve.http.request import Request
from diptych.serve.http.websocket_protocol import handshake_is_over, set_frame_caller
from diptych.serve.refusals import internal, refusal_reply
from diptych.serve.stream.send_queue import StreamLimits
from diptych.serve.stream.websocket import Service, Socket

_SWITCHED = 101


async def open_socket(
    handler: Handler,
    request: Request,
    scope: Message,
    receive: Receive,
    send: Send,
    streams: StreamLimits,
    deadlines: Deadlines,
    cors: Cors | None = None,
) -> int:
    """Serve one WebSocket until it is closed, or refuse it; returns the status of the handshake."""
    peer = peer_name(request.peer)
    service = Service(handler, peer, request)
    set_frame_caller(send, peer)
    refusal = await _refusal(service, handler, request, streams, deadlines, cors)
    if refusal is not None:
        reply = refusal_reply(request, refusal) if isinstance(refusal, InvalidToken) else problem(refusal)
        return await deny(reply, scope, send)
    if PROTOCOL not in scope["subprotocols"] and LEGACY_PROTOCOL in scope["subprotocols"]:
        await send({"type": "websocket.accept", "subprotocol": LEGACY_PROTOCOL})  # else a browser hears no reason
        await send({"type": "websocket.send", "text": LEGACY_ERROR})
        await send({"type": "websocket.close", "code": LEGACY[0], "reason": LEGACY[1]})
        return _SWITCHED
    if PROTOCOL not in scope["subprotocols"]:
        await send({"type": "websocket.accept"})
        code, reason = NOT_ACCEPTABLE
        await send({"type": "websocket.close", "code": code, "reason": reason})
        return _SWITCHED
    await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
    scope.clear()  # not needed again; it would live as long as the socket
    sent = request.headers.get(b"authorization")
    request.forget()
    await Socket(service, streams, deadlines, sent).drive(receive, send)
    return _SWITCHED


async def _refusal(
    service: Service, handler: Handler, request: Request, streams: StreamLimits, deadlines: Deadlines, cors: Cors | None
) -> Refusal | None:
    """Why a handshake is refused, or None; within the request timeout."""
    if request.fault is not None:
        return request.fault
    if deadlines.is_full:
        return Refusal(Code.UNAVAILABLE, "Too many requests are running; try again.")
    task = deadlines.enter()
    try:
        await service.caller(request.headers.get(b"authorization"))
        if request.path != "/graphql":
            return row_not_found()
        if not _is_own(request, handler.config.base_url) and not (cors and cors.allows(request.headers[b"origin"])):
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
        deadlines.leave(task)


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
    """Is the Origin this service, or absent?"""
    origin = request.headers.get(b"origin")
    if origin is None:
        return True
    own = origin_of(base_url).partition("://")[2]
    hosts = {_host(request.headers.get(b"host", b"").decode("latin-1")), _host(own)} - {""}
    scheme, separator, host = origin.decode("latin-1").partition("://")
    return bool(separator) and scheme in ("http", "https") and _host(host) in hosts


def _host(netloc: str) -> str:
    """A host with its port, unless it is a default port."""
    return netloc.lower().removesuffix(":80").removesuffix(":443")
