"""The end of the feed, and the wait for it at a start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from diptych.db.store import FeedHead, FeedPeek, Store
from diptych.errors import Code, Refusal
from diptych.live.tail import Tail
from tests.unit.db.test_notice import FEED, SECRET, signed


class Slow:
    """A store whose changes are numbered only at the third look."""

    numbers = False

    def __init__(self, code: Code) -> None:
        self.code, self.looks = code, 0

    async def head(self) -> FeedHead:
        self.looks += 1
        if self.looks < 3:
            raise Refusal(self.code, "The changes are being numbered; try again.")
        return FeedHead("ab" * 8, 7, 1, 1)


def test_a_start_waits_until_the_changes_of_others_are_numbered() -> None:
    tail = Tail(cast(Store, Slow(Code.UNAVAILABLE)), b"x" * 32, lambda *_: None)
    asyncio.run(tail.start())
    assert tail.head.position == 7


def test_any_other_refusal_ends_it() -> None:
    store = Slow(Code.TIMEOUT)
    with pytest.raises(Refusal):
        asyncio.run(Tail(cast(Store, store), b"x" * 32, lambda *_: None).start())
    assert store.looks == 1


class Counting:
    """A store that numbers, says what it was asked for, and has no changes but those of notices."""

    numbers = True
    look_every = 60.0

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.position = 7
        self.is_waiting = False

    async def head(self) -> FeedHead:
        self.asked.append("head")
        self.is_waiting = False
        return FeedHead(FEED, self.position, 1, 1)

    async def peek(self) -> FeedPeek:
        self.asked.append("peek")
        return FeedPeek(FeedHead(FEED, self.position, 1, 1), self.is_waiting)

    def on_commit(self, wake: Callable[[], None] | None, heard: Callable[[str], bool] | None = None) -> None: ...


class Following:
    """A tail with subscriptions, and how it advanced."""

    def __init__(self) -> None:
        self.store = Counting()
        self.advances: list[tuple[int, int, Any]] = []
        self.tail = Tail(cast(Store, self.store), SECRET, self._advance)

    def _advance(self, before: FeedHead, after: FeedHead, touched: Any) -> None:
        self.advances.append((before.position, after.position, touched))

    async def __aenter__(self) -> Following:
        await self.tail.start()
        self.tail.follow(True)
        await self.until(lambda: len(self.store.asked) == 2)  # the start, and the first poll
        self.store.asked.clear()
        self.advances.clear()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.tail.stop()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.001)


def test_a_notice_is_taken_without_asking_the_database() -> None:
    async def work() -> None:
        async with Following() as it:
            digest = it.tail.notices.digest("posts", "1")
            it.tail.hear(signed(f'{FEED} 7 9 3 1 [["posts", "{digest.hex()}"]]'))
            await it.until(lambda: it.tail.head.position == 9)
            it.tail.hear(signed(f'{FEED} 7 9 3 1 [["posts", "{digest.hex()}"]]'))  # once more, by whoever heard it
            it.tail.hear(signed(f"{FEED} 9 10 4 1 []"))
            await it.until(lambda: it.tail.head.position == 10)
            assert it.advances == [(7, 9, {"posts": {digest}}), (9, 10, {})]
            assert it.store.asked == []

    asyncio.run(work())


@pytest.mark.parametrize(
    ("payload", "asked"),
    [
        (signed(f"{FEED} 8 9 3 1 []"), ["peek"]),  # one was missed
        (signed(f"{'cd' * 8} 7 9 3 1 []"), ["peek"]),  # of another feed
    ],
)
def test_what_a_notice_leaves_open_is_looked_up(payload: str, asked: list[str]) -> None:
    async def work() -> None:
        async with Following() as it:
            assert it.tail.hear(payload)
            await it.until(lambda: it.store.asked == asked)
            assert it.tail.head.position == 7

    asyncio.run(work())


@pytest.mark.parametrize("payload", ["", signed(f"{FEED} 7 9000 3 1 []", b"forged")])
def test_what_is_no_notice_changes_nothing(payload: str) -> None:
    async def work() -> None:
        async with Following() as it:
            assert not it.tail.hear(payload)
            await asyncio.sleep(0.05)
            assert it.tail.head.position == 7 and it.store.asked == []

    asyncio.run(work())


def test_a_notice_that_has_overtaken_another_waits_for_it() -> None:
    async def work() -> None:
        async with Following() as it:
            it.tail.hear(signed(f"{FEED} 9 10 4 1 []"))
            await asyncio.sleep(0.01)
            assert it.tail.head.position == 7
            it.tail.hear(signed(f"{FEED} 7 9 3 1 []"))
            await it.until(lambda: it.tail.head.position == 10)
            assert it.advances == [(7, 9, {}), (9, 10, {})]
            await asyncio.sleep(0.05)
            assert it.store.asked == []

    asyncio.run(work())


def test_what_this_process_commits_is_numbered_at_once() -> None:
    async def work() -> None:
        async with Following() as it:
            it.tail.wake()
            await it.until(lambda: it.store.asked == ["head"])

    asyncio.run(work())


def test_what_others_leave_unnumbered_is_numbered_by_the_next_poll() -> None:
    async def work() -> None:
        async with Following() as it:
            it.store.look_every = 0.01
            it.tail.hear(signed(f"{FEED} 7 8 3 1 []"))  # the next poll is soon after it
            it.store.position = 8
            await it.until(lambda: len(it.store.asked) > 3)
            assert set(it.store.asked) == {"peek"}
            it.store.is_waiting = True
            await it.until(lambda: "head" in it.store.asked)

    asyncio.run(work())
