"""The audit log survives a move to the other kind of database and back, migrations, and a backup."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from typing import Any

import pytest

from diptych import Model
from diptych.audit.appender import Appender
from diptych.audit.log import audit_head, verify
from diptych.compile.system.object import DialectName
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.postgres.store import PostgresStore
from diptych.errors import StartError
from diptych.migrate.feed import in_audit_log, rename_key
from diptych.move.postgres import PostgresSide
from diptych.move.runner import MoveRun
from diptych.move.side import Side
from diptych.move.sqlite import SqliteSide
from tests.contract.audit.audited_model import ANN, MODEL, entries, serving
from tests.contract.audit.test_chain import NASTY
from tests.support.in_process import Service, in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase, Postgres


def side_of(database: str) -> Side:
    if database.startswith("sqlite"):
        return SqliteSide(database.removeprefix("sqlite:///"))
    store = connect(Config(database=database))
    assert isinstance(store, PostgresStore)
    return PostgresSide(store)


async def move(source: str, target: str) -> None:
    here, there = side_of(source), side_of(target)
    for side in (here, there):
        await side.open(MODEL)
    try:
        await MoveRun(MODEL, here, there, lambda *_: None).run(switch=True)
    finally:
        for side in (here, there):
            await side.close()


def history(service: Service, row: str) -> Any:
    fields = "id,kind,at,actor,channel,post(title,published,version)"
    return service.rows(f"/posts/{row}/history?fields={fields}", token=service.token(ANN))


def test_a_move_both_ways_keeps_the_chain_and_the_history(new_sqlite: NewDatabase, postgres: Postgres) -> None:
    places = [new_sqlite(), postgres.create(), new_sqlite()]
    with serving(places[0]) as service:
        token = service.token(ANN)
        row = service.send_json("POST", "/posts", {"authorId": ANN, "title": NASTY}, token).json()["id"]
        service.send_json("PATCH", f"/posts/{row}", {"title": "x" * 2000}, token)
        service.send_json("PATCH", f"/posts/{row}", {"published": True}, token)
        assert len(entries(service)) == 3
        service.send_json("PATCH", f"/posts/{row}", {"published": False}, token)  # not appended yet
        told = history(service, row)[1:]
        head = service.runner.run(audit_head(service.app.store))
        service.send_json("PATCH", f"/posts/{row}", {"title": "last"}, token)
    # the service has appended the rest when it ended; of this change it has not
    for number, (source, target) in enumerate(itertools.pairwise(places)):
        asyncio.run(move(source, target))
        with asyncio.Runner() as runner, in_process(MODEL, target, runner, {}) as service:
            assert runner.run(verify(service.app.store, (head.entry, head.hash)))[1] is None
            patched = service.send_json("PATCH", f"/posts/{row}", {"title": f"moved {number}"}, service.token(ANN))
            assert patched.status == 200, patched.body
            shown = history(service, row)
            assert shown[-3:] == told[-3:]
            assert shown[0]["post"]["title"] == f"moved {number}" and shown[0]["actor"] == ANN
            right, broken = runner.run(verify(service.app.store, (head.entry, head.hash)))
            assert (right, broken) == (6 + number, None)


def test_changes_that_are_not_in_the_log_yet_are_moved_with_their_actors(
    new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    class Never(Appender):
        async def append(self) -> int:
            return 0

    places = [new_sqlite(), postgres.create(), new_sqlite()]
    with serving(places[0]) as service:
        service.handler.live._retention._appender = Never(service.app.store, MODEL)
        for title in "ab":
            service.send_json("POST", "/posts", {"authorId": ANN, "title": title}, service.token(ANN))
    for source, target in itertools.pairwise(places):
        asyncio.run(move(source, target))
    with asyncio.Runner() as runner, in_process(MODEL, places[-1], runner, {}) as service:
        found = entries(service)
        assert [(entry["actor"]["user"], entry["new"]["title"]) for entry in found] == [(ANN, "a"), (ANN, "b")]


def test_a_migration_that_renames_a_column_keeps_the_chain(database: str) -> None:
    with serving(database) as service:
        token = service.token(ANN)
        made = service.send_json("POST", "/posts", {"authorId": ANN, "title": "a"}, token).json()["id"]
        service.send_json("PATCH", f"/posts/{made}", {"title": "b"}, token)
        before = entries(service)
        dialect: DialectName = "sqlite" if database.startswith("sqlite") else "postgres"
        for statement in in_audit_log(rename_key("posts", "title", "heading", dialect), dialect):
            service.execute(statement)
        assert service.runner.run(verify(service.app.store)) == (2, None)
        assert entries(service) == before  # as they were made

        async def stored() -> list[Any]:
            session = await service.app.store.session(reading=True)
            try:
                return await session.rows("SELECT CAST(new AS text) FROM diptych_audit ORDER BY entry", ())
            finally:
                await session.end()

        images = [json.loads(new) for (new,) in service.runner.run(stored())]
        assert [image["heading"] for image in images] == ["a", "b"] and "title" not in images[0]


PRICED = """
class Price(Resource, audit=Audited()):
    access = (grant("read", "create"),)
    amount: Annotated[Decimal, Digits(8, DIGITS)]
"""


def priced(digits: int) -> Model:
    return model_of(PRICED.replace("DIGITS", str(digits)))


def test_a_feed_that_begins_anew_loses_no_change_and_goes_on_in_the_log(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def write(digits: int, rows: int, *, append: bool, accept: bool = False) -> tuple[int, object]:
        model, store = priced(digits), connect(Config(database=database))
        await store.open(model, accept=accept)
        for _ in range(rows):
            session = await store.session()
            id = f"{ANN[:-6]}{secrets.token_hex(3)}"
            await session.rows("INSERT INTO prices (id, amount) VALUES ($1, 100)", (id,))
            await session.commit()
        if append:
            await Appender(store, model).append()
        found = await verify(store)
        await store.close()
        return found

    asyncio.run(write(2, 3, append=False))
    with pytest.raises(StartError, match="not in the audit log"):
        asyncio.run(write(3, 0, append=False, accept=True))
    assert asyncio.run(write(2, 0, append=True)) == (3, None)
    assert asyncio.run(write(3, 1, append=True, accept=True)) == (4, None)
