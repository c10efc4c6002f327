"""The transports of streams: a response body or WebSocket frames, written directly or by ASGI messages.

Under uvicorn, with the protocols of `serve/http`, a stream writes straight to the asyncio transport: no task, no ASGI
message, one write for each event; and it can abort the connection of a client that does not read. Under any other
server messages go through `send`, by a task that lives while there is something to send.

    body_transport(send, …)     a response body: server-sent events
    frame_transport(send, …)    the frames of a WebSocket
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected

from diptych.serve.asgi import Message, Send
from diptych.serve.http.protocol import Protocol
from diptych.serve.stream.send_queue import Parts, SendQueue, Transport

if TYPE_CHECKING:
    from diptych.serve.http.websocket_protocol import SocketProtocol

_MOST_KEPT = 262_144
"""The largest send buffer of the system (SO_SNDBUF); by default it grows to megabytes."""
_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: the system drops its unsent data, too."""


class BodyTransport(Transport):
    """A response body, which ends with a last chunk."""

    def finish(self, last: bytes) -> None:
        raise NotImplementedError


class FrameTransport(Transport):
    """A WebSocket, which ends with a close frame, after a last message if there is one."""

    def close(self, code: int, reason: str, last: bytes) -> None:
        raise NotImplementedError


def body_transport(send: Send, queue: SendQueue) -> BodyTransport:
    """The transport for the body of a response whose head was sent."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle and cycle.chunked_encoding:
        protocol = getattr(cycle.on_response, "__self__", None)
        if isinstance(protocol, Protocol):
            return DirectBody(cycle, protocol, queue)
    return AsgiBody(send, queue)


def _set(transport: asyncio.Transport, option: int, value: int | bytes) -> None:
    connection = transport.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, option, value)


class _Direct:
    """Writes directly to the asyncio transport."""

    __slots__ = ("_protocol", "_streams", "_taken", "_transport")

    def __init__(self, protocol: Protocol | SocketProtocol, queue: SendQueue) -> None:
        self._protocol = protocol
        self._transport = protocol.transport
        self._streams = queue.streams
        self._taken = 0
        protocol.resumed = queue.flush
        _set(self._transport, socket.SO_SNDBUF, min(queue.streams.buffer, _MOST_KEPT))

    def sent(self) -> int:
        return self._taken - self._transport.get_write_buffer_size()

    def unsent(self) -> int:
        return 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()

    def left(self) -> int:
        return 0 if self._protocol.is_lost else self._transport.get_write_buffer_size()

    def abort(self) -> None:
        if self._protocol.is_lost:  # the file descriptor may be reused by now
            return
        _set(self._transport, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._taken += len(data)
            self._transport.write(data)

    def _abort_later(self) -> None:
        """Abort after the grace period: a client that does not read does not see the end of the stream either."""
        asyncio.get_running_loop().call_later(self._streams.grace, self.abort)


class DirectBody(_Direct, BodyTransport):
    """A chunked response body, under uvicorn."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle, protocol: Protocol, queue: SendQueue) -> None:
        super().__init__(protocol, queue)
        self._cycle = cycle

    def is_free(self) -> bool:
        return not self._cycle.flow.write_paused

    def write(self, parts: Parts) -> None:
        size = sum(map(len, parts))
        self._write(b"".join((b"%x\r\n" % size, *parts, b"\r\n")))

    def finish(self, last: bytes) -> None:
        if last:
            self.write((last,))
        self._write(b"0\r\n\r\n")
        cycle = self._cycle
        cycle.response_complete, cycle.keep_alive = True, False
        cycle.message_event.set()  # wakes `receive`, which waits for the disconnect
        self._transport.close()
        self._abort_later()


class DirectFrames(_Direct, FrameTransport):
    """The frames of a WebSocket, under uvicorn.

    A server's frames have no mask, and ours no extension: a frame is its length and its text (RFC 6455, §5.2).
    """

    __slots__ = ("_frames",)

    def __init__(self, protocol: SocketProtocol, queue: SendQueue) -> None:
        super().__init__(protocol, queue)
        self._frames = protocol

    def is_free(self) -> bool:
        return self._frames.writable.is_set()

    def write(self, parts: Parts) -> None:
        if not self._frames.close_sent:
            self._write(b"".join((_head(sum(map(len, parts))), *parts)))

    def close(self, code: int, reason: str, last: bytes) -> None:
        protocol = self._frames
        if protocol.close_sent or protocol.disconnected:
            return
        if last:
            self.write((last,))
        protocol.writable.set()  # do not wait: nothing is written after this
        step = protocol.send({"type": "websocket.close", "code": code, "reason": reason})
        with suppress(StopIteration, ClientDisconnected):
            step.send(None)
        self._abort_later()


def _head(size: int) -> bytes:
    if size < 126:
        return bytes((0x81, size))
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


class _Asgi:
    """Sends ASGI messages one after the other. After the last one, the task of the connection is cancelled."""

    __slots__ = ("_count", "_ending", "_main", "_next", "_queue", "_send", "_task")

    def __init__(self, send: Send, queue: SendQueue) -> None:
        self._send = send
        self._queue = queue
        self._main = asyncio.current_task()
        self._count = 0
        self._next: Message | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    def is_free(self) -> bool:
        return self._next is None and (self._task is None or self._task is asyncio.current_task())

    def sent(self) -> int:
        return self._count

    def unsent(self) -> int:
        return int(self._task is not None)

    def left(self) -> int:
        return 0 if self._next is None else len(self._next.get("body") or self._next.get("text") or "")

    def abort(self) -> None:
        for task in (self._task, self._ending, self._main):
            if task is not None:
                task.cancel()

    def _put(self, message: Message) -> None:
        self._next = message
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._pump())

    async def _pump(self) -> None:
        try:
            while self._next is not None:
                message, self._next = self._next, None
                await self._send(message)
                self._count += 1
                self._queue.flush()
        except Exception:  # the client has disconnected: `receive` reports it
            self._next = None
        finally:
            self._task = None

    def _end(self, *messages: Message) -> None:
        loop = asyncio.get_running_loop()
        self._next = None
        self._ending = loop.create_task(self._last(self._task, messages))
        loop.call_later(self._queue.streams.grace, self.abort)

    async def _last(self, before: asyncio.Task[None] | None, messages: tuple[Message, ...]) -> None:
        with suppress(Exception):
            if before is not None:
                await asyncio.wait((before,))
            for message in messages:
                await self._send(message)
        if self._main is not None:
            self._main.cancel()


class AsgiBody(_Asgi, BodyTransport):
    """A response body, under any ASGI server."""

    __slots__ = ()

    def write(self, parts: Parts) -> None:
        self._put({"type": "http.response.body", "body": b"".join(parts), "more_body": True})

    def finish(self, last: bytes) -> None:
        self._end({"type": "http.response.body", "body": last, "more_body": False})


class AsgiFrames(_Asgi, FrameTransport):
    """The frames of a WebSocket, under any ASGI server."""

    __slots__ = ()

    def write(self, parts: Parts) -> None:
        self._put({"type": "websocket.send", "text": b"".join(parts).decode()})

    def close(self, code: int, reason: str, last: bytes) -> None:
        messages = ({"type": "websocket.send", "text": last.decode()},) if last else ()
        self._end(*messages, {"type": "websocket.close", "code": code, "reason": reason})
