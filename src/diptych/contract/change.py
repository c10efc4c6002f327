"""A change of the API that a client can notice, and how bad it is."""

from __future__ import annotations

from msgspec import Struct


class ContractChange(Struct, frozen=True, order=True):
    """What changed, where. A breaking change fails requests that worked; a dangerous one may surprise a client.

    An announced one removes what was deprecated, after its sunset.
    """

    place: str
    sentence: str
    breaking: bool = True
    announced: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"
