"""A message of NOTIFY that is no notice is a wake-up; one of the relay is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from diptych.db.postgres.channel import NoticeChannel
from diptych.db.postgres.relay import Relay


class Carried:
    """A relay that is called by hand."""

    def __init__(self, heard: Callable[[str], bool], switched: Callable[[bool], None]) -> None:
        self.heard, self.switched, self.feed = heard, switched, ""

    def follow(self, feed: str) -> None:
        self.feed = feed

    async def close(self) -> None: ...


def test_what_is_no_notice_wakes_by_notify_and_not_by_the_relay() -> None:
    async def work() -> None:
        woken: list[bool] = []
        channel = NoticeChannel(None, lambda heard, switched: cast(Relay, Carried(heard, switched)))
        channel.follow("ab")
        channel.start(lambda: woken.append(True), lambda notice: notice == "valid")
        relay = cast(Any, channel.relay)
        assert relay.feed == "ab"
        channel._hear("valid")
        assert relay.heard("valid") and not relay.heard("forged") and not woken
        channel._hear("forged")
        assert len(woken) == 1
        relay.switched(False)
        assert len(woken) == 2, "one may have been missed"
        await channel.close()
        channel.committed()
        assert len(woken) == 2

    asyncio.run(work())
