"""What `tx.sql` runs ends with its transaction: nothing of it stays on the connection that others use after it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.calls.press import plumbing
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase, Postgres

LASTING_SQLITE = (
    "PRAGMA foreign_keys = OFF",
    "pragma synchronous(0)",
    "PRAGMA main.cache_size = 1",
    "PRAGMA query_only = 1",
    "PRAGMA journal_mode = DELETE",
    "ATTACH ':memory:' AS other",
    "CREATE TEMP TABLE plumbers (id)",
    "CREATE TEMP TRIGGER t AFTER INSERT ON plumbers BEGIN SELECT raise(ABORT, 'x'); END",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
)
LASTING_POSTGRES = (
    "SET statement_timeout = 900",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET search_path = nowhere",
    "SET ROLE visitor",
    "SET SESSION AUTHORIZATION visitor",
    "CREATE TEMP TABLE plumbers (id text)",
    "SET jit = on",
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


def post(service: Service, url: str, body: Any) -> Answer:
    return service.send("POST", url, headers={"content-type": "application/json"}, body=json.dumps(body).encode())


def run(service: Service, statement: str) -> int:
    return post(service, "/plumbers/run", {"text": statement}).status


@pytest.mark.parametrize("statement", LASTING_SQLITE)
def test_a_statement_that_would_stay_on_the_writer_is_refused(
    statement: str, runner: asyncio.Runner, new_sqlite: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with in_process(plumbing, new_sqlite(), runner) as service, caplog.at_level(logging.CRITICAL, "diptych"):
        assert run(service, statement) == 500
        assert run(service, "SELECT 1") == 200
        assert post(service, "/plumbers", {}).status == 201
        assert run(service, "SELECT 1 FROM pragma_foreign_keys WHERE foreign_keys = 1") == 200
        assert service.rows("/plumbers?fields=version") == [{"version": 1}]


def test_pragmas_that_only_tell_something_are_taken(runner: asyncio.Runner, new_sqlite: NewDatabase) -> None:
    with in_process(plumbing, new_sqlite(), runner) as service:
        assert run(service, "PRAGMA table_info(plumbers)") == 200
        assert run(service, "UPDATE plumbers SET version = version") == 200


@pytest.mark.parametrize("statement", LASTING_POSTGRES)
def test_a_session_of_postgres_is_set_right_after_code_of_the_model(
    statement: str, runner: asyncio.Runner, postgres: Postgres
) -> None:
    exists = postgres.execute("SELECT 1 FROM pg_roles WHERE rolname = 'visitor'")
    if not exists:
        postgres.execute("CREATE ROLE visitor LOGIN")
    with in_process(plumbing, postgres.create(), runner) as service:
        assert run(service, statement) == 200
        for _ in range(3):
            assert post(service, "/plumbers", {}).status == 201
        assert len(service.rows("/plumbers")) == 3
        settings = "SELECT 1 FROM pg_settings WHERE (name, setting) IN (('jit', 'off'), ('statement_timeout', '5000'))"
        assert post(service, "/plumbers/run", {"text": settings}).body == b"2"
