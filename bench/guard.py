"""What the guard costs a request that is known: the whole way from the bytes of a request to the bytes of its answer,
with it and without, in turns, in one process.

    python -m bench.guard

Without means that every step of the guard that such a request goes through does nothing: the rules of heads, the waits
for a client, places for requests, deadlines, who asks, whose turn it is, the look at JSON, names in the place of
documents, the cost and who may keep the answer.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from bench.cases import DOCUMENTS
from diptych import Diptych
from diptych.api.graphql.http import _decode
from diptych.api.reply import PRIVATE
from diptych.config import Config
from diptych.demo.data import insert_sample
from diptych.demo.model import model
from diptych.serve.http.protocol import Protocol

ROUNDS, RUNS = 40, 200


class _Wire(asyncio.Transport):
    """A transport that takes everything, and ends nowhere."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self._loop = loop
        self.answered = loop.create_future()

    def write(self, data: Any) -> None:
        if not self.answered.done():  # uvicorn's own protocol writes the body by itself
            self.answered.set_result(bytes(data))

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...


class Connection:
    """One connection to an application in this process."""

    def __init__(self, app: Any, protocol: type[HttpToolsProtocol] = Protocol) -> None:
        loop = asyncio.get_running_loop()
        config = uvicorn.Config(
            app, http=protocol, lifespan="off", access_log=False, log_level="warning", proxy_headers=False
        )
        config.load()
        self._wire = _Wire(loop)
        self._loop = loop
        state = ServerState()
        state.default_headers = [(b"date", b"Thu, 01 Jan 2026 00:00:00 GMT")]  # as a server has it
        self._protocol = protocol(config, state, {}, loop)
        self._protocol.connection_made(self._wire)

    async def ask(self, request: bytes) -> bytes:
        """The response, or its head if the protocol writes that by itself; all of it is written then."""
        wire = self._wire
        wire.answered = self._loop.create_future()
        self._protocol.data_received(request)
        response = bytes(await wire.answered)
        while self._protocol.cycle is not None and not self._protocol.cycle.response_complete:
            await asyncio.sleep(0)
        return response


def _nothing(*_: Any, **__: Any) -> None:
    return None


@contextmanager
def without_guard() -> Iterator[None]:
    """Every step of the guard does nothing."""
    fairness_key = SimpleNamespace(set=_nothing, get=lambda: "")
    steps: list[tuple[str, Callable[..., Any] | Any]] = [
        ("diptych.serve.http.protocol.refusal_of_head", _nothing),
        ("diptych.fair.expiring.ExpiringSet.begin", _nothing),
        ("diptych.fair.expiring.ExpiringSet.end", _nothing),
        ("diptych.serve.http.deadlines.Deadlines.enter", _nothing),
        ("diptych.serve.http.deadlines.Deadlines.leave", _nothing),
        ("diptych.serve.handler.CALLER", fairness_key),
        ("diptych.serve.handler.peer_name", _nothing),
        ("diptych.api.graphql.http.read_body", _decode),
        ("diptych.serve.endpoint.rest.may_keep", lambda *_: PRIVATE),
    ]
    with ExitStack() as stack:
        for name, step in steps:
            stack.enter_context(patch(name, step))
        yield


async def guard_costs() -> dict[str, float]:
    """Microseconds of CPU that the guard takes of Q1 and of R1."""
    with tempfile.TemporaryDirectory() as folder:
        app = Diptych(model, config=Config(database=f"sqlite:///{folder}/guard.db"))
        await app.start()
        try:
            await insert_sample(app.store, model)
            connection = Connection(app)
            requests = await _requests(connection)
            return {name: await _difference(connection, request) for name, request in requests.items()}
        finally:
            await app.stop()


async def _requests(connection: Connection) -> dict[str, bytes]:
    listed = await connection.ask(b"GET /users?first=1 HTTP/1.1\r\nhost: bench\r\n\r\n")
    key = listed.partition(b'"id":"')[2][:36]
    body = b'{"query":"%b","variables":{"id":"%b"}}' % (DOCUMENTS["Q1"].replace(" email", "").encode(), key)
    head = b"POST /graphql HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return {"Q1": head % len(body) + body, "R1": b"GET /users/%b HTTP/1.1\r\nhost: bench\r\n\r\n" % key}


async def _difference(connection: Connection, request: bytes) -> float:
    for _ in range(RUNS):
        assert (await connection.ask(request)).startswith(b"HTTP/1.1 200")
    guarded, bare = [], []
    for _ in range(ROUNDS):
        guarded.append(await _cpu(connection, request))
        with without_guard():
            bare.append(await _cpu(connection, request))
    return min(guarded) - min(bare)


async def _cpu(connection: Connection, request: bytes) -> float:
    gc.disable()
    begun = time.process_time()
    for _ in range(RUNS):
        await connection.ask(request)
    spent = time.process_time() - begun
    gc.enable()
    return spent / RUNS * 1e6


def main() -> None:
    """Prints both."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(guard_costs())
    told = ", ".join(f"{spent:.1f} µs of {name}" for name, spent in found.items())
    print(f"The guard takes {told}.")


if __name__ == "__main__":
    main()
