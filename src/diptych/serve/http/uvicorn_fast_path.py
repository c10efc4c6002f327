"""A fast path through uvicorn for requests and responses that fit in one read and one write.

Under any other ASGI server these functions return False or None, and the application falls back to ASGI messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from diptych.api.reply import Header, Reply, lines_of
from diptych.serve.asgi import Send


def reply_at_once(send: object, reply: Reply, body: bytes) -> bool:
    """Write a whole response at once, if `send` is uvicorn's own and the connection is writable; else return False.

    Two ASGI messages are two writes, each more expensive than a point read, and uvicorn searches every header.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.access_log:
        return False
    if cycle.flow.write_paused or cycle.disconnected or cycle.response_started:
        return False
    if cycle.more_body:  # the rest of the body is not a request
        cycle.keep_alive = False
    head = encoded_head(reply, cycle.default_headers, cycle.keep_alive)
    if head is None:
        return False  # uvicorn refuses it
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(head + body)
    cycle.message_event.set()
    if not cycle.keep_alive and not _lingers(cycle):
        cycle.transport.close()
    cycle.on_response()
    return True


_STATUS = {status: line.removesuffix(b"\r\n") for status, line in STATUS_LINE.items()}
_line, _lines = b": ".join, b"\r\n".join
_defaults: list[tuple[Collection[Header], bytes]] = [((), b"")]
"""The default headers that were sent last, and their lines. uvicorn has Date among them, in a new list each second."""


def encoded_head(reply: Reply, default_headers: Collection[Header], keep_alive: bool) -> bytes | None:
    """The head of a whole response, or None if a header is not valid: a line of it must be one line."""
    status, headers, encoded = reply.status, reply.headers, reply.encoded
    if encoded is not None and encoded[0] is headers and status == 200 and keep_alive:
        defaults, lines = _defaults[0]
        if defaults is not default_headers:
            lines = lines_of(default_headers)
            _defaults[0] = default_headers, lines
        return b"%b\r\n%b%bcontent-length: %d\r\n\r\n" % (_STATUS[200], lines, encoded[1], len(reply.body))
    count = len(headers) + 2
    end = b"\r\n" if keep_alive else b"connection: close\r\n\r\n"
    if status != 204 and status != 304:
        count += 1
        end = b"content-length: %d\r\n%b" % (len(reply.body), end)
    if default_headers:
        count += len(default_headers)
        head = _lines([_STATUS[status], *map(_line, default_headers), *map(_line, headers), end])
    else:
        head = _lines([_STATUS[status], *map(_line, headers), end])
    return head if head.count(b"\n") == count + (not keep_alive) else None


def _lingers(cycle: RequestResponseCycle) -> bool:
    """Does the protocol close the connection itself, with a lingering close?

    If input is still to come it must be read and dropped: closing at once would reset the connection, and the client
    could lose the response.
    """
    protocol: Any = getattr(cycle.on_response, "__self__", None)
    return hasattr(protocol, "lingering_close") and (cycle.more_body or protocol.discard_input)


def body_at_once(receive: object) -> bytes | None:
    """The whole body, if `receive` is uvicorn's own and the body has arrived; else None."""
    cycle = getattr(receive, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.more_body or cycle.disconnected or cycle.response_complete:
        return None
    cycle.message_event.clear()
    body, cycle.body = bytes(cycle.body), bytearray()
    return body


def has_gone(send: object) -> bool:
    """Has the client disconnected? Known only if `send` is uvicorn's own."""
    cycle = getattr(send, "__self__", None)
    return type(cycle) is RequestResponseCycle and cycle.disconnected


def close_after(send: object) -> None:
    """Close the connection after this response, if `send` is uvicorn's own: used for streams."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle:
        cycle.keep_alive = False


def forget_head(send: object) -> None:
    """Release the head of the current request, if `send` is uvicorn's own.

    It may be 64 KiB, and a stream would keep it for its whole life.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle:
        scope: Any = cycle.scope
        protocol: Any = getattr(cycle.on_response, "__self__", None)
        if protocol.scope is scope:  # no request is pipelined after this one
            protocol.url, protocol.headers = b"", []
        method = scope["method"]
        scope.clear()
        scope["method"] = method


async def send_reply(send: Send, reply: Reply, body: bytes) -> None:
    """Send a reply as ASGI messages, which every server takes."""
    length = (b"content-length", b"%d" % len(reply.body))
    headers = [*reply.headers, length] if reply.status not in (204, 304) else list(reply.headers)
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except asyncio.CancelledError:
        if not has_gone(send):
            raise
