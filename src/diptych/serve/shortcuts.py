"""Shortcuts through uvicorn, for what is asked and answered at once. Under any other server, they say no, and the
messages of ASGI do the same."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from diptych.api.reply import Reply


def reply_at_once(send: object, reply: Reply, body: bytes) -> bool:
    """Write a whole answer in one go, if `send` is uvicorn's own and nothing stands in the way; else say no.

    Two ASGI messages are two writes, each of which costs more than a point read, and every header is searched.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.access_log:
        return False
    if cycle.flow.write_paused or cycle.disconnected or cycle.response_started:
        return False
    if cycle.more_body:  # what is still to come of it is no request
        cycle.keep_alive = False
    lines = [STATUS_LINE[reply.status]]
    for name, value in (*cycle.default_headers, *reply.headers):
        lines += (name, b": ", value, b"\r\n")
    if reply.status not in (204, 304):
        lines.append(b"content-length: %d\r\n" % len(reply.body))
    if not cycle.keep_alive:
        lines.append(b"connection: close\r\n")
    head = b"".join(lines)
    if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r\n\r\n"):
        return False  # a header that is none: uvicorn refuses it
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"%b\r\n%b" % (head, body))
    cycle.message_event.set()
    if not cycle.keep_alive and not _leaves(cycle):
        cycle.transport.close()
    cycle.on_response()
    return True


def _leaves(cycle: RequestResponseCycle) -> bool:
    """Does the connection end by itself? Where more is still to come, that is read and dropped: to close at once would
    take the answer from the client, too."""
    protocol: Any = getattr(cycle.on_response, "__self__", None)
    return hasattr(protocol, "leave") and (cycle.more_body or protocol.is_deaf)


def body_at_once(receive: object) -> bytes | None:
    """The whole body, if `receive` is uvicorn's own and it has arrived."""
    cycle = getattr(receive, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.more_body or cycle.disconnected or cycle.response_complete:
        return None
    cycle.message_event.clear()
    body, cycle.body = bytes(cycle.body), bytearray()
    return body


def has_gone(send: object) -> bool:
    """Has the client gone away? Only uvicorn's own `send` can tell."""
    cycle = getattr(send, "__self__", None)
    return type(cycle) is RequestResponseCycle and cycle.disconnected


def close_after(send: object) -> None:
    """Let the connection end with this answer, if `send` is uvicorn's own: after a stream, nobody waits for more."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle:
        cycle.keep_alive = False


def forget_head(send: object) -> None:
    """Let go of the head of the request that is being answered, if `send` is uvicorn's own: it may be 64 KiB, and a
    stream would hold it as long as it lasts."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle:
        scope: Any = cycle.scope
        protocol: Any = getattr(cycle.on_response, "__self__", None)
        if protocol.scope is scope:  # no other request was sent behind this one
            protocol.url, protocol.headers = b"", []
        method = scope["method"]
        scope.clear()
        scope["method"] = method
