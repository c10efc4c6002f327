"""Queues a call that runs in the background: stores the row of the job and its record in the caller's transaction.

    publishAllPosts(to: "x")  →  jobs: {action: "publishAllPosts", state: queued, owner}   diptych_jobs: {arguments …}

Both are committed with the answer, so a job that a client knows of runs, and one that was rolled back does not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from diptych.compile.dialect import Dialect
from diptych.db.job_queue import QueuedJob, add_job
from diptych.db.job_share import share_of
from diptych.db.store import Session
from diptych.model.call_defs import CallDef
from diptych.model.declare.job_resource import JobResource
from diptych.model.declare.tx import Tx
from diptych.model.model import Model
from diptych.model.scalar_values import to_json


def arguments_of(definition: CallDef, id: Any, arguments: Mapping[str, Any]) -> str:
    """The row and the arguments of a call, as JSON: the same text from both styles."""
    sent = {
        argument.name: None if value is None else to_json(argument.scalar, value)
        for argument in definition.arguments
        for value in (arguments[argument.attr],)
    }
    return json.dumps({"id": None if id is None else str(id), "arguments": sent})


async def enqueue(
    model: Model,
    name: str,
    arguments: str,
    owner: str,
    tx: Tx,
    session: Session,
    dialect: Dialect,
    *,
    is_tick: bool = False,
) -> JobResource:
    """Store a job, which runs once the transaction is committed, with the rules of its owner. A tick goes first."""
    assert model.job is not None
    kind: Any = model.job.cls
    row: JobResource = await tx.trusted.save(kind(action=name, owner=tx.viewer.id))
    created_at, turn = int(time.time() * 1000), 0 if is_tick else 1
    record = QueuedJob(row.id, name, arguments, owner, 0, "null", created_at, 0, "", 0, share_of(owner), turn)
    await session.drive(lambda: add_job(dialect, record, model.job_names))
    return row
