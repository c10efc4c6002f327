"""Clients of streams, byte by byte: a WebSocket and an event stream that read only when they are told to.

with WebSocket(service.port) as socket:
    socket.begin()                                            # connection_init, connection_ack
    socket.subscribe("1", "subscription { postChanged { cursor kind } }")
    assert socket.receive()["type"] == "next"
    assert socket.closed() == (1012, "Service Restart")
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from collections.abc import Mapping
from typing import Any, Self

PROTOCOL = "graphql-transport-ws"
PATIENCE = 30.0


class Connection:
    """A TCP connection with a buffer. A small `window` is what the system takes for one who does not read."""

    def __init__(self, port: int, window: int = 0) -> None:
        self.socket = socket.socket()
        if window:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""

    def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self._more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def take_until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            self._more()
        taken, _, self.buffer = self.buffer.partition(mark)
        return taken

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError
        self.buffer += data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def head_of(raw: bytes) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer."""
    line, *fields = raw.decode().split("\r\n")
    return int(line.split()[1]), {name.lower(): value for name, _, value in (each.partition(": ") for each in fields)}


class WebSocket(Connection):
    """A WebSocket; `status` and `headers` are the server's answer to the handshake."""

    def __init__(
        self,
        port: int,
        path: str = "/graphql",
        *,
        protocol: str = PROTOCOL,
        token: str = "",
        window: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(port, window)
        sent = {
            "Host": f"127.0.0.1:{port}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Extensions": "permessage-deflate",
        }
        sent |= {"Sec-WebSocket-Protocol": protocol} if protocol else {}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        sent |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        self.socket.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        self.status, self.headers = head_of(self.take_until(b"\r\n\r\n"))

    # frames

    def frame(self, data: bytes, opcode: int = 1, final: bool = True) -> None:
        """Send one frame, masked as a client must."""
        size = len(data)
        length = (
            bytes([0x80 | size])
            if size < 126
            else (b"\xfe" + struct.pack("!H", size) if size < 65536 else b"\xff" + struct.pack("!Q", size))
        )
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.socket.sendall(bytes([(0x80 if final else 0) | opcode]) + length + mask + masked)

    def next_frame(self) -> tuple[int, bytes]:
        first, second = self.take(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self.take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self.take(8))
        return first & 0x0F, self.take(size)

    def closed(self) -> tuple[int, str]:
        """The code and the reason of the close frame, which must come next, pings aside."""
        while True:
            opcode, data = self.next_frame()
            if opcode == 8:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()
            assert opcode == 1 and json.loads(data)["type"] == "ping", data

    # messages

    def send(self, **message: Any) -> None:
        self.frame(json.dumps(message).encode())

    def receive(self, *, pings: bool = False) -> Any:
        """The next message; pings are passed over unless they are asked for."""
        while True:
            opcode, data = self.next_frame()
            assert opcode == 1, (opcode, data)
            message = json.loads(data)
            if pings or message["type"] != "ping":
                return message

    def begin(self, **payload: Any) -> None:
        self.send(type="connection_init", **({"payload": payload} if payload else {}))
        assert self.receive() == {"type": "connection_ack"}

    def subscribe(self, name: str, query: str, **variables: Any) -> None:
        self.send(type="subscribe", id=name, payload={"query": query, "variables": variables})


class EventStream(Connection):
    """A stream of server-sent events."""

    def __init__(
        self,
        port: int,
        target: str,
        *,
        token: str = "",
        method: str = "GET",
        body: bytes = b"",
        window: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(port, window)
        sent = {"Host": f"127.0.0.1:{port}", "Accept": "text/event-stream"}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))} if body else {}
        sent |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        self.socket.sendall(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        self.status, self.headers = head_of(self.take_until(b"\r\n\r\n"))
        self.events = b""

    def next_event(self) -> dict[str, str]:
        """The fields of the next event, whatever it is; EOFError where the stream ends."""
        while b"\n\n" not in self.events:
            self.events += self._chunk()
        event, _, self.events = self.events.partition(b"\n\n")
        pairs = (line.partition(":") for line in event.decode().split("\n"))
        return {name: value.removeprefix(" ") for name, _, value in pairs}

    def change(self) -> Any:
        """The data of the next event that has some."""
        while "data" not in (event := self.next_event()):
            pass
        return json.loads(event["data"])

    def _chunk(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.take(1)
        size = int(self.take_until(b"\r\n"), 16)
        data = self.take(size)
        self.take(2)
        if not size:
            raise EOFError
        return data
