"""Retention: old changes and kept answers are deleted, a few at a time, so that nobody who writes waits for it."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import random

from diptych.background import Background
from diptych.db.replays import forget
from diptych.db.store import Store
from diptych.errors import Refusal

log = logging.getLogger("diptych")
_EVERY = 60.0
"""Seconds between two rounds; a little more or less, so that several processes do not come at once."""
_AT_A_TIME = 1_000
_BETWEEN = 0.05


class Trimmer:
    """Keeps the feed of a store within an age in seconds, and within a number of changes."""

    def __init__(self, store: Store, keep: float, rows: int) -> None:
        self._store = store
        self._keep = keep
        self._rows = rows
        self._going = Background()

    def start(self) -> None:
        self._going.start(self._rounds())

    async def stop(self) -> None:
        await self._going.stop()

    async def trim(self) -> int:
        """One round: how many changes were dropped."""
        dropped = 0
        while True:
            before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=self._keep)
            found = await self._store.trim(before, self._rows, _AT_A_TIME)
            dropped += found
            if found < _AT_A_TIME:
                return dropped
            await asyncio.sleep(_BETWEEN)

    async def forget(self) -> None:
        """Delete the answers that are too old to be replayed."""
        while await self._store.write(lambda: forget(self._store.dialect)):
            await asyncio.sleep(_BETWEEN)

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(_EVERY * random.uniform(0.8, 1.2))
            for work in (self.trim, self.forget):
                try:
                    await work()
                except Refusal as refusal:
                    log.warning("what is old cannot be deleted: %s", refusal)
                except Exception:
                    log.exception("what is old cannot be deleted")
