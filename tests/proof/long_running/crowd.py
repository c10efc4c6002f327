"""A crowd: thousands of connections that follow changes, in one process that does next to nothing for each.

    crowd = Crowd(port)
    crowd.open(5_000, lambda number: rest_stream("/posts/changes"))
    delays = crowd.deliver(change)      # seconds from the answer to the change until each was told of it

Bytes are counted, not understood: a change is told where `"kind":` stands. Client and server share the machine, so what
this costs is part of what is measured.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable

from tests.proof.long_running.followers import frame

_WAVE = 400
"""Connections that are opened at a time."""
_TELLS = b'"kind":'
_PING, _PONG = b'{"type":"ping"', frame(b'{"type":"pong"}')
_ENDS = (b"\n\n\r\n", b"}}}")
_PATIENCE = 120.0

Greet = Callable[[int], list[bytes]]
"""What the connection of a number says: first this, and each next thing when something was answered."""


def rest_stream(target: str, bearer: str = "") -> list[bytes]:
    """A stream in the resource style."""
    return [_head(f"GET {target} HTTP/1.1", bearer, "Accept: text/event-stream")]


def graphql_stream(query: str, bearer: str = "") -> list[bytes]:
    """A stream in the query style."""
    body = json.dumps({"query": query}).encode()
    return [
        _head(
            "POST /graphql HTTP/1.1",
            bearer,
            "Accept: text/event-stream",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        + body
    ]


def socket_stream(query: str, bearer: str = "") -> list[bytes]:
    """A WebSocket with one subscription. When it is there, the protocol does not tell: `Crowd.warm` finds out."""
    head = _head(
        "GET /graphql HTTP/1.1",
        bearer,
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: graphql-transport-ws",
    )
    subscribe = json.dumps({"type": "subscribe", "id": "1", "payload": {"query": query}}).encode()
    return [head, frame(b'{"type":"connection_init"}'), frame(subscribe) + frame(b'{"type":"ping"}')]


def _head(line: str, bearer: str, *more: str) -> bytes:
    signed = [f"Authorization: Bearer {bearer}"] if bearer else []
    return "\r\n".join((line, "Host: x", *signed, *more, "", "")).encode()


class Crowd:
    """Connections to one service, those that read and those that never do."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.told: dict[int, int] = {}
        """How many changes each of those who read was told, by descriptor."""
        self.gone = 0
        """Those whose connection was ended."""
        self.idle: list[socket.socket] = []
        """Those who do not read."""
        self._sockets: dict[int, socket.socket] = {}
        self._greeting: dict[int, list[bytes]] = {}
        self._broken: dict[int, bytes] = {}
        """The ends of what came, where it does not end with a message."""
        self._poll = select.epoll()
        self._buffer = bytearray(1 << 20)
        self._view = memoryview(self._buffer)

    def open(self, count: int, greet: Greet, *, reads: bool = True) -> None:
        """Open so many connections, which are let in when this returns."""
        for start in range(0, count, _WAVE):
            wave = range(start, min(start + _WAVE, count))
            opened = [self._connect(greet(number), reads) for number in wave]
            self._wait(lambda: not self._greeting, "not all are let in")
            if not reads:
                for each in opened:
                    self._forget(each)
                self.idle += opened

    def _connect(self, greeting: list[bytes], reads: bool) -> socket.socket:
        made = socket.socket()
        if not reads:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", self.port))
        made.setblocking(False)
        made.send(greeting[0])
        number = made.fileno()
        self._sockets[number] = made
        self._greeting[number] = greeting[1:]
        self.told[number] = 0
        self._poll.register(number, select.EPOLLIN)
        return made

    def _forget(self, made: socket.socket) -> None:
        number = made.fileno()
        self._poll.unregister(number)
        del self._sockets[number], self.told[number]

    def close(self) -> None:
        """Leave."""
        for each in (*self._sockets.values(), *self.idle):
            each.close()
        self._poll.close()

    def warm(self, request: bytes) -> None:
        """Make changes until everyone was told of one."""
        deadline = time.perf_counter() + _PATIENCE
        while not all(self.told.values()):
            assert time.perf_counter() < deadline, "not all are told"
            with socket.create_connection(("127.0.0.1", self.port)) as writer:
                writer.sendall(request)
                assert writer.recv(65536)[9:12] == b"200"
            until = time.perf_counter() + 1.0
            while not all(self.told.values()) and time.perf_counter() < until:
                self._turn(0.05)
        self.listen(0.1)

    def deliver(self, request: bytes) -> list[float]:
        """Make a change; gives how long after its answer each of those who read was told of it, in order."""
        writer = socket.create_connection(("127.0.0.1", self.port))
        writer.sendall(request)
        self._poll.register(writer.fileno(), select.EPOLLIN)
        before, gone = dict(self.told), self.gone
        heard: dict[int, float] = {}
        answered = 0.0
        deadline = time.perf_counter() + _PATIENCE
        while len(heard) < len(self.told) or not answered:
            for number, _ in self._poll.poll(0.5):
                if number == writer.fileno():
                    answer = writer.recv(65536)
                    answered = time.perf_counter()
                    assert answer[9:12] in (b"200", b"201"), answer
                    self._poll.unregister(number)
                elif self._read(number) and self.told[number] > before[number]:
                    heard.setdefault(number, time.perf_counter())
            assert self.gone == gone, "someone who reads was cut off"
            assert time.perf_counter() < deadline, f"only {len(heard)} of {len(before)} were told"
        writer.close()
        return sorted(max(0.0, at - answered) for at in heard.values())

    def listen(self, seconds: float) -> None:
        """Take in whatever comes for a while."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            self._turn(left)

    def cut(self, seconds: float) -> int:
        """How many of those who do not read are cut off within so many seconds; they are looked at without reading."""
        ends = select.poll()
        left = {each.fileno() for each in self.idle}
        for number in left:
            ends.register(number, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        until = time.perf_counter() + seconds
        while left and time.perf_counter() < until:
            self._turn(0.05)  # the others go on reading
            for number, _ in ends.poll(0):
                ends.unregister(number)
                left.remove(number)
        return len(self.idle) - len(left)

    def _wait(self, holds: Callable[[], bool], why: str) -> None:
        deadline = time.perf_counter() + _PATIENCE
        while not holds():
            self._turn(0.5)
            assert time.perf_counter() < deadline, why

    def _turn(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds):
            self._read(number)

    def _read(self, number: int) -> bool:
        """Take in what came on a connection. Says whether it is still there."""
        try:
            size = self._sockets[number].recv_into(self._buffer)
        except ConnectionError:
            size = 0
        if not size:
            self._poll.unregister(number)
            self._sockets.pop(number).close()
            del self.told[number]
            self._greeting.pop(number, None)
            self.gone += 1
            return False
        data = bytes(self._view[:size])
        if number in self._greeting:
            self._greet(number, data)
            return True
        if number in self._broken:
            data = self._broken.pop(number) + data
        if _PING in data:
            self._sockets[number].send(_PONG)
        self.told[number] += data.count(_TELLS)
        if not data.endswith(_ENDS):
            self._broken[number] = data[-len(_TELLS) + 1 :]
        return True

    def _greet(self, number: int, answer: bytes) -> None:
        left = self._greeting[number]
        assert b" 4" not in answer[:12] and b" 5" not in answer[:12], answer
        if left:
            self._sockets[number].send(left.pop(0))
        elif b"retry:" in answer or b'"pong"' in answer:
            del self._greeting[number]


def memory(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def share(delays: list[float], part: float) -> float:
    """The delay within which this part of all was told."""
    return delays[min(len(delays) - 1, int(len(delays) * part))]


def shown(delays: list[float]) -> str:
    """Delays in order, for people."""
    p50, p99 = share(delays, 0.5), share(delays, 0.99)
    return f"p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, the last {delays[-1] * 1000:.0f} ms"
