"""Sends bytes on connections, several at a time, and reads what comes until there is nothing to wait for.

Nothing is waited for by time: what was sent is foreseen as the server will read it. Behind whole requests comes one that ends the
connection; behind half a one, the client ends; a stream is left when it has told something. Only a WebSocket that says
nothing is left after a moment.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tests.proof.fuzz.foresee import foresee
from tests.proof.fuzz.sample import LAST

PATIENCE = 30.0
"""Seconds after which a connection hangs."""
MOMENT = 0.05
_sources = itertools.cycle(range(2, 30))


@dataclass(frozen=True)
class Exchange:
    """What was sent, and what came of it. `ended` if the server closed; `hung` if nobody did."""

    sent: bytes
    came: bytes
    ended: bool
    hung: bool = False


def completed(raw: bytes) -> bytes:
    """The bytes with a last request behind them, if it can be brought about that it is read as one."""
    for _ in range(3):  # the first may be swallowed by a body
        foreseen = foresee(raw)
        if foreseen.end not in ("whole", "torn") or foreseen.ends:
            break
        raw += LAST
    return raw


async def exchange(port: int, sent: bytes) -> Exchange:
    """Send bytes on a connection of their own."""
    foreseen = foresee(sent)
    end = foreseen.end
    # many addresses, so that there are always ports left
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.0.0.{next(_sources)}", 0))
    came = bytearray()
    try:
        with suppress(ConnectionError):
            writer.write(sent)
            if end == "torn" or (end == "whole" and not foreseen.ends):
                writer.write_eof()
            async with asyncio.timeout(PATIENCE):
                await _read(reader, writer, came, patient=end in ("whole", "broken", "torn"))
        return Exchange(sent, bytes(came), reader.at_eof() or reader.exception() is not None)
    except TimeoutError:
        return Exchange(sent, bytes(came), ended=False, hung=True)
    finally:
        writer.transport.abort()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, came: bytearray, *, patient: bool) -> None:
    """Read to the end, or as much as tells something."""
    is_socket = False
    while True:
        if patient and not is_socket:
            part = await reader.read(1 << 16)
        else:
            part = await _soon(reader, writer)
        if not part:
            return
        came += part
        is_socket = is_socket or came.startswith(b"HTTP/1.1 101")
        if b"text/event-stream" in came and b"\n\n" in came.partition(b"\r\n\r\n")[2]:
            return


async def _soon(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """What comes in a moment; else the client ends, and waits for the server to do so."""
    try:
        async with asyncio.timeout(MOMENT):
            return await reader.read(1 << 16)
    except TimeoutError:
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()
        return await reader.read(1 << 16)


async def exchanges(port: int, draw: Iterator[bytes], width: int = 8) -> AsyncIterator[Exchange]:
    """What becomes of each request, in the order in which they end; so many at a time."""
    running: set[asyncio.Task[Exchange]] = set()
    for raw in draw:
        running.add(asyncio.create_task(exchange(port, raw)))
        if len(running) >= width:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    for task in running:
        yield await task


def shrink(raw: bytes, fails: Callable[[bytes], bool], tries: int = 400) -> bytes:
    """As few of the bytes as still fail: halves, quarters and so on are left out as long as that goes."""
    size = max(1, len(raw) // 2)
    while size and tries > 0:
        at, smaller = 0, False
        while at < len(raw) and tries > 0:
            tries -= 1
            less = raw[:at] + raw[at + size :]
            if less and fails(less):
                raw, smaller = less, True
            else:
                at += size
        if not smaller:
            size //= 2
    return raw
