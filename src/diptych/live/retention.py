"""Retention: deletes old changes, stored idempotent replies and rows whose time in the trash is over, in small batches
that do not block writers."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import random
from collections.abc import Iterable
from functools import partial
from typing import Any

from diptych.ask.act import Act, acting
from diptych.audit.appender import Appender
from diptych.compile.system.audit import ACT_OF_SESSION
from diptych.config import Config
from diptych.db.feed import webhook_floor
from diptych.db.idempotency import forget
from diptych.db.purge import Purged, purge
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.model.defs import ResourceDef

log = logging.getLogger("diptych")
_EVERY = 60.0
"""Seconds between two rounds, with jitter for several processes."""
_AT_A_TIME = 1_000
_PURGED = 100
"""Rows of the trash at a time: others may go with each."""
_PASSED = 1_000
"""Rows of one table that a round passes over at most, since others refer to them; the next one goes on behind them."""
_BETWEEN = 0.05
_GRACE = dt.timedelta(days=3)
"""How much longer changes are kept that webhooks have not delivered yet; of these there may be twice as many."""


class Retention:
    """Limits the feed of a store by age in seconds, and by number of changes; and the trash of `kept` by their time."""

    def __init__(
        self,
        store: Store,
        keep: float,
        rows: int,
        kept: Iterable[ResourceDef] = (),
        appender: Appender | None = None,
    ) -> None:
        self._store = store
        self._appender = appender
        self._act = None if appender is None else Act("retention")
        self._keep = keep
        self._rows = rows
        self._kept = tuple(resource for resource in kept if resource.trash)
        self._after: dict[str, tuple[Any, Any] | None] = {}
        """Where the last round over a table ended, if it did not come to the end."""
        self._going = Background()

    @classmethod
    def of(cls, engine: Engine, config: Config) -> Retention:
        """Retention as the settings have it; where the model is audited, changes are appended to the audit log."""
        store, model, appender = engine.store, engine.model, None
        if model.audited:
            appender = Appender(store, model, config.audit_keep)
            engine.run_audited = appender.run
        return cls(store, config.feed_keep, config.feed_rows, model.resources.values(), appender)

    def start(self) -> None:
        self._going.start(self._rounds())
        if self._appender is not None:
            self._appender.start()

    async def stop(self) -> None:
        await self._going.stop()
        if self._appender is not None:
            await self._appender.stop()

    async def trim(self) -> int:
        """Run one round; returns the number of deleted changes. What webhooks need is kept longer, and what is not in
        the audit log is kept in any case."""
        before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=self._keep)
        appended = await self._appended()
        floor = await webhook_floor(self._store)
        if floor is None:
            return await self._trim(before, self._rows, appended)
        delivered = max(0, floor - max((await self._store.head()).oldest, 1) + 1)
        trimmed = await self._trim(before, self._rows, delivered if appended is None else min(delivered, appended))
        return trimmed + await self._trim(
            before - _GRACE, 2 * self._rows, None if appended is None else appended - trimmed
        )

    async def _appended(self) -> int | None:
        """How many changes of the feed are in the audit log; None if nothing is audited."""
        if self._appender is None:
            return None
        await self._appender.append()
        return max(0, await self._appender.position() - max((await self._store.head()).oldest, 1) + 1)

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
        return sum([await self._purge(resource) for resource in self._kept])

    async def _purge(self, resource: ResourceDef) -> int:
        """Delete the rows of one table for good. If others refer to one of a batch, its rows are tried one by one."""
        purged, passed, most = 0, 0, _PURGED
        while passed < _PASSED:
            after = self._after.get(resource.name)
            with acting(self._act):
                batch = await self._store.write(partial(self._purged, resource, most, after))
            if batch.rows < 0 and most > 1:
                most = 1
                continue
            self._after[resource.name] = batch.last
            if batch.last is None:
                break
            if batch.rows < 0:
                passed += 1
                continue
            purged, most = purged + batch.rows, min(2 * most, _PURGED)
            await asyncio.sleep(_BETWEEN)
        return purged

    def _purged(self, resource: ResourceDef, most: int, after: tuple[Any, Any] | None) -> Script[Purged]:
        """Delete rows for good, and record that nobody did."""
        batch = yield from purge(resource, self._store.dialect, most, after)
        if batch.rows > 0 and self._act is not None and self._store.dialect.acting:
            yield Step(ACT_OF_SESSION, (self._act.text,))
        return batch

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
