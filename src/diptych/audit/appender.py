"""Appends the changes of the feed to the audit log, with who made them.

Every process does so now and then, and before versions of rows are read. An append is one transaction: the entries, and
how far the feed was read. So a process that is killed leaves no hole, and two that append at once wait for each
other. Nothing is trimmed from the feed before it was appended (`live/retention.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from diptych.ask.act import acting
from diptych.audit.chain import Entry, one_line, version_in, without
from diptych.audit.statements import CUT, DROP_ACTS, HEAD, LOCK, MOVE_HEAD, NEXT, OLD, PUT, SET_FIRST
from diptych.compile.plan import Plan
from diptych.db.feed import sqlite_time
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.model.model import Model

log = logging.getLogger("diptych")
_AT_A_TIME = 500
_EVERY = 2.0
"""Seconds between two rounds, with jitter for several processes."""
_SWEEP = 60.0
"""Seconds between two rounds of retention."""
_changes = msgspec.json.Decoder(list[tuple[int, str, str, str, str | None, str | None, str | None]])
_HEAD = Plan(HEAD, columns=5)


class Appender:
    """Appends the changes of one store to its audit log, which keeps them for some seconds; 0 is for ever."""

    def __init__(self, store: Store, model: Model, keep: float = 0.0) -> None:
        self._store = store
        self._dialect = store.dialect.name
        self._masked = {table: audit.masked for table, audit in model.audited.items()}
        self._tables = json.dumps([*self._masked])
        self._keep = keep
        self._going = Background()
        self._one = asyncio.Lock()

    def start(self) -> None:
        self._going.start(self._rounds())

    async def stop(self) -> None:
        """End, when all that was committed is appended."""
        await self._going.stop()
        try:
            await self.append()
        except Refusal as refusal:
            log.warning("the audit log is not complete: %s", refusal)

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        """Run a statement over the audit log, which has all that was committed before."""
        await self.append()
        return await self._store.run(plan, parameters)

    async def position(self) -> int:
        """The position of the feed up to which all changes were appended."""
        position, *_ = await self._store.run(_HEAD, [])
        return int(position or 0)

    async def append(self) -> int:
        """Append all that was committed before; returns the number of entries."""
        appended = 0
        newest = (await self._store.head()).position
        if await self.position() >= newest:
            return 0
        async with self._one:
            while await self.position() < newest:
                with acting(None):
                    appended += await self._store.write(self._batch)
        return appended

    def _batch(self) -> Script[int]:
        """Append the next changes, and move the head."""
        head = yield Step(LOCK[self._dialect], ())
        assert head is not None
        position, number, before = int(head[0]), int(head[1]), str(head[2])
        batch = yield Step(NEXT[self._dialect], (position, self._tables, _AT_A_TIME))
        assert batch is not None
        changes = _changes.decode(batch[0])
        upto = changes[-1][0] if len(changes) == _AT_A_TIME else int(batch[1])
        if upto <= position:
            return 0
        rows: list[Sequence[Any]] = []
        for change in changes:
            number += 1
            entry = self._entry(number, *change)
            before = entry.hash(before)
            rows.append(_stored(entry, before))
        if rows:
            yield Step(PUT[self._dialect], (json.dumps(rows, ensure_ascii=False),))
        yield Step(MOVE_HEAD[self._dialect], (upto, number, before))
        return len(rows)

    def _entry(
        self,
        number: int,
        position: int,
        at: str,
        resource: str,
        row_id: str,
        old: str | None,
        new: str | None,
        act: str | None,
    ) -> Entry:
        columns = self._masked[resource]
        masked = json.dumps(columns, separators=(",", ":")) if columns else ""
        shown = [without(one_line(text), columns) for text in (old, new)]
        return Entry(number, position, at, resource, row_id, self._dialect, act, masked, *shown)

    # retention

    async def trim(self) -> int:
        """Delete the oldest entries that are older than they need be kept; returns the number of entries."""
        if not self._keep:
            return 0
        before = sqlite_time(datetime.now(UTC) - timedelta(seconds=self._keep))
        deleted = 0
        while cut := await self._store.write(lambda: self._cut(before)):
            deleted += cut
        return deleted

    def _cut(self, before: str) -> Script[int]:
        head = yield Step(LOCK[self._dialect], ())
        last = yield Step(OLD[self._dialect], (before, _AT_A_TIME))
        if head is None or last is None:
            return 0
        yield Step(CUT[self._dialect], (last[0],))
        yield Step(SET_FIRST[self._dialect], (int(last[0]) + 1, last[1]))
        return int(last[0]) + 1 - int(head[3])

    def _forget(self) -> Script[None]:
        yield Step(DROP_ACTS[self._dialect], ())

    async def _rounds(self) -> None:
        loop = asyncio.get_running_loop()
        sweep = loop.time()
        while True:
            await asyncio.sleep(_EVERY * random.uniform(0.8, 1.2))
            try:
                await self.append()
                if loop.time() >= sweep:
                    sweep = loop.time() + _SWEEP
                    await self._store.write(self._forget)
                    await self.trim()
            except Refusal as refusal:
                log.warning("changes are not appended to the audit log: %s", refusal)
            except Exception:
                log.exception("changes are not appended to the audit log")


def _stored(entry: Entry, hash: str) -> Sequence[Any]:
    """The columns of an entry, in the order of `PUT`."""
    plain = (entry.entry, entry.position, entry.at, entry.resource, entry.row_id)
    version = version_in(entry.new)
    return (*plain, version, entry.old, entry.new, entry.act, entry.masked or None, hash)
