"""Very many small frames keep nobody waiting: they are parsed in turns, by caller."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.http.frame_scheduler import FrameScheduler
from diptych.serve.http.websocket_protocol import SocketProtocol
from tests.support.machine import Machine
from tests.support.running import NewDatabase
from tests.system.wire.here import Here, here
from tests.system.wire.raw import connect
from tests.system.wire.test_stalls import INIT, frame, handshake

MANY = 40_000
"""Frames that are sent at once; to parse them takes 0.3 s or more."""
TURN = 0.1
"""Seconds of the processor that one turn may take: fifty times as long as it should."""


@pytest.fixture
def service(new_sqlite: NewDatabase) -> Iterator[Here]:
    with here(Diptych(model, config=Config(database=new_sqlite()))) as found:
        yield found


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The processor time of whatever sockets do with what they receive."""
    found: list[float] = []
    received = SocketProtocol.data_received

    def timed(self: SocketProtocol, data: bytes) -> None:
        begun = time.thread_time()
        received(self, data)
        found.append(time.thread_time() - begun)

    monkeypatch.setattr(SocketProtocol, "data_received", timed)
    return found


@pytest.mark.parametrize(
    "many",
    [
        frame(b"", 9) * MANY,
        frame(b"", 10) * MANY,
        b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * MANY,
    ],
    ids=["pings", "pongs", "fragments"],
)
def test_small_frames_are_parsed_a_moment_at_a_time(service: Here, turns: list[float], many: bytes) -> None:
    machine = Machine()
    with connect(service.client) as connection:
        connection.sendall(handshake())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")
        connection.settimeout(1)
        with suppress(TimeoutError):
            connection.sendall(many)
        for _ in range(5):
            begun = time.monotonic()
            assert service.client.get("/health/live").status == 200
            assert time.monotonic() - begun < machine.limit(2)
    assert max(turns) < machine.limit(TURN)


def test_messages_that_come_together_are_all_answered_in_order(service: Here) -> None:
    count = 300
    pings = [
        json.dumps({"type": "ping", "payload": {"n": n, "pad": "x" * (n * 7 % 900)}}).encode() for n in range(count)
    ]
    with connect(service.client) as connection:
        connection.sendall(handshake())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")
        connection.sendall(b"".join(map(frame, [INIT, *pings])))
        heard = b""
        while b'"n":%d,' % (count - 1) not in heard:
            heard += connection.recv(65_536)
        connection.sendall(frame(b"\x03\xe8", 8))
        while (more := connection.recv(65_536)) != b"":
            heard += more
    found = [heard.index(b'"n":%d,' % n) for n in range(count)]
    assert found == sorted(found)
    assert heard.endswith(b"\x88\x02\x03\xe8")


class _Socket:
    """One that has so many turns' worth of frames."""

    def __init__(self, turns: FrameScheduler, caller: str, left: int, seen: list[str]) -> None:
        self.turns, self.caller, self.left, self.seen = turns, caller, left, seen

    def proceed(self) -> None:
        self.seen.append(self.caller)
        self.left -= 1
        if self.left:
            self.turns.wait(self.caller, self)


def test_callers_take_turns_however_many_sockets_they_have() -> None:
    async def run() -> list[str]:
        seen: list[str] = []
        turns = FrameScheduler(200)
        for _ in range(100):
            turns.wait("many", _Socket(turns, "many", 3, seen))
        turns.wait("one", _Socket(turns, "one", 3, seen))
        while len(seen) < 303:
            await asyncio.sleep(0.001)
        return seen

    seen = asyncio.run(run())
    assert [at for at, name in enumerate(seen) if name == "one"] == [1, 3, 5]
