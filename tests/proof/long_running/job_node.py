"""A node that runs jobs, to be killed: `python -m tests.proof.long_running.job_node DATABASE [FAULT]`.

FAULT plants a fault, so that the proof can be seen to fail: `unleased` runs jobs that another node has, and does not
look whether a run was replaced; `apart` commits the changes of a job before its end, and not together with it.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

from diptych import Config, Diptych, JobTx, Model, Resource, action, every, grant, signed_in
from diptych.db.job_queue import Run
from diptych.db.leases import Leases
from diptych.jobs import service
from diptych.jobs.run import JobRunner

STEPS = 3


class Effect(Resource):
    """What a job has done: one row for each step of each number."""

    number: int
    step: int
    job: str

    access = (grant("read", "create", to=signed_in),)

    @action(background=True, attempts=100)
    @classmethod
    async def make(cls, tx: JobTx, number: int) -> int:
        """Make the rows of a number, with checkpoints between them."""
        for step in range(tx.state or 0, 1 + number % STEPS):
            await asyncio.sleep(random.uniform(0, 0.05))
            await tx.save(Effect(number=number, step=step, job=tx.job_id))
            await asyncio.sleep(random.uniform(0, 0.02))
            if step < number % STEPS:
                await tx.checkpoint(step + 1)
        return number

    @every(seconds=1)
    @classmethod
    async def tick(cls, tx: JobTx) -> None:
        await tx.save(Effect(number=-1, step=0, job=tx.job_id))


model = Model(Effect)


def plant(fault: str) -> None:
    """Break the jobs."""
    if fault == "unleased":

        def take(self: Any, dialect: Any, id: str, node: str, milliseconds: int) -> Any:
            yield from whole(self, dialect, id, node, milliseconds)
            return True

        def held(self: Any, dialect: Any, *more: Any) -> Any:
            return True
            yield

        whole = Leases.take
        Leases.take = take  # type: ignore[method-assign]  # a planted fault
        for name in ("hold", "remove", "keep_state", "is_held"):
            setattr(Run, name, held)
    elif fault == "apart":
        end = JobRunner._end

        async def apart(self: Any, run: Run, session: Any, **values: Any) -> None:
            await session.commit()
            await asyncio.sleep(1.0)
            await end(self, run, session, **values)

        JobRunner._end = apart  # type: ignore[method-assign]  # a planted fault


async def run(database: str) -> None:
    app = Diptych(model, config=Config(database=database))
    await app.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    service.LEASE, service.POLL = 1.0, 0.1
    plant("".join(sys.argv[2:]))
    asyncio.run(run(sys.argv[1]))
