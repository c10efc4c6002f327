"""The recipes of the page about backups: recovery of PostgreSQL and of SQLite to a moment, run as they are written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.existing import run_sql
from tests.support.running import ROOT, NewDatabase, Postgres, make_tables, scratch, served
from tests.system.test_backup import PROGRAMS, admin_of, create, emails
from tests.system.test_guides import code

PAGE = ROOT / "docs" / "how-to" / "backup.md"
REPLICATE, RESTORE, BASE_BACKUP, RECOVER = code(PAGE, "sh")
_ARCHIVED = """SELECT last_archived_wal IS NOT NULL AND NOT EXISTS (
  SELECT FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready') FROM pg_stat_archiver"""
ADDRESSES = {f"{number}@example.org" for number in range(10)}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")


def placed(text: str, places: Mapping[str, str]) -> str:
    """A block of the page, with the paths of this test."""
    for place, here in places.items():
        assert place in text, place
        text = text.replace(place, here)
    return text


def write(database: str, numbers: range) -> None:
    with served(database) as service:
        for number in numbers:
            create(admin_of(service), number)


def check_recovered(database: str, cursor: str) -> None:
    """What was written until the moment is there, and who followed later is told so."""
    with served(database) as service:
        admin = admin_of(service)
        assert emails(admin) == ADDRESSES
        create(admin, 1_000)
        gap = admin.get(f"/users/changes?after={cursor}")
        assert (gap.status, gap.json()["code"]) == (410, "RESUME_GAP")


# PostgreSQL


class Server:
    """A PostgreSQL server in a folder of its own, whose programs run as the user that the tests' server has."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self.folder, self.user = folder, user
        for name in ("wal", "socket"):
            (folder / name).mkdir()
        if user is not None:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, user, user)

    def sh(self, script: str) -> None:
        env = {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        with (self.folder / "log").open("a") as log:
            command = ["sh", "-ec", script]
            done = subprocess.run(
                command, cwd=self.folder, env=env, user=self.user, stdout=log, stderr=log, check=False
            )
        assert done.returncode == 0, (self.folder / "log").read_text()

    def start(self) -> None:
        self.sh("initdb -D data -U postgres -A trust --no-sync && mkdir base")
        (settings,) = code(PAGE, "ini")
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(placed(settings, {"/mnt/wal": str(self.folder / "wal")}))
            file.write(f"\nlisten_addresses = ''\nunix_socket_directories = '{self.folder}/socket'\nfsync = off\n")
        self.sh("pg_ctl -D data -w start")

    def stop(self, data: str) -> None:
        self.sh(f"pg_ctl -D {data} -w -m immediate stop")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}/socket"


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Server]:
    folder = Path(scratch("recovery-"))
    folder.chmod(0o755)
    server = Server(folder, postgres._server.system_user)
    server.start()
    try:
        yield server
    finally:
        for data in ("data", "recovered"):
            if (folder / data / "postmaster.pid").exists():
                server.stop(data)
        shutil.rmtree(folder, ignore_errors=True)


def test_postgresql_is_recovered_to_a_moment(server: Server) -> None:
    run_sql(server.url("postgres"), "CREATE DATABASE shop ENCODING 'UTF8' TEMPLATE template0")
    database = make_tables(server.url("shop"))
    write(database, range(5))
    here = str(server.folder)
    server.sh(placed(BASE_BACKUP, {"/run/postgresql": f"{here}/socket", "/mnt/base": f"{here}/base"}))
    write(database, range(5, 10))
    moment = now()
    with served(database) as service:
        create(admin_of(service), 99)
        cursor = admin_of(service).get("/users/changes?first=100").json()["data"][-1]["cursor"]
    run_sql(database, "DELETE FROM users")  # the mistake
    run_sql(database, "SELECT pg_switch_wal()")
    end = time.monotonic() + 60
    while run_sql(database, _ARCHIVED) != [(True,)]:
        assert time.monotonic() < end
        time.sleep(0.1)
    server.stop("data")
    places = {
        "/mnt/base": f"{here}/base",
        "/mnt/wal": f"{here}/wal",
        "/var/lib/postgresql": here,
        "2026-11-18 01:59:00+00": moment,
    }
    server.sh(placed(RECOVER, places))
    while run_sql(database, "SELECT pg_is_in_recovery()") != [(False,)]:
        assert time.monotonic() < end + 60
        time.sleep(0.1)
    check_recovered(database, cursor)


# SQLite


@contextmanager
def replicating(script: str) -> Iterator[None]:
    process = subprocess.Popen(
        ["sh", "-c", f"exec {script}"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=_PATH
    )
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def wait_until_copied(copy: Path) -> None:
    """Wait until nothing has come to the copy for some seconds: it is written every second."""
    end, seen, since = time.monotonic() + 60, frozenset[Path](), time.monotonic()
    while not seen or time.monotonic() < since + 3:
        assert time.monotonic() < end, "nothing was copied"
        files = frozenset(copy.rglob("*.ltx"))
        if files != seen:
            seen, since = files, time.monotonic()
        time.sleep(0.1)


_PATH = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.skipif(not Path(sys.executable).with_name("litestream").exists(), reason="Litestream is for Linux")
def test_sqlite_is_restored_to_a_moment(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database = make_tables(new_sqlite())
    path = database.removeprefix("sqlite:///")
    (settings,) = code(PAGE, "yaml")
    config = tmp_path / "litestream.yml"
    config.write_text(placed(settings, {"/var/lib/diptych/shop.db": path, "/mnt/backup/shop": f"{tmp_path}/copy"}))
    with replicating(placed(REPLICATE, {"/etc/litestream.yml": str(config)})):
        write(database, range(10))
        wait_until_copied(tmp_path / "copy")
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        time.sleep(2)
        with served(database) as service:
            create(admin_of(service), 99)
            cursor = admin_of(service).get("/users/changes?first=100").json()["data"][-1]["cursor"]
        wait_until_copied(tmp_path / "copy")
    restored = tmp_path / "restored.db"
    places = {
        "2026-11-18T01:59:00Z": moment,
        "/var/lib/diptych/restored.db": str(restored),
        "/mnt/backup/shop": f"{tmp_path}/copy",
    }
    subprocess.run(["sh", "-ec", placed(RESTORE, places)], env=_PATH, check=True, capture_output=True)
    restored.chmod(0o600)
    check_recovered(f"sqlite:///{restored}", cursor)
