"""A process that is killed anywhere leaves no change out of the chain, and none in it twice."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time

from diptych.audit.log import verify
from tests.contract.audit.audited_model import ANN, MODEL, entries, serving
from tests.support.effort import scaled
from tests.support.in_process import in_process
from tests.support.running import ROOT

KILLS = scaled(20, 2)


def test_no_change_is_missing_from_the_chain_after_kills(database: str) -> None:
    with serving(database):
        pass
    dice = random.Random(1)
    for _ in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.audit.scribe", database], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(dice.uniform(0.3, 1.0))
        child.kill()
        child.wait()
        child.stdout.close()
    with asyncio.Runner() as runner, in_process(MODEL, database, runner, {}) as service:

        async def fed() -> list[int]:
            session = await service.app.store.session(reading=True)
            try:
                sql = "SELECT position FROM diptych_feed WHERE resource = 'posts' ORDER BY position"
                return [position for (position,) in await session.rows(sql, ())]
            finally:
                await session.end()

        # PostgreSQL may still commit what a process that was killed has sent
        changes, logged = runner.run(fed()), entries(service)
        while (later := runner.run(fed())) != changes:
            changes, logged = later, entries(service)
        assert runner.run(verify(service.app.store)) == (len(logged), None)
        assert [entry["position"] for entry in logged] == changes
        assert len(logged) >= 6 * KILLS
        assert {json.dumps(entry["actor"].get("user")) for entry in logged} == {f'"{ANN}"'}
