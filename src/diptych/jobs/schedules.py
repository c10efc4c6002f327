"""Makes jobs of the ticks of schedules: of all nodes, one gets each tick.

A tick is taken and its job is stored in one transaction, and the tick is then the next one after now: so ticks that
nobody was up for are one job, and so are those that come while the job before has not ended.
"""

from __future__ import annotations

import time
from functools import partial

from diptych.ask.act import Act, acting
from diptych.db.job_queue import SCHEDULES, database_clock, declare_schedule, tick
from diptych.db.store import Store
from diptych.engine.background import enqueue
from diptych.engine.transaction import ModelTx
from diptych.engine.write import WriteEngine
from diptych.identity.owner import fixed_owner
from diptych.model.call_defs import ScheduleDef
from diptych.model.declare.roles import NOBODY

AGAIN = 2.0
"""Seconds until a tick is tried again whose job before has not ended."""
_NO_ARGUMENTS = '{"id": null, "arguments": {}}'


class Schedules:
    """The schedules of one process."""

    def __init__(self, write_engine: WriteEngine) -> None:
        self._write_engine = write_engine
        self._model = write_engine.engine.model
        self._store: Store = write_engine.engine.store
        self._try_at: dict[str, float] = dict.fromkeys(self._model.schedules, 0.0)
        """When the next tick of each is tried, in seconds."""

    @property
    def names(self) -> list[str]:
        return [*self._try_at]

    async def declare(self) -> None:
        """Store the next tick of schedules that are new, or whose timetable has changed."""
        for schedule in self._model.schedules.values():
            when = schedule.when
            first, timetable = when.after(time.time()) * 1000, f"{when.interval}+{when.offset}"
            declared = partial(declare_schedule, self._store.dialect, schedule.name, timetable, first)
            await self._store.write(declared)

    async def look(self) -> float:
        """Take the ticks that are due; returns the seconds until there may be more."""
        for name, schedule in self._model.schedules.items():
            if self._try_at[name] <= time.time():
                await self._take(schedule)
        return max(0.0, min(self._try_at.values(), default=time.time() + AGAIN) - time.time())

    async def _take(self, schedule: ScheduleDef) -> None:
        name, dialect = schedule.name, self._store.dialect
        session = await self._store.session()
        try:
            now = await session.drive(lambda: database_clock(dialect)) / 1000
            following = schedule.when.after(now)
            with acting(Act("job", operation=name) if self._model.audited else None):
                if await session.drive(lambda: tick(dialect, name, following * 1000)):
                    tx = ModelTx(self._write_engine, session, NOBODY, self._model.trusted(False))
                    owner = fixed_owner(schedule.roles)
                    await enqueue(self._model, name, _NO_ARGUMENTS, owner, tx, session, dialect, is_tick=True)
                row = await session.drive(lambda: SCHEDULES.find(dialect, name=name))
                await session.commit()
        finally:
            await session.end()
        ahead = 0.0 if row is None else row.next_at / 1000 - now
        self._try_at[name] = time.time() + (ahead if ahead > 0 else AGAIN)
