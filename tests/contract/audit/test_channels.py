"""Every way by which a row can change, on both stores: each has its channel and its actor in the audit log.

Ways with a process or a mailbox of their own are elsewhere: `diptych import` and migrations in
`tests/system/test_audit_commands.py`, people who sign up in `tests/system/accounts/test_audit.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from diptych import Audited, JobResource, JobTx, Model, Resource, Role, Tx, action, every, grant, signed_in
from diptych.audit.appender import Appender
from diptych.audit.log import Chosen, exported
from diptych.jobs import manage, retention
from diptych.jobs.service import JobService
from tests.support.in_process import Service, in_process

clerk = Role("clerk")
ANN, BOB = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"


class Note(Resource, audit=Audited(), trash=timedelta(days=1)):
    access = (grant("read", "create", "update", "delete"),)
    text: str

    @action
    async def shout(self, tx: Tx) -> Note:
        """Shout it."""
        self.text = self.text.upper()
        await tx.save(self)
        await tx.sql("UPDATE notes SET text = text || '!' WHERE id = $1", self.id)
        return self

    @action(background=True)
    async def age(self, tx: JobTx) -> Note:
        """Let it age."""
        self.text = "aged"
        return await tx.save(self)

    @every("day at 03:30", roles=(clerk,))
    @classmethod
    async def tidy(cls, tx: JobTx) -> None:
        await tx.save(Note(text="tidy"))


class Task(JobResource, audit=Audited()):
    access = (grant("read", to=signed_in),)


MODEL = Model(Note, Task)


class Way(NamedTuple):
    """How something is changed, and the actors that the log then has: channel, user, operation, and the resource."""

    change: Callable[[Scene], None]
    actors: list[tuple[str, str | None, str | None, str]]


class Scene:
    """A service, and a note."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.ann, self.bob = service.token(ANN), service.token(BOB, "clerk")
        self.note = self.rest("POST", "/notes", {"text": "a"})["id"]
        self.seen = len(self.entries())

    def rest(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.service.send_json(method, path, body, self.ann)
        assert answer.status < 300, answer.body
        return answer.json() if answer.body else None

    def graphql(self, text: str) -> Any:
        return self.service.data(text, token=self.bob)

    def entries(self) -> list[dict[str, Any]]:
        async def read() -> list[dict[str, Any]]:
            store = self.service.app.store
            await Appender(store, MODEL).append()
            return [json.loads(line) async for line in exported(store, Chosen())]

        return self.service.runner.run(read())

    def actors(self) -> list[tuple[str, str | None, str | None, str]]:
        """Those of what has changed since the last time, without repetitions."""
        new, self.seen = self.entries()[self.seen :], self.seen
        self.seen += len(new)
        found = [
            (entry["actor"]["channel"], entry["actor"].get("user"), entry["actor"].get("operation"), entry["resource"])
            for entry in new
        ]
        return list(dict.fromkeys(found))

    @property
    def jobs(self) -> JobService:
        assert self.service.handler.jobs is not None
        return self.service.handler.jobs

    def run_jobs(self) -> None:
        async def look() -> None:
            await self.jobs.look()
            while self.jobs._running:
                await asyncio.sleep(0.01)

        self.service.runner.run(look())

    def tick(self) -> None:
        async def due() -> None:
            schedules = self.jobs._schedules
            await schedules.declare()
            schedules._try_at = dict.fromkeys(schedules._try_at, 0.0)

        self.service.runner.run(due())
        self.service.execute("UPDATE diptych_schedules SET next_at = 0")
        self.run_jobs()

    def cancel(self) -> None:
        job = self.rest("POST", f"/notes/{self.note}/age", {})["id"]
        self.service.runner.run(manage.cancel(self.service.handler.write_engine, job))

    def sweep(self) -> None:
        self.service.runner.run(retention.sweep(self.service.handler.rest.calls.calls, -60.0))

    def purge(self) -> None:
        self.rest("DELETE", f"/notes/{self.note}")
        self.actors()
        old = "2020-01-01T00:00:00.000000Z"
        self.service.execute(f"UPDATE notes SET deleted_at = '{old}' WHERE deleted_at IS NOT NULL")
        self.actors()
        self.service.runner.run(self.service.handler.live._retention.purge())


WAYS = {
    "REST": Way(
        lambda scene: scene.rest("PATCH", f"/notes/{scene.note}", {"text": "b"}), [("rest", ANN, None, "notes")]
    ),
    "GraphQL": Way(
        lambda scene: scene.graphql('mutation { createNote(input: {text: "c"}) { id } }'),
        [("graphql", BOB, None, "notes")],
    ),
    "a batch": Way(
        lambda scene: scene.rest(
            "POST", "/batch", {"requests": [{"method": "POST", "url": "/notes", "body": {"text": "d"}}]}
        ),
        [("batch", ANN, None, "notes")],
    ),
    "an action by REST, with SQL": Way(
        lambda scene: scene.rest("POST", f"/notes/{scene.note}/shout", {}), [("action", ANN, "shoutNote", "notes")]
    ),
    "an action by GraphQL": Way(
        lambda scene: scene.graphql(f'mutation {{ shoutNote(id: "{scene.note}") {{ id }} }}'),
        [("action", BOB, "shoutNote", "notes")],
    ),
    "an action in the background is queued": Way(
        lambda scene: scene.rest("POST", f"/notes/{scene.note}/age", {}), [("action", ANN, "ageNote", "tasks")]
    ),
    "and runs": Way(
        lambda scene: scene.run_jobs(),
        [("job", None, "ageNote", "tasks"), ("job", ANN, "ageNote", "notes"), ("job", ANN, "ageNote", "tasks")],
    ),
    "a tick": Way(
        lambda scene: scene.tick(), [("job", None, "Note.tidy", "tasks"), ("job", None, "Note.tidy", "notes")]
    ),
    "a command": Way(
        lambda scene: scene.cancel(), [("action", ANN, "ageNote", "tasks"), ("command", None, "jobs cancel", "tasks")]
    ),
    "jobs that ended long ago": Way(lambda scene: scene.sweep(), [("retention", None, None, "tasks")]),
    "SQL from outside": Way(
        lambda scene: scene.service.execute("UPDATE notes SET text = 'e'"), [("sql", None, None, "notes")]
    ),
    "the end of the time in the trash": Way(lambda scene: scene.purge(), [("retention", None, None, "notes")]),
}


def test_every_way_has_its_channel_and_its_actor(database: str) -> None:
    with asyncio.Runner() as runner, in_process(MODEL, database, runner, {}, job_drain=0.0) as service:
        scene = Scene(service)
        found = {}
        for name, way in WAYS.items():
            way.change(scene)
            found[name] = scene.actors()
        assert found == {name: way.actors for name, way in WAYS.items()}
