"""What a start costs, as ratios of times that were measured in the same run: absolute ones differ between machines."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from diptych import Config, Diptych
from diptych.demo.model import model
from tests.support.many_resources import source

NOT_NEEDED = (
    "argon2",
    "asyncpg",
    "authlib",
    "diptych.api.openapi",
    "diptych.db.postgres",
    "diptych.demo",
    "diptych.explain",
    "graphql",
    "joserfc",
    "mkdocs",
    "websockets",
)
"""What a server of SQLite that is not asked for anything does without; most of it is imported after the start."""
MEASURE = """
import json, sys, time
begun = time.process_time()
{}
print(json.dumps([time.process_time() - begun, sorted(sys.modules)]))
"""

COUNT = """
import itertools, sys
numbers = itertools.count()
sys.setprofile(lambda *_: next(numbers) and None)
{}
sys.setprofile(None)
print(next(numbers))
"""


def measure(code: str, folder: Path) -> tuple[float, list[str]]:
    """The processor time of some lines in a new process, and the modules that they import."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(code)], cwd=folder, capture_output=True, text=True, check=True
    )
    seconds, modules = json.loads(done.stdout)
    return seconds, modules


def calls(code: str, folder: Path) -> int:
    """How many calls some lines make in a new process, and returns."""
    counting = COUNT.format(code)
    done = subprocess.run([sys.executable, "-c", counting], cwd=folder, capture_output=True, text=True, check=True)
    return int(done.stdout)


def is_at_most(limit: float, code: str, to: str, folder: Path) -> bool:
    """Do some lines take at most so many times as long as others? The shortest runs of each are compared, which are
    interleaved, since what else the machine does can only add to a run; the first ones fill caches."""
    mine, others = [], []
    for _ in range(12):
        mine.append(measure(code, folder)[0])
        others.append(measure(to, folder)[0])
        if min(mine) < limit * min(others) and len(mine) > 3:
            return True
    return False


def test_a_server_imports_what_it_needs_to_start(tmp_path: Path) -> None:
    _, modules = measure("import diptych.cli.serve", tmp_path)
    assert "diptych.serve.app" in modules
    assert not [name for name in modules if name.startswith(NOT_NEEDED)]


def test_imports_do_little_more_than_those_of_graphql_alone(tmp_path: Path) -> None:
    """By the calls that they make, which any machine makes as many of; the first run may compile."""
    mine, others = (
        [calls(f"import {name}", tmp_path) for _ in range(2)][1] for name in ("diptych.cli.serve", "graphql")
    )
    assert mine < 2.4 * others


def test_a_start_opens_one_connection_to_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection parses the whole schema, and keeps it. At the first start keys are written, by a second one."""
    opened: list[apsw.Connection] = []
    monkeypatch.setattr(apsw, "connection_hooks", [opened.append])

    async def start() -> int:
        app = Diptych(model, config=Config(database=f"sqlite:///{tmp_path}/data.db"))
        await app.start()
        count = len(opened)
        await app.stop()
        opened.clear()
        return count

    assert asyncio.run(start()) == 2
    assert asyncio.run(start()) == 1


@pytest.mark.parametrize("count", [40])
def test_reading_a_model_grows_with_its_resources_and_no_faster(tmp_path: Path, count: int) -> None:
    for number in (count, count * 4):
        (tmp_path / f"things{number}.py").write_text(source(number), "utf-8")
    begin = "import diptych.model.model; begun = time.process_time(); import things{}"
    assert is_at_most(4 * 1.5, begin.format(count * 4), begin.format(count), tmp_path)
