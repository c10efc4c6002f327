"""A receiver of webhooks: an HTTP server in this process, or in one of its own, whose endpoints behave as they are told.

async with Receiver() as receiver:
    receiver.url("good")                     http://127.0.0.1:…/good
    receiver.messages["good"]                [Message(id, timestamp, signature, body), …]

How an endpoint behaves is the first word of its name: good, slow, failing, redirecting, hanging, lying, closing, flaky.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple


class Message(NamedTuple):
    """A message as it was received."""

    id: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    @property
    def row(self) -> str:
        return str(self.event["data"]["rowId"])


class Receiver:
    """An HTTP server whose endpoints note what they are sent."""

    def __init__(self, port: int = 0) -> None:
        self.messages: dict[str, list[Message]] = defaultdict(list)
        self.statuses: dict[str, int] = {}
        """The status that an endpoint answers, instead of what its name says."""
        self.slow = 1.0
        self.keeps = True
        """Are messages kept?"""
        self.on_message: Callable[[str, Message], Awaitable[None]] | None = None
        self.judge: Callable[[Message], int] | None = None
        """The status for a message, if that depends on it."""
        self._port = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                pairs = (line.partition(": ") for line in lines[1:] if line)
                headers = {name.lower(): value for name, _, value in pairs}
                body = await reader.readexactly(int(headers["content-length"]))
                name = lines[0].split(" ")[1].removeprefix("/")
                message = Message(headers["webhook-id"], headers, body)
                answer = await self._answer(name, message, writer)
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, name: str, message: Message, writer: asyncio.StreamWriter) -> bytes | None:
        kind = name.partition("-")[0]
        status = self.statuses.get(name, 200)
        if kind == "slow":
            await asyncio.sleep(self.slow)
        elif kind == "failing" or (kind == "flaky" and random.random() < 0.2):
            status = 500
        elif kind == "hanging":
            await asyncio.sleep(3_600)
        elif kind == "redirecting":
            return b"HTTP/1.1 302 Found\r\nLocation: /good\r\nContent-Length: 0\r\n\r\n"
        elif kind == "closing":
            return None
        elif kind == "lying":
            writer.write(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ff\r\n" + b"x" * 255 + b"\r\n")
            for _ in range(10_000):
                writer.write(b"ffff\r\n" + b"x" * 65_535 + b"\r\n")
                await writer.drain()
            return None
        elif self.judge is not None:
            status = self.judge(message)
        if 200 <= status < 300:
            if self.keeps:
                self.messages[name].append(message)
            if self.on_message is not None:
                await self.on_message(name, message)
        return b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok" % status
