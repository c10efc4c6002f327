"""The end of the feed, and the wait for it at a start."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from diptych.db.store import FeedHead, Store
from diptych.errors import Code, Refusal
from diptych.live.tail import Tail


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
