"""Reading a request body that has not arrived completely, with a limit on its size and on all bodies together.

Incomplete bodies are held in memory, and there can be very many slow senders: together they may hold
`ConnectionLimits.bodies` bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from diptych.api.reply import CodedBody
from diptych.errors import Code, Refusal
from diptych.serve.asgi import Receive
from diptych.serve.http.connection_limits import ConnectionLimits


class Arrived(Struct, eq=False, gc=False):
    """The body of a request that has arrived completely."""

    body: bytes

    async def __call__(self, most: int) -> bytes:
        """The whole body; raises a Refusal if it is larger than `most`."""
        if len(self.body) > most:
            raise too_large(most)
        return self.body


async def read_arriving(receive: Receive, limits: ConnectionLimits, most: int) -> bytes:
    """Read the whole body while it arrives, or stop once it is larger than `most`."""
    chunks: list[bytes] = []
    size = 0
    more = True
    try:
        while more and size <= most:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(Code.BAD_REQUEST, "The client disconnected.")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            limits.held += len(chunks[-1])
            more = message.get("more_body", False)
            if more and limits.held > limits.bodies:
                raise Refusal(Code.UNAVAILABLE, "Too many request bodies are being received; try again.")
    finally:
        limits.held -= size
    return b"".join(chunks)


async def refuse_coded(most: int) -> bytes:
    """The reader of a compressed body."""
    raise CodedBody


def is_coded(headers: Mapping[bytes, bytes]) -> bool:
    """Has the body a content coding?"""
    return headers.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity")


def too_large(most: int) -> Refusal:
    return Refusal(Code.PAYLOAD_TOO_LARGE, f"The body may have {most} bytes.")
