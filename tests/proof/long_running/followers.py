"""Followers: clients of live changes that come back with their last cursor, whatever was killed meanwhile.

    follower = Follower(watching, "socket", lambda: service.port, start)
    task = asyncio.create_task(follower.run())      # connects, listens, connects again …
    follower.told                                   # every change that it was told, in that order

They speak the bare protocols over connections of their own: server-sent events in either style, graphql-transport-ws.
What is not whole when a connection breaks was not told, as with an EventSource. Of what is told, a follower keeps the
kind, the id and the moment of the change, and the version of the row if that was shown.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

Style = Literal["rest", "graphql", "socket"]
STYLES: tuple[Style, ...] = ("rest", "graphql", "socket")
Row = dict[str, Any]
PASSING = ("UNAVAILABLE", "TIMEOUT")
"""Codes after which one comes again."""


class Told(NamedTuple):
    """A change, as a follower was told of it."""

    kind: str
    id: str
    at: str
    version: int | None


@dataclass(frozen=True)
class Watching:
    """What is followed, and by whom: the same in both styles. `sees` says of a row, as the feed stores it, whether it
    is followed; `reads`, whether the viewer may read it."""

    name: str
    resource: str
    bearer: str
    where: Any
    sees: Callable[[Row], bool]
    reads: Callable[[Row], bool]
    kinds: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        return self.resource + "s"

    def target(self) -> str:
        """The address of its stream in the resource style."""
        where = f"&where={quote(json.dumps(self.where))}" if self.where is not None else ""
        kinds = f"&kinds={','.join(self.kinds)}" if self.kinds else ""
        return f"/{self.table}/changes?fields=version{where}{kinds}"

    def operation(self, after: str) -> dict[str, Any]:
        """Its subscription in the query style."""
        types = {"after": "String", "where": f"{self.resource.title()}Where", "kinds": "[ChangeKind!]"}
        values = {"after": after, "where": self.where, "kinds": list(self.kinds)}
        given = {name: value for name, value in values.items() if value}
        declared = ", ".join(f"${name}: {types[name]}" for name in given)
        arguments = ", ".join(f"{name}: ${name}" for name in given)
        field = f"{self.resource}Changed" + (f"({arguments})" if given else "")
        head = "subscription" + (f"({declared})" if given else "")
        return {
            "query": f"{head} {{ {field} {{ cursor kind rowId at {self.resource} {{ version }} }} }}",
            "variables": given,
        }


class Follower:
    """One who follows. `resume` says with which cursor it comes back; a good client with its last one."""

    def __init__(
        self,
        watching: Watching,
        style: Style,
        port: Callable[[], int],
        start: str,
        resume: Callable[[Follower], str] | None = None,
    ) -> None:
        self.watching = watching
        self.style = style
        self.port = port
        self.cursors = [start]
        """The cursors of all that it was told, heart-beats included."""
        self.told: list[Told] = []
        self.beats = 0
        self.connections = 0
        self.faults: list[str] = []
        """What should not have been said."""
        self.ended = 0.0
        """When it was last told that its stream ends, by the clock of the machine."""
        self._line: Line | None = None
        self._resume = resume or (lambda follower: follower.cursors[-1])
        self._dice = random.Random(f"{watching.name} {style}")

    def __str__(self) -> str:
        return f"{self.watching.name} by {self.style}"

    @property
    def is_open(self) -> bool:
        return self._line is not None and self._line.is_open

    def hang_up(self) -> None:
        """Break the connection; it comes back."""
        if self._line is not None:
            self._line.close()

    async def run(self) -> None:
        """Follow until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            after = self._resume(self) if self.connections else self.cursors[0]
            try:
                _, line = await loop.create_connection(partial(self._made, after), "127.0.0.1", self.port())
            except OSError:
                pass
            else:
                self._line = line
                try:
                    await line.over
                finally:
                    line.close()
            await asyncio.sleep(self._dice.uniform(0.02, 0.1))

    def _made(self, after: str) -> Line:
        return (SocketLine if self.style == "socket" else EventLine)(self, after)

    def hear(self, change: Any, cursor: str) -> None:
        """A change."""
        row = change[self.watching.resource]
        self.told.append(Told(change["kind"], change["rowId"], change["at"], row and row["version"]))
        if change["cursor"] != cursor:
            self.faults.append(f"a change has the cursors {cursor} and {change['cursor']}")
        self.cursors.append(cursor)

    def beat(self, cursor: str) -> None:
        """A heart-beat."""
        self.beats += 1
        self.cursors.append(cursor)

    def end(self, code: str, cursor: str = "") -> None:
        """The stream was ended with a word, and where to go on."""
        self.ended = time.time()
        if cursor:
            self.cursors.append(cursor)
        if code not in PASSING:
            self.faults.append(f"ended: {code}")


class Line(asyncio.Protocol):
    """One connection of a follower."""

    def __init__(self, follower: Follower, after: str) -> None:
        self.follower = follower
        self.after = after
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_open = False
        """Is it certain that it follows?"""
        self._buffer = bytearray()
        self._head = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self.request())

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if not self.over.done():
            self.over.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._head:
            head, end, rest = bytes(self._buffer).partition(b"\r\n\r\n")
            if not end:
                return
            self._head = head
            self._buffer = bytearray(rest)
            self.begin(int(head[9:12]))
        self.take()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def request(self) -> bytes:
        raise NotImplementedError

    def begin(self, status: int) -> None:
        """The head of the answer is here."""
        raise NotImplementedError

    def take(self) -> None:
        """There is more."""
        raise NotImplementedError

    def _headers(self, line: str, *more: str) -> bytes:
        bearer = self.follower.watching.bearer
        signed = [f"Authorization: Bearer {bearer}"] if bearer else []
        return "\r\n".join((line, "Host: x", *signed, *more, "", "")).encode()


class EventLine(Line):
    """Server-sent events, in chunks."""

    def __init__(self, follower: Follower, after: str) -> None:
        super().__init__(follower, after)
        self._text = bytearray()
        self._status = 0

    def request(self) -> bytes:
        watching, accept = self.follower.watching, "Accept: text/event-stream"
        if self.follower.style == "rest":
            resumed = [f"Last-Event-ID: {self.after}"] if self.after else []
            return self._headers(f"GET {watching.target()} HTTP/1.1", accept, *resumed)
        body = json.dumps(watching.operation(self.after)).encode()
        told = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        return self._headers("POST /graphql HTTP/1.1", accept, *told) + body

    def begin(self, status: int) -> None:
        self._status = status
        if status == 200:
            self.follower.connections += 1
            self.is_open = True

    def take(self) -> None:
        if self._status != 200:
            if self._status != 503:
                self.follower.end(f"{self._status} {bytes(self._buffer)!r}")
            self.close()
            return
        while (end := self._buffer.find(b"\r\n")) >= 0:
            size = int(self._buffer[:end], 16)
            if len(self._buffer) < end + size + 4:
                return
            self._text += self._buffer[end + 2 : end + 2 + size]
            del self._buffer[: end + size + 4]
            while (end := self._text.find(b"\n\n")) >= 0:
                self._event(bytes(self._text[:end]).decode())
                del self._text[: end + 2]

    def _event(self, block: str) -> None:
        event = cursor = data = ""
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            if name == "id":
                cursor = value
            elif name == "event":
                event = value
            elif name == "data":
                data += value
        if not data:
            if cursor:
                self.follower.beat(cursor)
            return
        told = json.loads(data)
        if event == "end":
            self.follower.end(told["code"], cursor)
        elif "errors" in told:
            self.follower.end(told["errors"][0]["extensions"]["code"], cursor)
        else:
            label = f"{self.follower.watching.resource}Changed"
            self.follower.hear(told if self.follower.style == "rest" else told["data"][label], cursor)


class SocketLine(Line):
    """graphql-transport-ws. A mask of zeros is a mask; nobody stands between who could be confused."""

    def request(self) -> bytes:
        key = base64.b64encode(os.urandom(16)).decode()
        return self._headers(
            "GET /graphql HTTP/1.1",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Protocol: graphql-transport-ws",
        )

    def begin(self, status: int) -> None:
        if status == 101:
            self.follower.connections += 1
            self.write(frame(b'{"type":"connection_init"}'))
            return
        if status != 503:
            self.follower.end(f"handshake {status}")
        self.close()

    def take(self) -> None:
        while (found := unframe(self._buffer)) is not None:
            kind, payload = found
            if kind == 1:
                self._message(json.loads(payload))
            elif kind == 8:
                code = int.from_bytes(payload[:2], "big")
                if code != 1012:
                    self.follower.end(f"closed {code} {payload[2:].decode()}")
                self.close()
            elif kind == 9:
                self.write(frame(payload, kind=10))

    def _message(self, message: Any) -> None:
        kind, payload = message["type"], message.get("payload")
        if kind == "connection_ack":
            subscribe = {"type": "subscribe", "id": "1", "payload": self.follower.watching.operation(self.after)}
            self.write(frame(json.dumps(subscribe).encode()))
        elif kind == "next":
            self.is_open = True
            change = payload["data"][f"{self.follower.watching.resource}Changed"]
            self.follower.hear(change, change["cursor"])
        elif kind == "ping":
            self.write(frame(b'{"type":"pong"}'))
            if payload:
                self.is_open = True
                self.follower.beat(payload["cursor"])
        elif kind == "error":
            self.follower.end(payload[0]["extensions"]["code"])
            self.close()
        else:
            self.follower.end(kind)


def frame(payload: bytes, kind: int = 1) -> bytes:
    """A whole frame of a client."""
    size = len(payload)
    length = bytes((0x80 | size,)) if size < 126 else bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    return bytes((0x80 | kind,)) + length + b"\0\0\0\0" + payload


def unframe(buffer: bytearray) -> tuple[int, bytes] | None:
    """Take the first frame of a server out of a buffer, if it is whole: its kind and its payload."""
    if len(buffer) < 2:
        return None
    size, start = buffer[1], 2
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(buffer[2:start], "big")
    if len(buffer) < start + size:
        return None
    found = buffer[0] & 15, bytes(buffer[start : start + size])
    del buffer[: start + size]
    return found
