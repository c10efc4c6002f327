"""Ends the streams of those whose token has ended, or who are no longer who they were.

A request proves its token anew every time; a stream lasts. So everyone who follows is looked at again, twice a second,
and whenever tokens were revoked: a token that does not hold any more, and a viewer with other roles or values than
before, end the stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from diptych.background import Background
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller, Context, InvalidToken
from diptych.live.group import Subscription

log = logging.getLogger("diptych")
_EVERY = 0.4
"""Seconds between two rounds."""


_IN_A_ROW = 100
"""Tokens that are looked at before others have their turn."""


class Watchman:
    """Those who follow with a token, by the header that proved it."""

    def __init__(self, context: Context, end: Callable[[Subscription, Refusal], None]) -> None:
        self._context = context
        self._end = end
        self._members: dict[bytes, dict[Subscription, None]] = {}
        self._going = Background()
        self._ended = asyncio.Event()

    def add(self, member: Subscription) -> None:
        sent = member.caller.sent
        if sent is not None:
            self._members.setdefault(sent, {})[member] = None

    def remove(self, member: Subscription) -> None:
        sent = member.caller.sent
        if sent is not None and sent in self._members:
            self._members[sent].pop(member, None)
            if not self._members[sent]:
                del self._members[sent]

    def start(self) -> None:
        self._context.when_ended = self._ended.set
        self._going.start(self._rounds())

    async def stop(self) -> None:
        self._context.when_ended = None
        await self._going.stop()

    async def _rounds(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _EVERY)
            self._ended.clear()
            await self.look()

    async def look(self) -> None:
        """One round."""
        for number, (sent, members) in enumerate(tuple(self._members.items()), 1):
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
            try:
                now = self._context.caller(sent) or await self._context.find(sent)
            except Refusal as refusal:
                if refusal.code is Code.UNAVAILABLE:  # nobody can tell now
                    continue
                self._end_all(members, None)
            except Exception:
                log.exception("a caller who follows cannot be looked at")
                self._end_all(members, None)
            else:
                self._end_all(members, now)

    def _end_all(self, members: Mapping[Subscription, None], now: Caller | None) -> None:
        """End the streams of those who are not who they were."""
        for member in tuple(members):
            then = member.caller
            if now is then:
                continue
            if now is None or now.viewer != then.viewer or now.signature != then.signature:
                self._end(member, InvalidToken())
