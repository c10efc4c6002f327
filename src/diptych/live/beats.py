"""Heart-beats: every follower hears something every so often, and not all of them at once."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from diptych.background import Background
from diptych.live.group import Subscription

log = logging.getLogger("diptych")
_EVERY = 0.25
"""Seconds between two turns of the wheel."""


class Beats:
    """A wheel: each turn is for the followers of one slot, and each follower has its turn once in a while."""

    def __init__(self, seconds: float, beat: Callable[[list[Subscription]], None]) -> None:
        self._slots: list[dict[Subscription, None]] = [{} for _ in range(max(1, round(seconds / _EVERY)))]
        self._beat = beat
        self._at = 0
        self._going = Background()

    def add(self, member: Subscription) -> None:
        """In a slot that has had its turn not long ago: those who come together have their turns apart."""
        slots = len(self._slots)
        member.slot = (self._at - 1 - random.randrange((slots + 1) // 2)) % slots
        self._slots[member.slot][member] = None

    def remove(self, member: Subscription) -> None:
        self._slots[member.slot].pop(member, None)

    def start(self) -> None:
        self._going.start(self._turn())

    async def stop(self) -> None:
        await self._going.stop()

    async def _turn(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            members = list(self._slots[self._at])
            self._at = (self._at + 1) % len(self._slots)
            try:
                self._beat(members)
            except Exception:
                log.exception("heart-beats failed")
