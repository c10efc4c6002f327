"""A database of an earlier version of Diptych: its own tables are brought along when it is opened, as a whole or not."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import asyncpg
import pytest

from diptych.compile.system.upgrade import SETTING, SYSTEM_VERSION, SystemVersion
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.fitting import Fitted
from diptych.db.job_queue import NEVER, QUEUE, waiting
from diptych.errors import StartError
from diptych.identity.owner import fixed_owner
from tests.contract.jobs.bindery import ANN, BOB, model
from tests.contract.jobs.test_jobs import post, settle
from tests.contract.migrate.scene import Project, structure
from tests.support.effort import scaled
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside
from tests.unit.db.test_upgrades import recorded

QUEUED = "id, name, arguments, owner, attempts, state, created_at, next_at, lease_by, lease_until"
"""The columns of the queue in version 1."""
_SHAPE = {
    True: 'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value FROM sqlite_schema t JOIN pragma_table_info(t.name) c '
    "WHERE t.type = 'table' AND t.name LIKE 'diptych%' UNION ALL SELECT name, sql, '', 0, '' FROM sqlite_schema "
    "WHERE type = 'index' AND name LIKE 'diptych%'",
    False: "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
    "pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
    "LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (c.oid, a.attnum) WHERE c.relname ~ '^diptych' AND c.relkind = 'r' "
    "UNION ALL SELECT indexname::text, indexdef, '', false, '' FROM pg_indexes WHERE indexname ~ '^diptych'",
}


def shape(outside: Outside) -> set[Any]:
    """The columns of the system tables, and their indexes."""
    return {*outside.sql(_SHAPE[outside.is_sqlite])}


def version(outside: Outside) -> SystemVersion:
    ((value,),) = outside.sql(f"SELECT value FROM diptych_settings WHERE name = '{SETTING}'")
    return SystemVersion.decode(value)


def open_it(outside: Outside) -> Fitted:
    async def work() -> Fitted:
        store = connect(Config(database=outside.url))
        try:
            return await store.open(model)
        finally:
            await store.close()

    return asyncio.run(work())


def age(outside: Outside) -> None:
    """Make the queue of a database as version 1 had it, with what is queued."""
    (create,), (index,) = (recorded(outside.dialect)[1][name] for name in ("diptych_jobs", "diptych_jobs_next"))
    for statement in (
        f"CREATE TABLE kept AS SELECT {QUEUED} FROM diptych_jobs",
        "DROP TABLE diptych_jobs",
        create,
        index,
        f"INSERT INTO diptych_jobs ({QUEUED}) SELECT {QUEUED} FROM kept",
        "DROP TABLE kept",
        f"DELETE FROM diptych_settings WHERE name = '{SETTING}'",
    ):
        outside.sql(statement)


def queue(outside: Outside, *rows: tuple[str, str, str, int, int]) -> None:
    """Queue records as a node of version 1 does: id, name, owner, created_at, next_at."""
    for id, name, owner, created_at, next_at in rows:
        values = f"'{id}', '{name}', '{{}}', '{owner}', 0, 'null', {created_at}, {next_at}, '', 0"
        outside.sql(f"INSERT INTO diptych_jobs ({QUEUED}) VALUES ({values})")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def old(new_database: NewDatabase) -> Outside:
    """A database of version 1, with jobs of two callers, a tick, one that waits for another attempt, and one that failed."""
    outside = Outside(new_database())
    open_it(outside)
    age(outside)
    outside.sql("INSERT INTO diptych_schedules VALUES ('Clock.strike', '1+0', 0)")
    ann, bob = (fixed_owner(("robot",), user) for user in (ANN, BOB))
    queue(outside, ("a3", "x", ann, 3, 0), ("a1", "x", ann, 1, 0), ("a2", "x", ann, 2, 0), ("b1", "x", bob, 9, 0))
    queue(outside, ("late", "x", bob, 1, 77), ("dead", "x", ann, 0, NEVER), ("tick", "Clock.strike", bob, 4, 0))
    return outside


def test_every_version_becomes_the_current_one(new_database: NewDatabase) -> None:
    anew = Outside(new_database())
    assert open_it(anew).done == (), "a new database needs no upgrade"
    for number, made in recorded(anew.dialect).items():
        outside = Outside(new_database())
        for name, statements in made.items():
            if not name.startswith(("diptych_a", "diptych_counters", "diptych_migrations")) or "accounts" in name:
                for statement in statements:
                    outside.sql(statement)
        done = open_it(outside).done
        assert any("from version 1 to" in sentence for sentence in done), number  # no version is recorded
        assert open_it(outside).done == ()
        assert version(outside) == version(anew) and version(outside).version == SYSTEM_VERSION
        missing = {name for name, *_ in shape(anew) ^ shape(outside)}
        assert not missing, number


def test_queued_jobs_get_their_turns(old: Outside) -> None:
    assert open_it(old).done == (
        f"Upgraded the system tables from version 1 to {SYSTEM_VERSION}: queued jobs have got their turns.",
    )
    turns = dict(old.sql("SELECT id, turn FROM diptych_jobs"))
    assert turns == {"dead": -2, "a1": 2, "a2": 3, "a3": 4, "b1": 2, "late": -2, "tick": 0}
    assert {share for (share,) in old.sql("SELECT share FROM diptych_jobs")} == {
        share for (share,) in old.sql("SELECT DISTINCT share FROM diptych_jobs WHERE id IN ('a1', 'b1')")
    }
    assert not [name for name, *_ in shape(old) if name == "diptych_jobs_next"]
    open_it(old)
    assert dict(old.sql("SELECT id, turn FROM diptych_jobs")) == turns


def ask(shop: Service, user: str, *words: str) -> None:
    for word in words:
        assert post(shop, "/books/try-out", {"how": word}, shop.token(user, "robot", "binder")).status == 202


def test_jobs_that_were_queued_run_in_order_and_none_is_lost(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    outside = Outside(new_database())
    with in_process(model, outside.url, runner, job_drain=0.0) as shop:
        ask(shop, ANN, *(f"a{number}" for number in range(6)))
        ask(shop, BOB, "b0", "b1")
    age(outside)
    with in_process(model, outside.url, runner, job_drain=0.0, job_concurrency=1) as shop:
        ask(shop, BOB, "b2")
        settle(shop)
        (left,) = outside.sql("SELECT count(*) FROM diptych_jobs")
        (done,) = outside.sql("SELECT count(*) FROM jobs WHERE state = 'succeeded'")
    titles = [title.split()[0] for (title,) in outside.sql("SELECT title FROM books ORDER BY created_at, id")]
    assert (left, done) == ((0,), (9,))
    assert titles == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "a4", "a5"]


def test_a_node_of_the_version_before_goes_on(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    """What it queues runs, and what it gives up does not stand in the way of others."""
    outside = Outside(new_database())
    with in_process(model, outside.url, runner, job_drain=0.0, job_concurrency=1) as shop:
        ask(shop, ANN, "old")
        age(outside)
        open_it(outside)
        outside.sql("UPDATE diptych_jobs SET share = '', turn = 0")  # as the default makes it
        owner, now = fixed_owner(("robot",), BOB), int(time.time() * 1000)
        queue(outside, *((f"f{number}", "tryOutBooks", owner, now - 1000, NEVER) for number in range(120)))
        ask(shop, BOB, "new")
        found = runner.run(waiting(shop.app.store, ["tryOutBooks"]))
        assert len(found.jobs) == 2
        settle(shop)
        left = runner.run(QUEUE.all(shop.app.store, "id"))
        assert [record.next_at for record in left] == [NEVER] * 120
    assert [title for (title,) in outside.sql("SELECT title FROM books ORDER BY created_at, id")] == ["old 1", "new 1"]
    outside.sql("CREATE INDEX diptych_jobs_next ON diptych_jobs (next_at)")  # it makes its index when it starts
    assert open_it(outside).done == ()


def test_of_nodes_that_start_at_once_one_upgrades(old: Outside) -> None:
    done: list[tuple[str, ...]] = []

    def start() -> None:
        done.append(open_it(old).done)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, done)) == [0, 0, 0, 1]
    assert dict(old.sql("SELECT id, turn FROM diptych_jobs WHERE turn > 0")) == {"a1": 2, "a2": 3, "a3": 4, "b1": 2}


def killed_at(point: int, outside: Outside) -> bool:
    """Open a database in a process that dies before its statement of this number; False if it had been opened before."""
    child = os.fork()
    if child == 0:
        left = point

        def count(*_: Any) -> bool:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

        def counted(method: Any) -> Any:
            async def execute(self: Any, sql: str, *values: Any, **how: Any) -> Any:
                count()
                return await method(self, sql, *values, **how)

            return execute

        def watch(connection: apsw.Connection) -> None:
            connection.exec_trace = count

        status = 1
        try:
            for name in ("execute", "fetch"):
                patch.object(asyncpg.Connection, name, counted(getattr(asyncpg.Connection, name))).start()
            apsw.connection_hooks.append(watch)
            open_it(outside)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_an_upgrade_that_is_killed_is_there_as_a_whole_or_not_at_all(old: Outside) -> None:
    before = shape(old)
    jobs = sorted(old.sql(f"SELECT {QUEUED} FROM diptych_jobs"))
    point, kills = 1, 0
    while killed_at(point, old):
        is_upgraded = bool(old.sql(f"SELECT 1 FROM diptych_settings WHERE name = '{SETTING}'"))
        assert (shape(old) == before) is not is_upgraded
        if is_upgraded:
            break
        point, kills = point + scaled(1, 3), kills + 1
    assert kills > scaled(10, 3)
    assert sorted(old.sql(f"SELECT {QUEUED} FROM diptych_jobs")) == jobs
    assert dict(old.sql("SELECT id, turn FROM diptych_jobs WHERE turn > 0")) == {"a1": 2, "a2": 3, "a3": 4, "b1": 2}


def record(outside: Outside, there: SystemVersion) -> None:
    outside.sql(f"UPDATE diptych_settings SET value = '{there.encode()}' WHERE name = '{SETTING}'")


def test_a_later_version_is_opened_if_it_says_that_it_can_be(new_database: NewDatabase) -> None:
    outside = Outside(new_database())
    open_it(outside)
    later = SystemVersion(SYSTEM_VERSION + 3, SYSTEM_VERSION)
    record(outside, later)
    outside.sql("ALTER TABLE diptych_jobs ADD COLUMN colour text NOT NULL DEFAULT 'red'")
    assert open_it(outside).done == ()
    assert version(outside) == later
    record(outside, SystemVersion(SYSTEM_VERSION + 3, SYSTEM_VERSION + 2))
    refused = (
        f"have version {SYSTEM_VERSION + 3}, .* knows {SYSTEM_VERSION}: it needs one that knows {SYSTEM_VERSION + 2}"
    )
    with pytest.raises(StartError, match=refused):
        open_it(outside)
    with pytest.raises(StartError, match=refused):
        asyncio.run(connect(Config(database=outside.url)).look(model))
    outside.sql(f"UPDATE diptych_settings SET value = 'x' WHERE name = '{SETTING}'")
    with pytest.raises(StartError, match="system_tables of diptych_settings cannot be read"):
        open_it(outside)


def test_migrate_upgrades_too_and_says_so(old: Outside, tmp_path: Path) -> None:
    project = Project(tmp_path / "migrations", old.url)
    project.make(model, "first")
    project.apply(model)
    assert [sentence for sentence in project.told if "system tables" in sentence] == [
        f"Upgraded the system tables from version 1 to {SYSTEM_VERSION}: queued jobs have got their turns."
    ]
    assert structure(old)["tables"] and json.loads(version(old).encode())["version"] == SYSTEM_VERSION
