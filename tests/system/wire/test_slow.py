"""Clients that are slow on purpose: each costs little, none for long, and nobody else is the slower for it."""

from __future__ import annotations

import asyncio
import json
import resource
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from diptych.serve.http.connection_limits import ConnectionLimits
from tests.proof.long_running.crowd import memory
from tests.proof.long_running.parts import tell, tokens
from tests.support.effort import LONG, scaled
from tests.support.running import Client, NewDatabase, Service, served
from tests.system.wire.raw import QUERY, SIZED, connect, drain, exchange, get, post, told

EACH = scaled(1_000, 170)
"""Clients of each kind."""
SECONDS = 3.0 if LONG else 0.7
"""For which the service waits for any of them."""
GRACE = 30.0
"""More than a busy machine takes to end them; one that is not ended stays for ever."""
POSTS = 50
LARGE = f"/posts?first={POSTS}"
"""An answer of four megabytes: more than systems hold for a client."""


@pytest.fixture(scope="module")
def slow(new_sqlite: NewDatabase) -> Iterator[Service]:
    """A service with little patience, and something large to read."""
    wanted, (soft, hard) = 3 * EACH + 500, resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    options = [f"--{name}-timeout={SECONDS}" for name in ("head", "request", "stream")]
    with served(new_sqlite(), *options) as service:
        (bearer,) = tokens(service.database, (None, ("admin",)))
        user = service.signed_in(bearer).post("/users", {"name": "Ann", "email": "ann@example.org"}).json()["id"]
        (bearer,) = tokens(service.database, (user, ()))
        one = {"authorId": user, "title": "t", "body": "\N{MATHEMATICAL BOLD CAPITAL X}" * 20_000, "published": True}
        for _ in range(POSTS // 10):
            body = json.dumps([one] * 10, ensure_ascii=False).encode()
            answer = service.signed_in(bearer).request("POST", "/posts", {"content-type": "application/json"}, body)
            assert answer.status == 201
        assert len(service.get(LARGE).body) > 4_000_000
        yield service


def ended(connections: list[socket.socket], seconds: float) -> list[bytes]:
    """What each was told until it was ended, which must be in time."""
    told_: dict[socket.socket, bytes] = dict.fromkeys(connections, b"")
    left = set(connections)
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for each in connections:
            each.setblocking(False)
            selector.register(each, selectors.EVENT_READ)
        while left:
            assert time.monotonic() < deadline, f"{len(left)} of {len(connections)} were not ended"
            for key, _ in selector.select(0.1):
                found = key.fileobj
                assert isinstance(found, socket.socket)
                part = b""
                with suppress(ConnectionError):
                    part = found.recv(65_536)
                told_[found] += part
                if not part:
                    selector.unregister(found)
                    left.discard(found)
    return list(told_.values())


def is_cut(connection: socket.socket) -> bool:
    """Did the server forget the connection? The system tells whoever writes to it."""
    try:
        connection.send(b"\r\n")
    except ConnectionError:
        return True
    return False


def crowd(stack: ExitStack, client: Client, raw: bytes, number: int = EACH) -> list[socket.socket]:
    found = []
    for _ in range(number):
        connection = stack.enter_context(connect(client))
        connection.sendall(raw)
        found.append(connection)
    return found


def honest(client: Client, times: int = 40) -> list[float]:
    """How long an ordinary request takes, in order."""
    found = []
    for _ in range(times):
        begun = time.monotonic()
        assert client.get("/users").status == 200
        found.append(time.monotonic() - begun)
    return sorted(found)


def test_a_crowd_of_slow_clients_is_ended_and_harms_nobody(slow: Service) -> None:
    quiet, before = honest(slow), memory(slow.process.pid)
    with ExitStack() as stack:
        silent = crowd(stack, slow, b"")
        heads = crowd(stack, slow, b"GET /users HTTP/1.1\r\nHost: x\r\nX-A")
        bodies = crowd(stack, slow, post("Content-Length: 100000", close=False, body=QUERY))
        busy, most = honest(slow), memory(slow.process.pid)
        assert not any(ended(silent, GRACE + SECONDS))
        for raw in ended(heads, GRACE):
            (answer,) = told(raw)
            assert (answer.status, answer.code, answer.headers["connection"]) == (400, "BAD_REQUEST", "close")
        for raw in ended(bodies, GRACE):
            (answer,) = told(raw)
            assert (answer.status, answer.code, answer.headers["connection"]) == (400, "BAD_REQUEST", "close")
            assert b"did not arrive" in answer.body
    tell(
        f"{3 * EACH} slow clients: honest median {quiet[20] * 1e3:.1f} → {busy[20] * 1e3:.1f} ms, "
        f"last {quiet[-1] * 1e3:.0f} → {busy[-1] * 1e3:.0f} ms, memory {before >> 20} → {most >> 20} MiB"
    )
    assert busy[10] < quiet[10] * 3 + 0.02  # the lower quartile: a busy machine makes some of them slow
    assert most - before < 3 * EACH * 40_000 + (16 << 20)
    honest(slow)


def test_a_trickle_does_not_help(slow: Service) -> None:
    """The time of a head, or of a body, begins once: it does not begin anew with every byte."""
    with ExitStack() as stack:
        head = stack.enter_context(connect(slow))
        body = stack.enter_context(connect(slow))
        body.sendall(post("Content-Length: 1000", close=False, body=b""))
        begun = time.monotonic()
        open_ = {head, body}
        bytes_ = iter(b"GET /users?name=" + b"x" * 1_000)
        while open_ and time.monotonic() - begun < GRACE:  # the bytes last for longer than that
            byte = bytes([next(bytes_)])
            for each in tuple(open_):
                with suppress(ConnectionError):
                    each.sendall(byte)
                each.settimeout(0.05)
                with suppress(TimeoutError):
                    assert each.recv(65_536).startswith(b"HTTP/1.1 400 ")
                    open_.discard(each)
        assert not open_


def test_a_trickle_between_requests_does_not_help_either(slow: Service) -> None:
    with connect(slow) as connection:
        connection.sendall(get("/health/live", close=False))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /users")
        (answer,) = told(drain(connection))
        assert answer.code == "BAD_REQUEST"


def test_clients_who_do_not_read_are_cut(slow: Service) -> None:
    count = scaled(100, 20)
    before = memory(slow.process.pid)
    with ExitStack() as stack:
        deaf = []
        for _ in range(count):
            connection = socket.socket()
            stack.enter_context(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.settimeout(30)
            connection.connect(("127.0.0.1", slow.port))
            connection.sendall(get(LARGE, close=False) * 4)
            deaf.append(connection)
        deadline = time.monotonic() + GRACE + 2 * SECONDS
        most = 0
        while deaf:
            assert time.monotonic() < deadline, f"{len(deaf)} were not cut"
            assert slow.get("/health/live").status == 200
            most = max(most, memory(slow.process.pid))
            deaf = [each for each in deaf if not is_cut(each)]
            time.sleep(0.05)
    tell(f"{count} clients who do not read: memory {before >> 20} → {most >> 20} MiB")
    assert most - before < count * 3 * 4_200_000 + (32 << 20)
    assert honest(slow, 5)


class Deaf:
    """A connection whose client does not read."""

    def __init__(self, gate: ConnectionLimits, holds: int) -> None:
        self.gate, self.holds, self.is_cut = gate, holds, False
        gate.unread.begin(self)
        gate.unsent += holds
        gate.limit_unsent()

    def release(self) -> None:
        self.gate.unsent -= self.holds

    def abort(self) -> None:
        self.is_cut = True

    head_timed_out = idle_timed_out = check_write_stall = reject = abort


def test_what_waits_for_clients_who_do_not_read_has_an_end() -> None:
    async def work() -> None:
        gate = ConnectionLimits(unsent=1_000)
        deaf = [Deaf(gate, 300) for _ in range(10)]
        assert [each.is_cut for each in deaf] == [True] * 7 + [False] * 3
        assert gate.unsent == 900
        gate.stop()

    asyncio.run(work())


def test_a_client_who_reads_slowly_gets_all_of_it(slow: Service) -> None:
    """It takes longer than the service is patient, but never stops."""
    with connect(slow) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.sendall(get(LARGE, close=False) + get(LARGE))
        parts, begun = [], time.monotonic()
        while part := connection.recv(65_536):
            parts.append(part)
            time.sleep(SECONDS / 40)
        assert time.monotonic() - begun > 2 * SECONDS
        for answer in told(b"".join(parts)):
            assert (answer.status, len(answer.body)) == (200, int(answer.headers["content-length"]))
        assert b"".join(parts).count(b"HTTP/1.1 200 ") == 2


def test_a_connection_that_is_used_again_and_again_stays(slow: Service) -> None:
    with connect(slow) as connection:
        for _ in range(4):
            connection.sendall(post(SIZED, close=False))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
            time.sleep(SECONDS / 2)
    assert [each.status for each in exchange(slow, get())] == [200]
