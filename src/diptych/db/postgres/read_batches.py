"""Batches of reads: each runs with a snapshot of its own.

A batch that takes longer than a moment is cancelled. Then, and if one of its reads fails or returns no row (answers
could not be distinguished), its reads run again, one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import asyncpg

from diptych.db.postgres.batches import Statement, StatementBatches
from diptych.db.postgres.link import Link
from diptych.db.postgres.pool import Pool
from diptych.fair.expiring import ExpiringSet

Values = Sequence[Any]
_LATE = 0.05
"""Seconds after which a batch is cancelled."""
_POLLS = 3
"""Iterations of the loop that a batch has after its time, to read an answer that is there."""


class ReadBatches(StatementBatches[Values]):
    """The reads of one pool."""

    __slots__ = ("_late",)
    fast = 0.004
    budget = 0.008

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, "runs of reads")
        self._late: ExpiringSet[asyncio.Task[None]] = ExpiringSet(_LATE, partial(_end_late, _POLLS))

    def _begin(self, batch: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = super()._begin(batch)
        self._late.begin(task)
        task.add_done_callback(self._late.end)
        return task

    async def _answers(self, statement: Statement[Values], link: Link, work: Sequence[Values]) -> Sequence[Any]:
        link.reads = True
        try:
            rows: Sequence[Any] = await link.read_many(statement.sql, work)
        except asyncpg.InvalidCachedStatementError:  # a table was altered: what was prepared is void
            link.statements.clear()
            raise
        finally:
            link.reads = False
        return rows if len(rows) == len(work) else [None] * len(work)


def _end_late(polls: int, batch: asyncio.Task[None]) -> None:
    """Cancel a batch that has had its time, unless its answer is there and only has to be read."""
    if batch.done():
        return
    if polls:
        asyncio.get_running_loop().call_soon(_end_late, polls - 1, batch)
    else:
        batch.cancel()
