"""What a stream is to those who fill it, whatever transport carries it."""

from __future__ import annotations

from typing import Protocol

from diptych.errors import Refusal


class Sink(Protocol):
    """One follower's end. All but `room` are called in the loop and never wait."""

    def put(self, cursor: str, body: bytes) -> None:
        """A change: its JSON is whole. One that cannot take it ends itself."""
        ...

    def beat(self, cursor: str) -> None:
        """Nothing happened that was not told, up to this cursor."""
        ...

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        """Nothing more comes: for the reason that is told, or because the server goes away."""
        ...

    def has_room(self) -> bool:
        """Is there room for more?"""
        ...

    async def room(self) -> None:
        """Wait until there is."""
        ...
