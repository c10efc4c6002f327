"""A connection that stalls is ended, in whatever state it is: the table of docs/reference/limits.md, over real sockets."""

from __future__ import annotations

import base64
import gc
import json
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.http.connection_limits import ConnectionLimits
from diptych.serve.http.websocket_protocol import SocketProtocol
from tests.proof.long_running.parts import tokens
from tests.support.machine import Machine
from tests.support.running import Client, NewDatabase, Service, served
from tests.system.wire.here import Here, here
from tests.system.wire.raw import PATIENCE, connect, drain, exchange, get, post, told

SECONDS = 0.6
"""For which the service waits for a head, a request, or a reader."""
GRACE = 12.0
"""Everything has ended by then: what has a fixed time (5 s between two requests) is the longest."""
MOST = 160
"""Connections of the service; one peer has three quarters of them."""
POSTS = 60
INIT = json.dumps({"type": "connection_init"}).encode()


@pytest.fixture(scope="module")
def hasty(new_sqlite: NewDatabase) -> Iterator[Here]:
    """A service that waits for nobody for long, with answers that grow by 20 KB with each row."""
    config = Config(
        database=new_sqlite(),
        head_timeout=SECONDS,
        request_timeout=SECONDS,
        stream_timeout=SECONDS,
        heartbeat=0.5,
        max_connections=MOST,
        stream_buffer=16_384,
    )
    with here(Diptych(model, config=config)) as found:
        assert found.client.get("/health/ready").status == 200
        (admin,) = tokens(config.database, (None, ("admin",)))
        user = found.client.signed_in(admin).post("/users", {"name": "Ann", "email": "ann@example.org"}).json()["id"]
        (bearer,) = tokens(config.database, (user, ()))
        one = {"authorId": user, "title": "t", "body": "x" * 20_000, "published": True}
        for _ in range(2):
            assert found.client.signed_in(bearer).post("/posts", [one] * (POSTS // 2)).status == 201
        yield found


def handshake(*headers: str, protocol: str = "graphql-transport-ws") -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    offered = [f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
    own = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}")
    return get("/graphql", *own, *offered, *headers, close=False)


def frame(data: bytes, opcode: int = 1) -> bytes:
    """A frame of a client, its mask being zero."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([0x80 | opcode]) + size + bytes(4) + data


def narrow(client: Client) -> socket.socket:
    """A connection whose client takes little before it reads."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    found.settimeout(20)
    found.connect(("127.0.0.1", client.port))
    return found


def sends(*pieces: bytes) -> Callable[[Client], list[socket.socket]]:
    """One connection that sends these, waits for an answer to each but the last, and stalls."""

    def open_(client: Client) -> list[socket.socket]:
        found = connect(client)
        for number, piece in enumerate(pieces):
            found.sendall(piece)
            if number < len(pieces) - 1:
                assert found.recv(65_536)
        return [found]

    return open_


def deaf(*pieces: bytes) -> Callable[[Client], list[socket.socket]]:
    """One connection that sends the first of these, and, when that is answered, the others; it reads nothing more."""

    def open_(client: Client) -> list[socket.socket]:
        found = narrow(client)
        found.sendall(pieces[0])
        assert found.recv(1)
        found.sendall(b"".join(pieces[1:]))
        return [found]

    return open_


def nearly_read(client: Client) -> list[socket.socket]:
    """Answers that are the last of their connection: of some, less is left than a transport minds."""
    found = []
    for number in range(1, 10):
        found.append(narrow(client))
        found[-1].sendall(get(f"/posts?first={number}"))
    return found


def closes(client: Client) -> list[socket.socket]:
    """A WebSocket that sends its close frame while an answer waits for it, and reads neither."""
    (found,) = deaf(handshake(), frame(INIT), frame(LONG))(client)
    time.sleep(0.2)
    found.sendall(frame(b"\x03\xe8", 8))
    return [found]


FOLLOW = "subscription { postChanged { cursor kind } }"
SUBSCRIBE = json.dumps({"type": "subscribe", "id": "1", "payload": {"query": FOLLOW}}).encode()
LONG = json.dumps({"type": "subscribe", "id": "2", "payload": {"query": "{ posts(first: 60) { body } }"}}).encode()
BODY = post("Content-Length: 100000", close=False)

STALLS: dict[str, Callable[[Client], list[socket.socket]]] = {
    "connected": sends(b""),
    "head": sends(b"GET /users HTTP/1.1\r\nHost: x\r\nX-A"),
    "head of a later request": sends(get(close=False), b"GET /us"),
    "idle": sends(get(close=False), b""),
    "body": sends(BODY),
    "chunked body": sends(post("Transfer-Encoding: chunked", close=False, body=b'5\r\n{"que')),
    "body after 100 Continue": sends(post("Content-Length: 99", "Expect: 100-continue", close=False, body=b""), b"{"),
    "body of a declined upgrade": sends(
        post("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 99", close=False, body=b"{")
    ),
    "body that is refused": sends(BODY.replace(b"Content-Type", b"Authorization: Bearer x\r\nContent-Type")),
    "pipelined body": sends(get(close=False) * 5 + BODY),
    "lingering": sends(b"NO HTTP\r\n\r\n"),
    "answer not read": deaf(get(f"/posts?first={POSTS}", close=False) * 4),
    "last answer not read": nearly_read,
    "upgrade with a length": sends(handshake("Content-Length: 5")),
    "upgrade with a body": sends(handshake("Content-Length: 5") + b"hello"),
    "upgrade with chunks": sends(handshake("Transfer-Encoding: chunked")),
    "upgrade with a long header": sends(handshake("X-A: " + "a" * 9_000)),
    "upgrade with many headers": sends(handshake(*(f"X-{number}: a" for number in range(150)))),
    "upgraded": sends(handshake()),
    "upgraded, half a frame": sends(handshake(), frame(INIT)[:9]),
    "subprotocol refused": sends(handshake(protocol="other")),
    "acknowledged": sends(handshake(), frame(INIT)),
    "subscribed": sends(handshake(), frame(INIT), frame(SUBSCRIBE)),
    "subscribed, answer not read": deaf(handshake(), frame(INIT), frame(LONG)),
    "close sent, answers not read": closes,
}
"""What a client does before it stops."""


def test_a_connection_that_stalls_is_ended_in_every_state(hasty: Here) -> None:
    with ExitStack() as stack:
        open_ = {name: [stack.enter_context(each) for each in begin(hasty.client)] for name, begin in STALLS.items()}
        deadline = time.monotonic() + GRACE
        while open_ and time.monotonic() < deadline:
            open_ = {name: left for name, some in open_.items() if (left := [each for each in some if not ended(each)])}
            assert hasty.client.get("/health/live").status == 200
            time.sleep(0.1)
        assert not open_, ", ".join(f"{name}: {len(some)}" for name, some in open_.items())
        is_free(hasty.app.connection_limits, deadline)


def is_free(gate: ConnectionLimits, deadline: float) -> None:
    """Nothing of those who have gone is counted, held or watched any more."""

    def held() -> dict[str, int]:
        waits = ("heads", "idle", "unread", "lingering", "closing", "surplus")
        found = {name: len(getattr(gate, name)) for name in waits}
        return found | {"count": gate.count, "unsent": gate.unsent, "bodies": gate.held}

    while any(held().values()):
        assert time.monotonic() < deadline, held()
        time.sleep(0.05)


def ended(connection: socket.socket) -> bool:
    """Has the server ended the connection? It says so, or the system does to whoever writes to it."""
    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) < 20_000:  # it does not read
        with suppress(BlockingIOError):
            try:
                connection.setblocking(False)
                connection.send(frame(b"", 10))
            except ConnectionError:
                return True
        return False
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_handshake_that_announces_a_body_is_refused(hasty: Here) -> None:
    for name in ("Content-Length: 5", "Content-Length: 1", "Transfer-Encoding: chunked"):
        (answer,) = exchange(hasty.client, handshake(name))
        assert (answer.status, answer.code, answer.headers["connection"]) == (400, "BAD_REQUEST", "close")
    with connect(hasty.client) as connection:
        connection.sendall(handshake("Content-Length: 0"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")


def test_a_handshake_whose_head_is_too_large_is_told_so(hasty: Here) -> None:
    for more in (["X-A: " + "a" * 9_000], [f"X-{number}: a" for number in range(150)]):
        (answer,) = exchange(hasty.client, handshake(*more))
        assert (answer.status, answer.code) == (431, "HEADERS_TOO_LARGE")


def test_every_state_of_the_table_is_tried() -> None:
    text = Path("docs/reference/limits.md").read_text().partition("## Connections that stall")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| ([a-z][^|]*) \|", text, re.M)) - {"state"}
    assert named
    for name in named:
        assert any(name in each for each in STALLS), name


def test_pongs_do_not_pile_up_for_one_who_reads_none(new_sqlite: NewDatabase) -> None:
    config = Config(database=new_sqlite(), stream_buffer=16_384)
    with here(Diptych(model, config=config)) as found, narrow(found.client) as connection:
        connection.sendall(handshake())
        assert connection.recv(4_096).startswith(b"HTTP/1.1 101 ")
        connection.sendall(frame(INIT))
        own = connection.getsockname()
        (server,) = [each for each in gc.get_objects() if isinstance(each, SocketProtocol) and each.client == own]
        sizes = []
        for _ in range(100):
            connection.sendall(frame(b"p" * 120, 9) * 100)
            sizes.append(server.transport.get_write_buffer_size())
        deadline = time.monotonic() + 10
        while not sizes[-1]:
            assert time.monotonic() < deadline
            sizes.append(server.transport.get_write_buffer_size())
        for _ in range(20):
            time.sleep(0.02)
            sizes.append(server.transport.get_write_buffer_size())
        assert 0 < max(sizes) < 200_000


# when there are as many as there may be


@pytest.fixture
def crowded(new_sqlite: NewDatabase) -> Iterator[tuple[Service, ExitStack]]:
    """A service all of whose connections are taken, by WebSockets that are alive."""
    with served(new_sqlite(), "--max-connections=16", "--head-timeout=8") as service, ExitStack() as stack:
        for _ in range(12):
            connection = stack.enter_context(connect(service))
            connection.sendall(handshake())
            assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")
            connection.sendall(frame(INIT))
            assert b"connection_ack" in connection.recv(65_536)
        yield service, stack


def test_health_is_answered_when_all_connections_are_taken(crowded: tuple[Service, ExitStack]) -> None:
    service, stack = crowded
    for _ in range(5):
        for path in ("/health/live", "/health/ready"):
            (answer,) = exchange(service, get(path, close=False))
            assert (answer.status, answer.headers["connection"]) == (200, "close")
    (answer,) = exchange(service, get("/users"))
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "UNAVAILABLE", "1")
    (answer,) = exchange(service, handshake())
    assert answer.status == 503
    silent = [stack.enter_context(connect(service)) for _ in range(200)]
    machine, begun = Machine(), time.monotonic()
    (answer,) = exchange(service, get("/health/live"))
    took = time.monotonic() - begun
    assert answer.status == 200 and took < machine.limit(1.0)
    for each in silent:  # they are told, or ended
        each.settimeout(8)
        raw = drain(each)
        assert not raw or told(raw)[0].status == 503


def test_a_surplus_connection_becomes_no_websocket(crowded: tuple[Service, ExitStack]) -> None:
    service, stack = crowded
    for _ in range(6):
        connection = stack.enter_context(connect(service))
        connection.sendall(handshake().replace(b"/graphql", b"/health/live"))
        assert told(drain(connection))[0].status == 200
        (answer,) = exchange(service, get("/users"))
        assert answer.status == 503, "the limit is what it was"


def test_a_websocket_of_a_connection_with_an_unread_response_leaves_nothing(new_sqlite: NewDatabase) -> None:
    with here(Diptych(model, config=Config(database=new_sqlite()))) as found:
        limits = found.app.connection_limits
        with narrow(found.client) as connection:
            sent = 0
            while not limits.unread:
                assert sent < 40
                connection.sendall(get("/openapi.json", close=False))
                sent += 1
                time.sleep(0.05)
            connection.sendall(handshake().replace(b"/graphql", b"/health/live"))
            connection.settimeout(1.0)
            heard = b""
            with suppress(TimeoutError):
                while more := connection.recv(1 << 20):
                    heard += more
            assert heard.count(b"HTTP/1.1 200 ") >= sent
        deadline = time.monotonic() + PATIENCE
        while limits.count or limits.unread or limits.unsent:
            assert time.monotonic() < deadline, (limits.count, len(limits.unread), limits.unsent)
            time.sleep(0.02)


def test_who_was_turned_away_takes_no_place_of_those_who_come_later(crowded: tuple[Service, ExitStack]) -> None:
    service, stack = crowded
    for _ in range(40):
        stack.enter_context(connect(service))
    stack.pop_all().close()
    deadline = time.monotonic() + 8
    while exchange(service, get("/users"))[0].status != 200:
        assert time.monotonic() < deadline
