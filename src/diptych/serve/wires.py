"""Connections, as streams see them: the four Wires.

Under uvicorn, with the protocols of `protocol.py`, a stream writes straight to the transport: no task, no message of
ASGI, one write for each event; and it can end the connection of a client that reads nothing. Under any other server
messages go through `send`, by a task that lives while there is something to send.

    body_wire(send, …)     the body of an answer: server-sent events
    frame_wire(send, …)    the frames of a WebSocket
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected

from diptych.serve.outbox import Outbox, Parts, Wire
from diptych.serve.protocol import Protocol
from diptych.serve.socket_protocol import SocketProtocol

Message = MutableMapping[str, Any]
_MOST_KEPT = 262_144
"""Bytes that the system keeps for a client that does not read; left alone, it would keep megabytes."""
_AT_ONCE = struct.pack("ii", 1, 0)
"""Linger for no time: the system forgets what a client has not read, too."""
Send = Callable[[Message], Awaitable[None]]


class BodyWire(Wire):
    """What ends by a last word, and then closes."""

    def finish(self, last: bytes) -> None:
        raise NotImplementedError


class FrameWire(Wire):
    """What ends by a code and a reason, behind a last message if there is one."""

    def close(self, code: int, reason: str, last: bytes) -> None:
        raise NotImplementedError


def body_wire(send: Send, box: Outbox) -> BodyWire:
    """The body of the answer whose head was sent."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle and cycle.chunked_encoding:
        protocol = getattr(cycle.on_response, "__self__", None)
        if isinstance(protocol, Protocol):
            return DirectBody(cycle, protocol, box)
    return SentBody(send, box)


def frame_wire(send: Send, box: Outbox) -> FrameWire:
    """The WebSocket that was accepted."""
    protocol = getattr(send, "__self__", None)
    if type(protocol) is not SocketProtocol:
        return SentFrames(send, box)
    return DirectFrames(protocol, box)


def _set(transport: asyncio.Transport, option: int, value: int | bytes) -> None:
    found = transport.get_extra_info("socket")
    if found is not None:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, option, value)


class _Direct:
    """A transport that is written to without a detour."""

    __slots__ = ("_box", "_protocol", "_taken", "_transport")

    def __init__(self, protocol: Protocol | SocketProtocol, box: Outbox) -> None:
        self._protocol = protocol
        self._transport = protocol.transport
        self._box = box
        self._taken = 0
        protocol.resumed = box.flush
        _set(self._transport, socket.SO_SNDBUF, min(box.streams.buffer, _MOST_KEPT))

    def sent(self) -> int:
        return self._taken - self._transport.get_write_buffer_size()

    def unsent(self) -> int:
        return 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()

    def left(self) -> int:
        return 0 if self._protocol.is_lost else self._transport.get_write_buffer_size()

    def abort(self) -> None:
        if self._protocol.is_lost:  # its number may be that of another socket by now
            return
        _set(self._transport, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._taken += len(data)
            self._transport.write(data)

    def _abort_later(self) -> None:
        """A client that reads nothing does not take its end either."""
        asyncio.get_running_loop().call_later(self._box.streams.grace, self.abort)


class DirectBody(_Direct, BodyWire):
    """Chunks of an answer of uvicorn's."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle, protocol: Protocol, box: Outbox) -> None:
        super().__init__(protocol, box)
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
        cycle.message_event.set()  # whoever waits for the client to go
        self._transport.close()
        self._abort_later()


class DirectFrames(_Direct, FrameWire):
    """Frames of a WebSocket of uvicorn's. They need no mask and no extension, so that a frame is its length and its
    text (RFC 6455, §5.2)."""

    __slots__ = ("_frames",)

    def __init__(self, protocol: SocketProtocol, box: Outbox) -> None:
        super().__init__(protocol, box)
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
        protocol.writable.set()  # there is nothing to wait for: this is the last that is written
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


class _Sent:
    """What goes out by `send`, one message after the other. The last one ends the task of the connection."""

    __slots__ = ("_box", "_count", "_ending", "_main", "_next", "_send", "_task")

    def __init__(self, send: Send, box: Outbox) -> None:
        self._send = send
        self._box = box
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
                self._box.flush()
        except Exception:  # the client has gone: `receive` tells
            self._next = None
        finally:
            self._task = None

    def _end(self, *messages: Message) -> None:
        loop = asyncio.get_running_loop()
        self._next = None
        self._ending = loop.create_task(self._last(self._task, messages))
        loop.call_later(self._box.streams.grace, self.abort)

    async def _last(self, before: asyncio.Task[None] | None, messages: tuple[Message, ...]) -> None:
        with suppress(Exception):
            if before is not None:
                await asyncio.wait((before,))
            for message in messages:
                await self._send(message)
        if self._main is not None:
            self._main.cancel()


class SentBody(_Sent, BodyWire):
    """The body of an answer, for any server."""

    __slots__ = ()

    def write(self, parts: Parts) -> None:
        self._put({"type": "http.response.body", "body": b"".join(parts), "more_body": True})

    def finish(self, last: bytes) -> None:
        self._end({"type": "http.response.body", "body": last, "more_body": False})


class SentFrames(_Sent, FrameWire):
    """The frames of a WebSocket, for any server."""

    __slots__ = ()

    def write(self, parts: Parts) -> None:
        self._put({"type": "websocket.send", "text": b"".join(parts).decode()})

    def close(self, code: int, reason: str, last: bytes) -> None:
        told = ({"type": "websocket.send", "text": last.decode()},) if last else ()
        self._end(*told, {"type": "websocket.close", "code": code, "reason": reason})
