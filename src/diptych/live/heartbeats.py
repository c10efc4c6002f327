"""Heartbeats of subscriptions, spread over the interval by a timer wheel."""

from __future__ import annotations

import random
from collections.abc import Callable

from diptych.fair.expiring import Ticker
from diptych.live.group import Subscription

_EVERY = 0.25
"""Seconds of one slot of the wheel."""


class Heartbeats(Ticker):
    """A timer wheel: a tick sends the heartbeats of one slot."""

    def __init__(self, seconds: float, beat: Callable[[list[Subscription]], None]) -> None:
        super().__init__(_EVERY)
        self._slots: list[dict[Subscription, None]] = [{} for _ in range(max(1, round(seconds / _EVERY)))]
        self._beat = beat
        self._at = 0

    def add(self, member: Subscription) -> None:
        """Add a subscription to a random slot among those that were ticked most recently."""
        slots = len(self._slots)
        member.slot = (self._at - 1 - random.randrange((slots + 1) // 2)) % slots
        self._slots[member.slot][member] = None
        self.start()

    def remove(self, member: Subscription) -> None:
        self._slots[member.slot].pop(member, None)

    def tick(self) -> bool:
        members = list(self._slots[self._at])
        self._at = (self._at + 1) % len(self._slots)
        self._beat(members)
        return any(self._slots)
