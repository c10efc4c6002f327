"""The interface of a stream to its producer, independent of the transport."""

from __future__ import annotations

from typing import Protocol

from diptych.errors import Refusal


class Sink(Protocol):
    """The receiving end of one subscription. All methods but `room` return at once."""

    def put(self, cursor: str, body: bytes) -> None:
        """Send a change, as complete JSON. A sink that is full ends itself."""

    def beat(self, cursor: str) -> None:
        """Send a heartbeat: all changes up to this cursor were sent."""

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        """End the stream: with a refusal, or because the server shuts down."""

    def has_room(self) -> bool:
        """Is there room for more?"""

    async def room(self) -> None:
        """Wait until there is room."""
