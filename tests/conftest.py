"""What tests share: one PostgreSQL for the session, and databases of both kinds."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType

import pytest
from graphql import GraphQLSchema
from graphql.type import definition
from graphql.type.assert_name import assert_name
from hypothesis import HealthCheck, settings

from diptych.api.graphql.schema import build_schema
from diptych.cli import main
from diptych.explain import understood
from diptych.model.view import View
from diptych.serve.endpoint import graphql_planner
from tests.support.behind_pooler import behind_pooler
from tests.support.effort import LONG, scaled
from tests.support.running import Command, NewDatabase, Postgres, scratch

# Hundreds of processes import the same source, which is compiled once.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

STORES = tuple(os.environ.get("STORES", "sqlite,postgres").split(","))
"""The databases to test with: `STORES=sqlite` leaves out PostgreSQL, and what needs it."""
ORDER = {f"tests/{folder}": number for number, folder in enumerate(("system", "proof", "fit", "contract", "unit"))}
"""The folders of tests: those whose tests take longest come first."""
_WAITING = ("tests/system/", "tests/proof/", "tests/fit/")
_SCHEMAS = 32
"""How many GraphQL schemas services share."""
_YOUNG, _NEVER = 20, 1_000_000
"""Collections of one generation of garbage until the next one is collected."""
_LEFT_OUT = pytest.StashKey[int]()
"""How many tests are left out, since they need a database that is not to be tested with."""


# What is drawn at random is the same in every run, however slow the machine; a proof (`make prove`) draws anew.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=not LONG,
    max_examples=scaled(1_000, 25),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def pytest_configure() -> None:
    """For every run of an event loop, asyncio exchanges the handler of Python for one of its own, and no other: tests
    run loops a hundred thousand times."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are made, and none is thrown away: nothing of it is garbage, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, _YOUNG, _YOUNG if LONG else _NEVER)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Old objects are looked through between two tests: among a million of them that takes seconds on a busy machine,
    which a transaction that is open meanwhile does not have."""
    ran = yield
    if gc.get_count()[2] >= _YOUNG:
        gc.collect()
    return ran


def needs_postgres(item: pytest.Item) -> bool:
    """Does a test ask for PostgreSQL, by a fixture or by a parameter?"""
    if not isinstance(item, pytest.Function):
        return False
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "postgres" in item.fixturenames or any(
        value == "postgres" or (isinstance(value, tuple) and "postgres" in value) for value in given
    )


def is_long(item: pytest.Item) -> bool:
    """Does a test have the parameters of one of its markers `long_where`?"""
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return any(
        all(given.get(name, ...) in values for name, values in mark.kwargs.items())
        for mark in item.iter_markers("long_where")
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker is left with it in the end; without what needs a database that is
    not to be tested with."""
    for item in items:
        if is_long(item):
            item.add_marker("long")
    items.sort(key=lambda item: ORDER.get("/".join(item.nodeid.split("/")[:2]), len(ORDER)))
    items[:] = dealt(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    if "postgres" not in STORES:
        left_out = [item for item in items if needs_postgres(item)]
        config.hook.pytest_deselected(items=left_out)
        config.stash[_LEFT_OUT] = len(left_out)
        kept = set(items) - set(left_out)
        items[:] = [item for item in items if item in kept]


def dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in an order of which every worker gets an equal part, and steals from the ends of the others.

    Tests of processes and proofs wait, and the others compute: all workers but one begin with the former, file by file,
    the last one computes meanwhile, and in the end all have short tests.
    """
    if workers < 2:
        return items
    files = [list(file) for _, file in itertools.groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    waiting = [file for file in files if file[0].nodeid.startswith(_WAITING)]
    short = [item for file in files if not file[0].nodeid.startswith(_WAITING) for item in file]
    part = len(items) // workers
    parts: list[pytest.Item] = []
    for worker in range(workers - 1):
        first = [item for file in waiting[worker :: workers - 1] for item in file]
        fill = max(0, part - len(first))
        parts += [*first, *short[:fill]]
        del short[:fill]
    return [*parts, *short]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A run that leaves out tests says why, since it may leave out all of a file."""
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"STORES={','.join(STORES)}: {left_out} tests are left out, which need PostgreSQL.")


@pytest.fixture(scope="session", autouse=True)
def shared_schemas() -> Iterator[None]:
    """Services of one model share the GraphQL schemas of its roles, which take longest to make of all that they need.

    A schema depends on nothing but the view of a role, and is never changed. The long form makes each anew.
    """
    made: OrderedDict[int, tuple[View, GraphQLSchema]] = OrderedDict()

    def shared(view: View) -> GraphQLSchema:
        if id(view) not in made:
            made[id(view)] = view, build_schema(view)
            if len(made) > _SCHEMAS:
                made.popitem(last=False)
        made.move_to_end(id(view))
        return made[id(view)][1]

    with pytest.MonkeyPatch.context() as patch:
        if not LONG:
            patch.setattr(graphql_planner, "build_schema", shared)
            patch.setattr(understood, "build_schema", shared)
            patch.setattr(definition, "assert_name", lru_cache(10_000)(assert_name))  # the names are few
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL; `POOLER` puts PgBouncer in front of it."""
    server = Postgres()
    with behind_pooler(server):
        yield server
    server.stop()


@pytest.fixture(scope="session")
def new_sqlite() -> Iterator[NewDatabase]:
    """Makes SQLite files."""
    folder = scratch()
    numbers = itertools.count()
    yield lambda: f"sqlite:///{folder}/{next(numbers)}.db"
    shutil.rmtree(folder, ignore_errors=True)


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
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Command]:
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
