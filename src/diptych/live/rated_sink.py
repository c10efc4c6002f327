"""A sink whose changes are paid for: a stream over the rate of its caller pauses until the rate allows more.

Nothing is lost meanwhile, and nothing is buffered: the subscription leaves its group like a slow reader, and reads the
feed at the pace of the rate.
"""

from __future__ import annotations

import asyncio

from diptych.engine.rate_limiter import Spending
from diptych.errors import Refusal
from diptych.live.sink import Sink

_LONGEST = 5.0
"""Seconds of one sleep: the rate may allow more earlier than it seemed."""


class RatedSink:
    """A Sink that takes the price of each change from the rates of a caller."""

    __slots__ = ("_price", "_sink", "_spending")

    def __init__(self, sink: Sink, spending: Spending, price: int) -> None:
        self._sink = sink
        self._spending = spending
        self._price = price

    def put(self, cursor: str, body: bytes) -> None:
        self._spending.overdraw(self._price)
        self._sink.put(cursor, body)

    def beat(self, cursor: str) -> None:
        self._sink.beat(cursor)

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        self._sink.end(refusal, cursor)

    def has_room(self) -> bool:
        return self._sink.has_room() and self._spending.wait(self._price) <= 0

    async def room(self) -> None:
        await self._sink.room()
        while (wait := self._spending.wait(self._price)) > 0:
            await asyncio.sleep(min(wait, _LONGEST))
            await self._sink.room()
