"""One timer for many items: items expire after their timeout and at most one tick later, and an empty set does not tick."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

import pytest

from diptych.fair.expiring import ExpiringSet, Ticker

SECONDS = 0.2


def run(work: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 20))


class Three(Ticker):
    """Ticks three times; the first one fails."""

    def __init__(self) -> None:
        super().__init__(0.01)
        self.ticks = 0

    def tick(self) -> bool:
        self.ticks += 1
        if self.ticks == 1:
            raise ValueError("the first")
        return self.ticks < 3


def test_a_ticker_goes_on_until_it_is_told_not_to_and_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    ticker = Three()

    async def work() -> None:
        ticker.start()
        ticker.start()
        while ticker._timer is not None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert ticker.ticks == 3

    with caplog.at_level(logging.ERROR, "asyncio"):
        run(work)
    assert [record.exc_info[1].args for record in caplog.records if record.exc_info and record.exc_info[1]] == [
        ("the first",)
    ]


def test_a_ticker_ticks_in_a_new_loop() -> None:
    ticker = Three()

    async def left() -> None:
        ticker.start()

    async def work() -> None:
        ticker.ticks = 1
        ticker.start()
        while ticker._timer is not None:
            await asyncio.sleep(0.01)

    run(left)
    run(work)
    assert ticker.ticks == 3


def test_items_expire_in_order_and_not_early() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        expired: dict[str, float] = {}
        items: ExpiringSet[str] = ExpiringSet(SECONDS, lambda item: expired.update({item: loop.time()}))
        begun = {}
        for item in "abc":
            begun[item] = loop.time()
            items.begin(item)
            await asyncio.sleep(SECONDS / 4)
        items.begin("ended")
        items.end("ended")
        begun["a"] = loop.time()
        items.begin("a")
        assert items.first() == "b" and items.oldest() == "b" and "a" in items and len(items) == 3
        while items:
            await asyncio.sleep(0.01)
        assert list(expired) == ["b", "c", "a"]
        assert all(expired[item] - begun[item] >= SECONDS for item in expired)
        await asyncio.sleep(SECONDS / 4)
        assert items._timer is None

    run(work)


def test_an_item_of_this_tick_is_the_first_and_not_the_oldest() -> None:
    async def work() -> None:
        items: ExpiringSet[str] = ExpiringSet(60, lambda item: None)
        assert items.first() is None and items.oldest() is None
        items.begin("a")
        assert items.first() == "a" and items.oldest() is None
        items.stop()
        assert not items and items._timer is None

    run(work)


def test_an_item_that_is_added_when_it_expires_stays_for_as_long_again() -> None:
    async def work() -> None:
        expired: list[str] = []

        def again(item: str) -> None:
            expired.append(item)
            if len(expired) < 3:
                items.begin(item)

        items: ExpiringSet[str] = ExpiringSet(0.05, again)
        begun = asyncio.get_running_loop().time()
        items.begin("a")
        while items:
            await asyncio.sleep(0.01)
        assert expired == ["a"] * 3
        assert asyncio.get_running_loop().time() - begun >= 0.15

    run(work)
