"""DDL beside a service that runs: reads that wait, starts that give way, parts of a newer version, and versions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import asyncpg
import pytest

from diptych import Model, Resource, grant
from diptych.compile.system.object import FORM, MARK
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.postgres import ddl, sessions
from tests.support.in_process import in_process
from tests.support.running import NewDatabase, Postgres
from tests.unit.compile.test_tables import Outside


class Thing(Resource):
    name: str = ""
    access = (grant("read", "create", "update"),)


model = Model(Thing)
KEY = "00000000-0000-7000-8000-000000000001"


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


async def opened(url: str) -> None:
    store = connect(Config(database=url))
    await store.open(model)
    await store.close()


def test_a_read_that_waits_for_a_lock_is_unavailable(
    postgres: Postgres, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOCK_TIMEOUT", 100)
    url = postgres.create()
    with in_process(model, url, runner) as service:
        holder = runner.run(asyncpg.connect(url))
        runner.run(holder.execute("BEGIN; LOCK TABLE things IN ACCESS EXCLUSIVE MODE"))
        answer = service.send("GET", "/things")
        runner.run(holder.close())
        assert answer.status == 503 and json.loads(answer.body)["code"] == "UNAVAILABLE"
        assert answer.headers["retry-after"] == "1"
        assert service.send("GET", "/things").status == 200


def test_a_start_with_ddl_gives_way_to_those_who_come_after(
    postgres: Postgres, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a long reader, a start that makes a trigger anew keeps no other reader waiting for long."""
    url = postgres.create()
    runner.run(opened(url))
    Outside(url).sql('DROP TRIGGER "!diptych_feed" ON things; SELECT 1')

    async def work() -> float:
        long, other = await asyncpg.connect(url), await asyncpg.connect(url)
        await long.execute("BEGIN; INSERT INTO things (id) VALUES (gen_random_uuid())")
        starting, slowest = asyncio.create_task(opened(url)), 0.0
        for _ in range(20):
            begun = asyncio.get_running_loop().time()
            await other.execute("INSERT INTO things (id) VALUES (gen_random_uuid())")
            slowest = max(slowest, asyncio.get_running_loop().time() - begun)
            await asyncio.sleep(0.05)
        assert not starting.done()
        await long.execute("COMMIT")
        await starting
        await long.close()
        await other.close()
        return slowest

    assert runner.run(work()) < 1.5
    assert Outside(url).sql("SELECT count(*) FROM pg_trigger WHERE tgname = '!diptych_feed'") == [(1,)]


def test_a_lock_is_given_up_after_a_while(postgres: Postgres, runner: asyncio.Runner) -> None:
    url = postgres.create()
    runner.run(opened(url))

    async def work() -> None:
        holder, other = await asyncpg.connect(url), await asyncpg.connect(url)
        await holder.execute("BEGIN; LOCK TABLE things")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await ddl.patiently(other, lambda: other.execute("ALTER TABLE things ADD COLUMN x text"), 0.2)
        await holder.close()
        await other.close()

    runner.run(work())


def test_a_part_of_a_later_form_is_left_alone(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    """An older process that starts beside a newer one keeps its triggers."""
    outside = Outside(new_database())
    runner.run(opened(outside.url))
    if outside.is_sqlite:
        named = "SELECT sql FROM sqlite_schema WHERE name = 'diptych_created_things'"
        ((text,),) = outside.sql(named)
        outside.sql("DROP TRIGGER diptych_created_things")
        outside.sql(text.replace(MARK, f"-- diptych {FORM + 1}\n SELECT 'new';"))
    else:
        named = "SELECT pg_get_functiondef('diptych_feed'::regproc)"
        ((text,),) = outside.sql(named)
        outside.sql(text.replace(MARK, f"-- new\n-- diptych {FORM + 1}\n"))
    later = outside.sql(named)
    assert later != [(text,)]
    runner.run(opened(outside.url))
    assert outside.sql(named) == later


def test_a_version_stays_within_32_bits(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    outside = Outside(new_database())
    with in_process(model, outside.url, runner) as service:
        outside.sql(f"INSERT INTO things (id, version) VALUES ('{KEY}', 2147483647)")
        headers = {"content-type": "application/merge-patch+json"}
        answer = service.send("PATCH", f"/things/{KEY}", headers=headers, body=b'{"name": "x"}')
        assert answer.status == 422, answer.body
        with pytest.raises(Exception, match=r"out of range|beyond"):
            outside.sql(f"UPDATE things SET name = 'y' WHERE id = '{KEY}'")
        with pytest.raises(Exception, match=r"out of range|beyond"):
            outside.sql("INSERT INTO things (id, version) VALUES ('00000000-0000-7000-8000-000000000002', 2147483648)")
        assert outside.rows("things", "name", "version") == [("", 2147483647)]
