"""A model whose posts are audited, with a service for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from diptych import Audited, MaxLen, Model, OnDelete, ReadBy, Resource, Role, Tx, Viewer, action, allow, grant, inverse
from diptych.audit.appender import Appender
from diptych.audit.log import Chosen, exported
from tests.support.in_process import Service, in_process

admin = Role("admin")
auditor = Role("auditor")
ANN, BOB = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"


class Author(Resource, ids="client"):
    access = (grant("read", "create", "update", "delete"),)
    name: Annotated[str, MaxLen(40)]
    posts: list[Post] = inverse("author")


class Post(Resource, audit=Audited(reason="optional", history=True, actors=auditor, masked="code")):
    access = (grant("create"), grant("read", "update", "delete", to=admin))
    author: Annotated[Author, OnDelete("cascade")]
    title: str
    published: bool = False
    note: Annotated[str | None, ReadBy(admin)] = None
    code: str | None = None

    @allow("read")
    def public(self, viewer: Viewer) -> bool:
        return self.published | (self.author.id == viewer.id)

    @allow("update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id

    @action
    async def publish(self, tx: Tx) -> Post:
        """Publish it."""
        self.published = True
        await tx.trusted.save(self)
        await tx.sql("UPDATE posts SET note = 'seen' WHERE id = $1", self.id)
        return self


class Invoice(Resource, audit=Audited(reason="required")):
    access = (grant("read", "create", "update", "delete"),)
    total: int

    @action
    async def pay(self, tx: Tx) -> Invoice:
        """Pay it."""
        self.total = 0
        await tx.save(self)
        return self


def audited_model() -> Model:
    return Model(Author, Post, Invoice)


MODEL = audited_model()


@contextmanager
def serving(database: str, **settings: Any) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(MODEL, database, runner, {}, **settings) as service:
        for id, name in ((ANN, "Ann"), (BOB, "Bob")):
            assert service.send_json("POST", "/authors", {"id": id, "name": name}).status == 201
        yield service


def entries(service: Service, **chosen: Any) -> list[dict[str, Any]]:
    """All that is in the audit log, once it has all that was committed."""

    async def read() -> list[dict[str, Any]]:
        store = service.app.store
        await Appender(store, MODEL).append()
        return [json.loads(line) async for line in exported(store, Chosen(**chosen))]

    return service.runner.run(read())
