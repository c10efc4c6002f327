"""Deletes jobs that ended long ago, a batch at a time."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from diptych.ask.act import Act, acting
from diptych.db.job_queue import sweep_failed
from diptych.engine.call import CallEngine
from diptych.engine.transaction import ModelTx
from diptych.model.declare.roles import NOBODY

BATCH = 50
_BATCHES = 100
"""Batches of one sweep."""


async def sweep(calls: CallEngine, seconds: float) -> int:
    """Delete jobs that ended more than so many seconds ago; returns how many."""
    engine, job = calls.engine, calls.engine.model.job
    assert job is not None
    before = time.time() - seconds
    ended = {"finishedAt": {"lt": datetime.fromtimestamp(before, UTC)}}
    deleted, act = 0, Act("retention") if engine.model.audited else None
    for _ in range(_BATCHES):
        session = await engine.store.session()
        try:
            tx = ModelTx(calls.write_engine, session, NOBODY, engine.model.trusted(False))
            rows = await tx.select(job.cls, where=ended, first=BATCH)
            with acting(act):
                for row in rows:
                    await tx.delete(row)
                await session.commit()
        finally:
            await session.end()
        deleted += len(rows)
        if len(rows) < BATCH:
            break
    await engine.store.write(lambda: sweep_failed(engine.store.dialect, int(before * 1000)))
    return deleted
