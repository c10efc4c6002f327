"""Retention: deletes old changes, stored idempotent replies and rows whose time in the trash is over, in small batches
that do not block writers."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import random
from collections.abc import Iterable
from functools import partial

from diptych.db.feed import webhook_floor
from diptych.db.idempotency import forget
from diptych.db.purge import purge
from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.model.defs import ResourceDef

log = logging.getLogger("diptych")
_EVERY = 60.0
"""Seconds between two rounds, with jitter for several processes."""
_AT_A_TIME = 1_000
_PURGED = 100
"""Rows of the trash at a time: others may go with each."""
_BETWEEN = 0.05
_GRACE = dt.timedelta(days=3)
"""How much longer changes are kept that webhooks have not delivered yet; of these there may be twice as many."""


class Retention:
    """Limits the feed of a store by age in seconds, and by number of changes; and the trash of `kept` by their time."""

    def __init__(self, store: Store, keep: float, rows: int, kept: Iterable[ResourceDef] = ()) -> None:
        self._store = store
        self._keep = keep
        self._rows = rows
        self._kept = tuple(resource for resource in kept if resource.trash)
        self._going = Background()

    def start(self) -> None:
        self._going.start(self._rounds())

    async def stop(self) -> None:
        await self._going.stop()

    async def trim(self) -> int:
        """Run one round; returns the number of deleted changes. What webhooks need is kept longer."""
        before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=self._keep)
        floor = await webhook_floor(self._store)
        if floor is None:
            return await self._trim(before, self._rows)
        delivered = floor - max((await self._store.head()).oldest, 1) + 1
        trimmed = await self._trim(before, self._rows, max(0, delivered))
        return trimmed + await self._trim(before - _GRACE, 2 * self._rows)

    async def _trim(self, before: dt.datetime, rows: int, most: int | None = None) -> int:
        """Delete old changes, at most the first `most` of the feed."""
        dropped = 0
        while most is None or dropped < most:
            size = _AT_A_TIME if most is None else min(_AT_A_TIME, most - dropped)
            deleted = await self._store.trim(before, rows, size)
            dropped += deleted
            if deleted < size:
                break
            await asyncio.sleep(_BETWEEN)
        return dropped

    async def forget(self) -> None:
        """Delete stored replies that have expired."""
        while await self._store.write(lambda: forget(self._store.dialect)):
            await asyncio.sleep(_BETWEEN)

    async def purge(self) -> int:
        """Run one round over the trash; returns the number of rows that were deleted for good."""
        purged = 0
        for resource in self._kept:
            skip, most = 0, _PURGED
            while skip <= _PURGED:
                gone = await self._store.write(partial(purge, resource, self._store.dialect, most, skip))
                if gone < 0:  # others refer to one of them: it is passed over
                    skip, most = skip + (most == 1), 1
                    continue
                purged += gone
                if gone < most:
                    break
                await asyncio.sleep(_BETWEEN)
        return purged

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(_EVERY * random.uniform(0.8, 1.2))
            for work in (self.trim, self.forget, self.purge):
                try:
                    await work()
                except Refusal as refusal:
                    log.warning("retention failed: %s", refusal)
                except Exception:
                    log.exception("retention failed")
