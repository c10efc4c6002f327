"""What waits on WebSockets is bounded by bytes: operations for their answers, and answers for whoever reads them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from diptych import Diptych
from diptych.api.graphql.socket import MAX_WAITING
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.stream.send_queue import SendQueue, StreamLimits
from tests.proof.long_running.parts import tokens
from tests.support.running import NewDatabase
from tests.system.wire.here import Here, here
from tests.system.wire.raw import connect
from tests.system.wire.test_stalls import INIT, frame, handshake, narrow

ANSWER = 1_000_000
"""Bytes of the answer to LONG, at least."""
LONG = json.dumps({"type": "subscribe", "id": "1", "payload": {"query": "{ posts(first: 50) { body } }"}}).encode()
PADDED = frame(json.dumps({"type": "ping", "payload": {"pad": "x" * 60_000}}).encode())


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Here]:
    config = Config(database=new_sqlite(), stream_buffer=262_144)
    with here(Diptych(model, config=config)) as found:
        assert found.client.get("/health/ready").status == 200
        (admin,) = tokens(config.database, (None, ("admin",)))
        user = found.client.signed_in(admin).post("/users", {"name": "Ann", "email": "ann@example.org"}).json()["id"]
        (bearer,) = tokens(config.database, (user, ()))
        one = {"authorId": user, "title": "t", "body": "x" * (ANSWER // 50), "published": True}
        for _ in range(2):
            assert found.client.signed_in(bearer).post("/posts", [one] * 25).status == 201
        yield found


def begun(connection: socket.socket) -> socket.socket:
    connection.sendall(handshake())
    assert connection.recv(4_096).startswith(b"HTTP/1.1 101 ")
    connection.sendall(frame(INIT))
    assert b"connection_ack" in connection.recv(4_096)
    return connection


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def fill(connection: socket.socket, streams: StreamLimits) -> None:
    """Send pings, whose answers nobody reads, until there is no room for any other answer."""
    for _ in range(100):
        (member,) = streams.members
        assert isinstance(member, SendQueue)
        if not member.has_room():
            return
        connection.sendall(PADDED)
        time.sleep(0.02)
    raise AssertionError


def test_operations_that_wait_are_bounded_by_bytes(service: Here) -> None:
    streams = service.app.streams
    query = "query($v: [Int]) { __typename }"
    payload = {"query": query, "variables": {"v": [{}] * 14_000}}
    operations = [json.dumps({"type": "subscribe", "id": str(n), "payload": payload}).encode() for n in range(30)]
    assert sum(map(len, operations)) > MAX_WAITING
    with begun(narrow(service.client)) as connection:
        fill(connection, streams)
        connection.sendall(b"".join(map(frame, operations)))
        until(lambda: streams.held > MAX_WAITING - len(operations[-1]))
        assert streams.held <= MAX_WAITING
        time.sleep(0.2)
        assert streams.held <= MAX_WAITING
    until(lambda: streams.held == 0)


def test_answers_that_nobody_reads_are_bounded_by_bytes(service: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = service.app.streams
    monkeypatch.setattr(streams, "most_unsent", 2 * ANSWER)
    most = 0
    with ExitStack() as stack:
        for _ in range(8):
            connection = stack.enter_context(begun(narrow(service.client)))
            connection.sendall(frame(LONG))
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                most = max(most, streams.unsent)
                time.sleep(0.005)
        assert ANSWER < most <= 3 * ANSWER
        reader = stack.enter_context(begun(connect(service.client)))
        reader.sendall(frame(LONG))
        heard = b""
        while b'"complete"' not in heard[-200:]:
            more = reader.recv(1 << 20)
            assert more
            heard += more
        assert len(heard) > ANSWER
    until(lambda: streams.unsent == 0)
