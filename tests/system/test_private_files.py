"""The files of a SQLite database hold the keys that sign tokens: nobody but their owner may open them."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.sqlite import private_file
from diptych.db.sqlite.store import SqliteStore
from diptych.demo.model import model
from diptych.identity.tokens import load_tokens
from tests.support.running import Command


@pytest.fixture(autouse=True)
def _careless() -> Iterator[None]:
    """A process whose files anyone may read."""
    before = os.umask(0o022)
    private_file.warn_once.cache_clear()
    try:
        yield
    finally:
        os.umask(before)


def modes(path: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}


async def opened(database: str) -> dict[str, int]:
    """The modes of a database's files while it is open, and has been changed."""
    store = connect(Config(database=database))
    await store.open(model)
    try:
        await load_tokens(store, "")
        return modes(Path(database.removeprefix("sqlite:///")))
    finally:
        await store.close()


def test_only_the_owner_may_open_a_new_database(tmp_path: Path) -> None:
    found = asyncio.run(opened(f"sqlite:///{tmp_path}/new.db"))
    assert set(found) >= {"new.db", "new.db-wal", "new.db-shm"}
    assert set(found.values()) == {0o600}


def test_an_old_database_keeps_its_mode_and_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "old.db"
    path.touch(0o644)
    for _ in range(2):
        found = asyncio.run(opened(f"sqlite:///{path}"))
        assert found["old.db"] == 0o644
    told = [each.getMessage() for each in caplog.records if str(path) + " " in each.getMessage()]
    assert len(told) == 1 and "mode 0644" in told[0] and told[0].endswith(f"Run chmod 600 {path}.")


def test_check_warns_of_files_that_others_may_open(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    asyncio.run(opened(f"sqlite:///{path}"))
    assert "chmod" not in command("check", f"--database=sqlite:///{path}").stdout
    path.chmod(0o640)
    done = command("check", f"--database=sqlite:///{path}")
    assert done.returncode == 0
    assert f"Warning: The file {path} has mode 0640" in done.stdout


def test_what_sqlite_puts_beside_the_file_is_looked_at_too(tmp_path: Path) -> None:
    for suffix, mode in (("", 0o600), ("-wal", 0o604), ("-shm", 0o660)):
        path = tmp_path / f"a.db{suffix}"
        path.touch()
        path.chmod(mode)
    found = [each.partition(",")[0] for each in SqliteStore(f"{tmp_path}/a.db").cautions()]
    assert found == [f"The file {tmp_path}/a.db-wal has mode 0604", f"The file {tmp_path}/a.db-shm has mode 0660"]


def test_a_database_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(opened("sqlite:///:memory:"))
    assert list(tmp_path.iterdir()) == []
    assert SqliteStore(":memory:").cautions() == []
