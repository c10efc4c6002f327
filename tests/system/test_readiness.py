"""`/health/ready` on real stores: a full disk, a lost primary, a standby, tables that do not fit, and a shutdown."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import asyncpg
import pytest

from diptych import Config, Diptych
from diptych.demo.model import model
from diptych.errors import Refusal
from diptych.serve import readiness
from diptych.serve.readiness import Readiness
from tests.support.running import Client, NewDatabase, Postgres, Service, running, scratch

LONGEST = 30.0
"""Seconds within which it notices."""
BODY = "b" * 20_000


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def detail(client: Client) -> str:
    """Why it is not ready; "" if it is."""
    answer = client.get("/health/ready")
    assert answer.status in (200, 503)
    return "" if answer.status == 200 else str(answer.json()["detail"])


@pytest.fixture
def cluster() -> Iterator[Postgres]:
    """A server of its own, which the test stops."""
    server = Postgres()
    yield server
    server.stop()


# a lost primary


def test_a_service_whose_primary_is_lost_is_not_ready_until_it_is_back(cluster: Postgres) -> None:
    with running("serve", database=cluster.create(), noise=".") as service:
        assert detail(service) == ""
        cluster.execute("CHECKPOINT")  # it runs without fsync, and would forget the tables
        cluster.halt()
        until(lambda: detail(service) == "The database cannot answer now.")
        assert service.get("/health/live").status == 200
        cluster.resume()
        until(lambda: detail(service) == "")
        assert service.get("/users").status == 200


def test_a_service_whose_server_became_a_standby_is_not_ready_until_it_is_promoted(cluster: Postgres) -> None:
    with running("serve", database=cluster.create(), noise=".") as service:
        admin = service.token_of("admin")
        cluster.execute("CHECKPOINT")  # it runs without fsync, and would forget the tables
        cluster.halt()
        cluster.resume(as_standby=True)
        until(lambda: detail(service) == "The database takes no changes: it is a standby.")
        assert service.get("/users").status == 200, "it reads"
        assert admin.post("/users", {"name": "Ann", "email": "ann@example.org"}).status == 503
        cluster.promote()
        until(lambda: detail(service) == "")
        assert admin.post("/users", {"name": "Ann", "email": "ann@example.org"}).status == 201


# a full disk


@contextmanager
def disk(megabytes: int) -> Iterator[Path]:
    """A file system of its own with so much room; skipped where none can be mounted."""
    folder = Path(scratch("disk-"))
    folder.chmod(0o755)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        if (
            sys.platform != "linux"
            or os.geteuid()
            or subprocess.run(command, capture_output=True, check=False).returncode
        ):
            pytest.skip("nothing can be mounted here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
    finally:
        folder.rmdir()


def fill(folder: Path) -> Path:
    """Take all room that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 65_536)
        except OSError:
            pass
    return filler


def full_disk(service: Service, folder: Path) -> None:
    """Fill the disk below a service: it refuses changes and is not ready, until there is room again."""
    user = service.token_of("admin").post("/users", {"name": "Ann", "email": "ann@example.org"})
    assert user.status == 201 and detail(service) == ""
    post = {"title": "t", "body": BODY, "authorId": user.json()["id"]}
    writer = service.token_of(user=user.json()["id"])
    filler = fill(folder)
    try:
        statuses = [writer.post("/posts", post).status for _ in range(100)]
        assert statuses[-1] == 503 and set(statuses) <= {201, 503}, statuses
        assert detail(service) == "The database takes no changes: there is no room left."
        assert (service.get("/users").status, service.get("/health/live").status) == (200, 200)
    finally:
        filler.unlink()
    until(lambda: detail(service) == "")
    assert writer.post("/posts", post).status == 201


def test_a_full_disk_below_sqlite_is_not_ready_until_there_is_room() -> None:
    with disk(8) as folder, running("serve", database=f"sqlite:///{folder}/blog.db", noise=".") as service:
        full_disk(service, folder)


def test_a_full_disk_below_postgres_is_not_ready_until_there_is_room(postgres: Postgres) -> None:
    with disk(32) as folder:
        space = folder / "space"
        space.mkdir()
        shutil.chown(space, postgres.system_user)
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        postgres.execute("CREATE DATABASE small TABLESPACE small TEMPLATE template0")
        try:
            with running("serve", database=postgres.url("small"), noise=".") as service:
                full_disk(service, folder)
        finally:
            postgres.execute("DROP DATABASE small WITH (FORCE)")
            postgres.execute("DROP TABLESPACE small")


# tables that do not fit


async def eventually(work: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + LONGEST
    while not await work():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def change(database: str, sql: str) -> None:
    """What a migration, or someone with a client of the database, does."""
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"), timeout=10)) as file:
            file.execute(sql)
        return
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def fits(ready: Readiness) -> bool:
    try:
        await ready.check()
    except Refusal as refusal:
        assert "a migration is pending" in str(refusal), refusal
        return False
    return True


def ready_metric(app: Diptych) -> float:
    series = {metric.description.name: metric.series for metric in app.metrics.registry.collect()}
    return series["diptych_ready"][()][0]


def test_a_service_whose_tables_do_not_fit_is_not_ready_until_they_do(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "EVERY", 0.02)

    async def run() -> None:
        database = new_database()
        app = Diptych(model, config=Config(database=database))
        handler = await app.start()
        try:
            assert await fits(handler.readiness)
            await change(database, "ALTER TABLE users ADD COLUMN later text")  # of a later model: the old one goes on
            for _ in range(10):
                assert await fits(handler.readiness)
                await asyncio.sleep(0.05)
            await change(database, "ALTER TABLE orders RENAME COLUMN note TO remark")

            async def is_refused() -> bool:
                return not await fits(handler.readiness)

            await eventually(is_refused)
            assert ready_metric(app) == 0
            await change(database, "ALTER TABLE orders RENAME COLUMN remark TO note")
            await eventually(lambda: fits(handler.readiness))
            assert ready_metric(app) == 1
        finally:
            await app.stop()

    asyncio.run(run())


def test_a_service_that_shuts_down_is_not_ready(new_database: NewDatabase) -> None:
    async def run() -> None:
        app = Diptych(model, config=Config(database=new_database()))
        handler = await app.start()
        try:
            await handler.readiness.check()
            app.begin_drain()
            with pytest.raises(Refusal, match="shutting down"):
                await handler.readiness.check()
        finally:
            await app.stop()

    asyncio.run(run())
