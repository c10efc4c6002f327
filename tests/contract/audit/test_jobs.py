"""Changes that a job makes have its owner as their actor."""

from __future__ import annotations

import asyncio
import json

from diptych import Audited, JobTx, Model, Resource, action, grant
from diptych.audit.appender import Appender
from diptych.audit.log import Chosen, exported
from tests.contract.jobs.test_jobs import settle
from tests.support.in_process import in_process

ANN = "01900000-0000-7000-8000-00000000000a"


class Page(Resource, audit=Audited(reason="required")):
    access = (grant("read", "create", "update"),)
    text: str

    @action(background=True)
    async def archive(self, tx: JobTx) -> Page:
        """Archive it."""
        self.text = "archived"
        await tx.save(self)
        return self


def test_the_owner_of_a_job_is_the_actor_of_its_changes(database: str) -> None:
    model = Model(Page)
    with asyncio.Runner() as runner, in_process(model, database, runner, {}, job_drain=0.0) as service:
        token = service.token(ANN)
        headers = {"content-type": "application/json", "change-reason": "old"}
        made = service.send("POST", "/pages", headers=headers, body=b'{"text":"a"}', token=token).json()["id"]
        queued = service.send("POST", f"/pages/{made}/archive", headers=headers, body=b"{}", token=token)
        assert queued.status == 202, queued.body
        settle(service)

        async def lines() -> list[str]:
            await Appender(service.app.store, model).append()
            return [line async for line in exported(service.app.store, Chosen(resource="pages"))]

        first, last = (json.loads(line) for line in runner.run(lines()))
        assert (first["actor"]["channel"], first["actor"]["user"]) == ("rest", ANN)
        assert last["new"]["text"] == "archived"
        assert (last["actor"]["channel"], last["actor"]["user"], last["actor"]["operation"]) == (
            "job",
            ANN,
            "archivePage",
        )
