"""What tests share: one PostgreSQL for the session, and databases of both kinds."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from diptych.cli import main
from tests.proof import PROOF
from tests.running import Command, NewDatabase, Postgres

STORES = ("sqlite", "postgres")


# What is drawn at random is the same in every run, however slow the machine; a proof (`make prove`) draws anew.
settings.register_profile("steady", deadline=None, derandomize=PROOF == 1, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL."""
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def new_sqlite(tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Makes SQLite files."""
    folder = tmp_path_factory.mktemp("sqlite")
    numbers = itertools.count()
    return lambda: f"sqlite:///{folder}/{next(numbers)}.db"


@pytest.fixture(scope="session", params=STORES)
def new_database(request: pytest.FixtureRequest, new_sqlite: NewDatabase) -> NewDatabase:
    """Makes databases, of each kind in turn."""
    if request.param == "sqlite":
        return new_sqlite
    server: Postgres = request.getfixturevalue("postgres")
    return server.create


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """An empty database for one test, on each store."""
    return new_database()


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Command]:
    """Runs a command in this process, whose modules and settings it leaves as they were."""
    path, settings = sys.path.copy(), dict(os.environ)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["diptych", *arguments])
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), said.out, said.err)

    for name in settings:
        if name.startswith("DIPTYCH_"):
            monkeypatch.delenv(name)
    yield run
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
