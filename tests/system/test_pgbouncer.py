"""PgBouncer with its own defaults stands in front of PostgreSQL, and the service starts, reads, writes and keeps its
timeouts. Where there is no PgBouncer, this is skipped, unless `PGBOUNCER=required` says that there must be one."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tests.support.running import PATIENCE, Postgres, served, stop, token

_INI = """
[databases]
* = host={host} port={port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
logfile = {folder}/log
"""


@contextmanager
def pgbouncer(database: str) -> Iterator[str]:
    """PgBouncer in front of a database; gives the URL of the database behind it."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        assert os.environ.get("PGBOUNCER") != "required", "there must be a PgBouncer, and there is none"
        pytest.skip("there is no PgBouncer on this machine")
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-"))  # where whoever runs it may look
    found = urlsplit(database)
    host, name = parse_qs(found.query)["host"][0], found.path.lstrip("/")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "ini").write_text(_INI.format(host=host, port=found.port or 5432, listen=port, folder=folder))
    user = []
    if os.geteuid() == 0:  # it refuses to run as root: as whoever PostgreSQL runs as
        owner = Path(host).owner()
        user = ["-u", owner]
        shutil.chown(folder, owner)
        shutil.chown(folder / "ini", owner)
    process = subprocess.Popen(
        [program, *user, str(folder / "ini")], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port)
        yield f"postgresql://postgres@127.0.0.1:{port}/{name}"
    finally:
        stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


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
