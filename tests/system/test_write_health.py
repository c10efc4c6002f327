"""A store that takes no changes: the log says so, the service is not ready, and is again when changes work."""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import asyncpg
import pytest

from diptych.db.postgres.store import PostgresStore
from diptych.db.script import Script, Step
from diptych.db.sqlite.store import SqliteStore
from diptych.errors import Code, Refusal
from tests.contract.test_writers import Shop, on
from tests.support.running import Client, NewDatabase, Postgres, running

FAILING = "the database takes no changes"


def statement(sql: str) -> Callable[[], Script[None]]:
    def script() -> Script[None]:
        yield Step(sql, ())

    return script


async def refused(shop: Shop, sql: str) -> None:
    with pytest.raises(Refusal) as found:
        await shop.store.write(statement(sql))
    assert found.value.code is Code.UNAVAILABLE


async def recovers(shop: Shop) -> None:
    """It is asked how it is until it is well: that alone mends it."""
    until = time.monotonic() + 20
    while True:
        try:
            return await shop.store.ping()
        except Refusal:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]


def post(client: Client, number: int) -> int:
    return client.post("/users", {"name": "n" * 80, "email": f"u{number}@example.org"}).status


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_a_service_whose_disk_takes_nothing_says_so_and_recovers_by_itself(new_sqlite: NewDatabase) -> None:
    with running("serve", database=new_sqlite(), noise="the database takes ") as service:
        admin, process = service.token_of("admin"), service.process.pid
        assert (post(admin, 0), service.get("/health/ready").status) == (201, 200)
        before = resource.prlimit(process, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        try:
            assert {post(admin, number) for number in range(1, 20)} == {503}
            ready = service.get("/health/ready")
            assert (ready.status, ready.json()["code"]) == (503, "UNAVAILABLE")
            assert ready.json()["detail"] == "The database takes no changes: it cannot store them."
            assert (service.get("/health/live").status, service.get("/users").status) == (200, 200)
            service.err.wait(FAILING)
            assert service.err.text.count(FAILING) == 1
        finally:
            resource.prlimit(process, resource.RLIMIT_FSIZE, before)
        until = time.monotonic() + 20
        while service.get("/health/ready").status != 200:
            assert time.monotonic() < until
        assert post(admin, 99) == 201
        service.err.wait("the database takes changes again")


def test_a_full_sqlite_database_is_not_ready(new_sqlite: NewDatabase, caplog: pytest.LogCaptureFixture) -> None:
    async def work(shop: Shop) -> None:
        assert isinstance(shop.store, SqliteStore)
        await shop.store.write(statement("PRAGMA max_page_count = 1"))
        for number in range(5):
            with pytest.raises(Refusal) as found:
                await shop.store.write(shop.adding(number, "x" * 500_000))
            assert found.value.code is Code.UNAVAILABLE
        assert shop.store.health.reason == "full"
        with pytest.raises(Refusal, match="there is no room left"):
            await shop.store.ping()
        assert len(lines(caplog)) == 1 and f"{FAILING} (full), 1 failed" in lines(caplog)[0]
        await shop.store.write(statement("PRAGMA max_page_count = 1000000"))
        await recovers(shop)
        assert await shop.store.write(shop.adding(9, "x" * 500_000)) == 9

    on(new_sqlite(), work)


def test_what_a_request_did_wrong_says_nothing_about_the_store(new_database: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        await shop.store.write(shop.adding(1))
        with pytest.raises(Refusal):
            await shop.store.write(shop.adding(1))
        await shop.store.ping()

    on(new_database(), work)


def test_a_full_disk_of_postgres_is_not_ready(postgres: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    async def work(shop: Shop) -> None:
        for _ in range(5):
            await refused(shop, "DO $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$")
        with pytest.raises(Refusal, match="there is no room left"):
            await shop.store.ping()
        assert len(lines(caplog)) == 1 and f"{FAILING} (full)" in lines(caplog)[0]
        await recovers(shop)

    on(postgres.create(), work)


def test_a_postgres_that_became_read_only_is_not_ready(postgres: Postgres) -> None:
    database = postgres.create()
    name = urlsplit(database).path.strip("/")

    async def turn(state: str) -> None:
        """All connections that are made from now on; there are no others."""
        connection = await asyncpg.connect(postgres.url())
        try:
            await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {state}")
            await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        finally:
            await connection.close()

    async def work(shop: Shop) -> None:
        assert isinstance(shop.store, PostgresStore)
        await shop.store.write(shop.adding(1))
        await turn("on")
        with pytest.raises(Refusal) as found:
            await shop.store.write(shop.adding(2))
        assert found.value.code is Code.UNAVAILABLE
        with pytest.raises(Refusal, match="it is read-only"):
            await shop.store.ping()
        await turn("off")
        await recovers(shop)
        assert await shop.store.write(shop.adding(2)) == 2

    on(database, work)
