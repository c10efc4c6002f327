"""A body that has not arrived completely when it is asked for: what of it is held, and when that is too much.

Bodies of all requests together may hold so many bytes while they are under way. Whoever sends slowly holds what it
sent, and there can be very many such.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from diptych.errors import Code, Refusal
from diptych.serve.gate import Gate

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Arriving:
    """The body of one request."""

    __slots__ = ("_gate", "_most", "_receive", "_size")

    def __init__(self, receive: Receive, gate: Gate, most: int) -> None:
        self._receive = receive
        self._gate = gate
        self._most = most
        self._size = 0

    async def read(self) -> bytes:
        """All of it, or as much as shows that it is too large."""
        try:
            return await self._chunks()
        finally:
            self._gate.held -= self._size

    async def _chunks(self) -> bytes:
        chunks = []
        more = True
        while more and self._size <= self._most:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Refusal(Code.BAD_REQUEST, "The client went away.")
            chunk = message.get("body", b"")
            chunks.append(chunk)
            self._size += len(chunk)
            self._gate.held += len(chunk)
            more = message.get("more_body", False)
            if more and self._gate.held > self._gate.bodies:
                raise Refusal(Code.UNAVAILABLE, "Too many bodies are under way; try again.")
        return b"".join(chunks)


def too_large(most: int) -> Refusal:
    return Refusal(Code.PAYLOAD_TOO_LARGE, f"The body may have {most} bytes.")
