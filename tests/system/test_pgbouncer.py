"""PgBouncer stands in front of PostgreSQL, and the service starts, reads, writes and keeps its timeouts: in session mode
with the defaults of PgBouncer, in transaction mode with one that tracks prepared statements. Where there is no PgBouncer,
this is skipped, unless `PGBOUNCER=required` says that there must be one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.postgres.sessions import session_settings
from diptych.db.postgres.store import PostgresStore
from diptych.demo.model import model
from diptych.errors import StartError
from tests.support.behind_pooler import MODE, behind_pooler
from tests.support.effort import long_where
from tests.support.pooler import NEEDED, newer, pgbouncer, program, version
from tests.support.running import PATIENCE, Postgres, served, token


def test_the_service_runs_behind_a_pgbouncer_with_its_own_defaults(postgres: Postgres) -> None:
    database = postgres.create()
    with pgbouncer(database) as url, served(url, "--sample", "--statement-timeout", "1") as service:
        admin = service.signed_in(token(url, "admin"))
        for number in range(20):
            made = admin.post("/users", {"name": f"n{number}", "email": f"n{number}@example.org"})
            assert made.status == 201, made.body
        assert len(service.get("/users?first=100").json()["data"]) >= 20
        assert "errors" not in service.query("{ users { name } }")
        name = database.partition("?")[0].rpartition("/")[2]
        sessions = f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND application_name ~ 'diptych'"
        assert postgres.execute(sessions), "sessions carry their name through PgBouncer"


def test_the_timeouts_hold_behind_a_pgbouncer(postgres: Postgres) -> None:
    """A statement that waits for a lock longer than it may is ended by the database, not by patience."""
    database = postgres.create()
    with pgbouncer(database) as url, served(url, "--sample", "--statement-timeout", "0.5") as service:
        admin = service.signed_in(token(url, "admin"))
        one = admin.get("/users?first=1&fields=id").json()["data"][0]["id"]
        with _locked(database):
            begun = time.monotonic()
            answer = admin.request("PATCH", f"/users/{one}", {"content-type": "application/json"}, b'{"name": "x"}')
            assert answer.status in (503, 504), answer.body
            assert time.monotonic() - begun < 5
        assert (
            admin.request("PATCH", f"/users/{one}", {"content-type": "application/json"}, b'{"name": "x"}').status
            == 200
        )


@contextmanager
def _locked(database: str) -> Iterator[None]:
    """All rows of `users` are locked meanwhile, by a session of its own."""
    held, done = threading.Event(), threading.Event()

    async def hold() -> None:
        connection = await asyncpg.connect(database)
        try:
            async with connection.transaction():
                await connection.execute("SELECT 1 FROM users FOR UPDATE")
                held.set()
                await asyncio.to_thread(done.wait, PATIENCE)
        finally:
            await connection.close()

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    try:
        assert held.wait(PATIENCE)
        yield
    finally:
        done.set()
        thread.join(PATIENCE)


# transaction mode


@pytest.fixture
def role(postgres: Postgres) -> Iterator[str]:
    """A role whose sessions have the settings of the service, with a statement timeout of a second."""
    name = "pooled"
    postgres.execute(f"CREATE ROLE {name} SUPERUSER LOGIN")
    for setting, value in session_settings(1.0).items():
        postgres.execute(f"ALTER ROLE {name} SET {setting} = '{value}'")
    yield name
    for row in postgres.execute("SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate"):
        postgres.execute(f"REASSIGN OWNED BY {name} TO postgres", row[0])
        postgres.execute(f"DROP OWNED BY {name}", row[0])
    postgres.execute(f"DROP ROLE {name}")


def refusal(url: str, **settings: Any) -> str:
    """Why a service does not start."""

    async def work() -> str:
        store = connect(Config(database=url, **settings))
        try:
            with pytest.raises(StartError) as refused:
                await store.open(model)
            return str(refused.value)
        finally:
            await store.close()

    return asyncio.run(work())


def test_in_transaction_mode_everything_works_with_fewer_sessions_than_connections(
    postgres: Postgres, role: str
) -> None:
    database = postgres.create()
    how: dict[str, Any] = {"pool_mode": "transaction", "max_prepared_statements": 200, "default_pool_size": 3}
    options = ("--pool-mode", "transaction", "--statement-timeout", "1", "--direct-database", database)
    with pgbouncer(database, newer(), role, **how) as url, served(url, "--sample", *options) as service:
        admin = service.signed_in(token(database, "admin"))
        users = [user["id"] for user in admin.get("/users?first=20&fields=id").json()["data"]]

        def work(number: int) -> list[int]:
            made = admin.post("/users", {"name": f"n{number}", "email": f"n{number}@example.org"})
            read = [admin.get(f"/users/{users[(number + n) % len(users)]}") for n in range(3)]
            listed = admin.get(f"/users?first={1 + number % 7}&sort=-name")
            asked = admin.post("/graphql", {"query": "{ users { id name } }"})
            return [made.status, *(answer.status for answer in (*read, listed, asked))]

        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(work, range(150)))
        assert {tuple(statuses) for statuses in answers} == {(201, 200, 200, 200, 200, 200)}
        found = postgres.execute(f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}'")
        assert found[0][0] <= 3, "the pooler must have shared its sessions"
        listening = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'diptych listens'"
        assert postgres.execute(f"{listening} AND usename = 'postgres'")[0][0] == 1


def test_in_transaction_mode_the_timeouts_of_the_role_hold(postgres: Postgres, role: str) -> None:
    database = postgres.create()
    how: dict[str, Any] = {"pool_mode": "transaction", "max_prepared_statements": 200}
    options = ("--pool-mode", "transaction", "--statement-timeout", "1")
    with pgbouncer(database, newer(), role, **how) as url, served(url, "--sample", *options) as service:
        admin = service.signed_in(token(database, "admin"))
        one = admin.get("/users?first=1&fields=id").json()["data"][0]["id"]
        json_type = {"content-type": "application/json"}
        with _locked(database):
            begun = time.monotonic()
            answer = admin.request("PATCH", f"/users/{one}", json_type, b'{"name": "x"}')
            assert answer.status in (503, 504), answer.body
            assert time.monotonic() - begun < 5
        assert admin.request("PATCH", f"/users/{one}", json_type, b'{"name": "x"}').status == 200


def test_in_transaction_mode_a_role_without_the_settings_is_refused_with_what_to_run(postgres: Postgres) -> None:
    database = postgres.create()
    how: dict[str, Any] = {"pool_mode": "transaction", "max_prepared_statements": 200}
    with pgbouncer(database, newer(), **how) as url:
        said = refusal(url, pool_mode="transaction")
        assert "statement_timeout is 0 and must be 5000" in said
        assert "ALTER ROLE postgres SET statement_timeout = '5000';" in said
        assert "ALTER ROLE postgres SET jit = 'off';" in said


def test_a_pooler_that_does_not_track_prepared_statements_is_refused(postgres: Postgres) -> None:
    database = postgres.create()
    path = program()
    how: dict[str, Any] = {"pool_mode": "transaction"}
    if path is not None and version(path) >= NEEDED:
        how["max_prepared_statements"] = 0
    with pgbouncer(database, **how) as url:
        assert "PgBouncer 1.21 or newer" in refusal(url, pool_mode="transaction")


def test_a_pooler_that_shares_sessions_is_refused_in_session_mode(postgres: Postgres) -> None:
    with pgbouncer(postgres.create(), pool_mode="transaction") as url:
        assert 'set pool_mode = "transaction"' in refusal(url)


def test_without_a_pooler_transaction_mode_needs_only_the_settings(postgres: Postgres, role: str) -> None:
    async def work(url: str) -> None:
        store = connect(Config(database=url, pool_mode="transaction", statement_timeout=1.0))
        await store.open(model)
        await store.close()

    database = postgres.create()
    assert "ALTER ROLE" in refusal(database, pool_mode="transaction")
    asyncio.run(work(database.replace("postgres:@", f"{role}@").replace("postgres@", f"{role}@")))


def test_a_connection_knows_its_backend_behind_a_pooler(postgres: Postgres) -> None:
    """The outcome of a broken commit is found by ending that backend; a pooler makes up ids of processes."""

    async def work(url: str) -> None:
        store = PostgresStore(url)
        connection = await store.connection("test")
        try:
            known = getattr(connection, "process", 0)
            assert known == await connection.fetchval("SELECT pg_backend_pid()")
            assert known != connection.get_server_pid()
        finally:
            await connection.close()

    with pgbouncer(postgres.create()) as url:
        asyncio.run(work(url))


def test_what_model_code_has_set_does_not_reach_the_next_caller(postgres: Postgres, role: str) -> None:
    async def work(url: str) -> tuple[Any, ...]:
        store = PostgresStore(url, size=1, timeout=1.0, pool_mode="transaction")
        await store.open(model)
        try:
            session = await store.session()
            await session.rows("SELECT set_config('statement_timeout', '0', false)", ())
            await session.rows("CREATE TEMP TABLE left_behind (id integer)", ())
            await session.rows("SET ROLE pg_monitor", ())
            await session.commit()
            await session.end()
            later = await store.session(reading=True)
            found = "SELECT current_setting('statement_timeout'), current_user::text, to_regclass('left_behind')::text"
            (row,) = await later.rows(found, ())
            await later.end()
            return row
        finally:
            await store.close()

    how: dict[str, Any] = {"pool_mode": "transaction", "max_prepared_statements": 200, "default_pool_size": 1}
    with pgbouncer(postgres.create(), newer(), role, **how) as url:
        assert asyncio.run(work(url)) == ("1s", role, None)


# the contract, behind it

_SHORT = (
    "tests/contract/test_reads.py",
    "tests/contract/writes/test_verbs.py",
    "tests/contract/live/test_changes_log.py",
)
"""The part of the contract that is always tested behind a pooler; `make pooled` tests all."""


@pytest.mark.skipif(bool(MODE), reason="these tests run behind a pooler already")
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_the_stores_of_tests_can_be_put_behind_a_pooler(postgres: Postgres, mode: str) -> None:
    """The hook itself: or else the tests behind a pooler would prove nothing."""

    async def is_pooled(url: str) -> tuple[bool, str]:
        store = connect(Config(database=url))
        assert isinstance(store, PostgresStore)
        await store.open(model)
        link = await store.pool.take()
        try:
            ((process, role),) = await link.connection.fetch("SELECT pg_backend_pid(), session_user::text")
            return process != link.connection.get_server_pid(), role
        finally:
            store.pool.give(link)
            await store.close()

    if mode == "transaction":
        newer()
    url = postgres.create()
    with behind_pooler(postgres, mode):
        assert asyncio.run(is_pooled(url)) == (True, "pooled_5000_2000" if mode == "transaction" else "postgres")
    assert asyncio.run(is_pooled(postgres.create())) == (False, "postgres")


@pytest.mark.skipif(bool(MODE), reason="these tests run behind a pooler already")
@pytest.mark.timeout(600)
@long_where(mode="session")
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_the_contract_holds_behind_a_pooler(mode: str) -> None:
    path = newer() if mode == "transaction" else program()
    if path is None:
        pytest.skip("there is no PgBouncer on this machine")
    env = os.environ | {"POOLER": mode, "STORES": "postgres", "PGBOUNCER_BIN": path}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_SHORT]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stdout
