"""A change of the API that a client can notice, and how bad it is."""

from __future__ import annotations

from msgspec import Struct


class Change(Struct, frozen=True, order=True):
    """What changed, where. A breaking change fails requests that worked; a dangerous one may surprise a client."""

    place: str
    sentence: str
    breaking: bool = True

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"
