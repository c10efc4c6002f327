"""Ends streams whose token is no longer valid, or whose viewer has changed.

A request verifies its token every time; a stream is long-lived. So the tokens of all subscriptions are verified again
twice a second, and whenever tokens were revoked: an invalid token ends the stream, and so does a viewer with other
roles or values than before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from diptych.errors import Code, Refusal
from diptych.fair.background import Background
from diptych.identity.viewer import Caller, Context, InvalidToken
from diptych.live.group import Subscription

log = logging.getLogger("diptych")
_EVERY = 0.4
"""Seconds between two rounds."""


_IN_A_ROW = 100
"""Tokens that are verified before the event loop may run something else."""


class TokenWatch:
    """The subscriptions with a token, by Authorization header."""

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
        self._context.on_revoked = self._ended.set
        self._going.start(self._rounds())

    async def stop(self) -> None:
        self._context.on_revoked = None
        await self._going.stop()

    async def _rounds(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY):  # wait_for() of Python 3.11 may swallow a cancellation
                    await self._ended.wait()
            self._ended.clear()
            await self.look()

    async def look(self) -> None:
        """Verify all tokens once."""
        for number, (sent, members) in enumerate(tuple(self._members.items()), 1):
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
            try:
                now = self._context.caller(sent) or await self._context.find(sent)
            except Refusal as refusal:
                if refusal.code is Code.UNAVAILABLE:  # the token cannot be verified now
                    continue
                self._end_all(members, None)
            except Exception:
                log.exception("the token of a subscription cannot be verified")
                self._end_all(members, None)
            else:
                self._end_all(members, now)

    def _end_all(self, members: Mapping[Subscription, None], now: Caller | None) -> None:
        """End the subscriptions whose viewer is not the same as before."""
        for member in tuple(members):
            if now is None or not now.has_viewer_of(member.caller):
                self._end(member, InvalidToken())
