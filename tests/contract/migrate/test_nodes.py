"""The list of services that run: migrations refuse to take away what one of them needs."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from diptych.cli import migrate as migrate_command
from diptych.config import Config
from diptych.db.nodes import Node
from diptych.db.process_mark import is_running, mark_of
from diptych.errors import StartError
from diptych.migrate import runner as commands
from diptych.migrate.files import read_folder
from diptych.migrate.nodes import StillNeeded, version_of
from diptych.serve import node_record
from tests.contract.migrate.scene import Project, structure
from tests.contract.migrate.test_kinds import model
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

OLD, NEW = ("title: str", "note: str | None = None"), ("title: str", "slug: str", "rank: int")
ANSWERS: dict[str, Any] = {"fills": {"things.slug": "= upper(title)", "things.rank": "3"}, "drops": {"things.note"}}
ROWS = "SELECT host FROM diptych_nodes"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Runner]:
    monkeypatch.setattr(node_record, "_FIRST", 0.0)
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def project(tmp_path: Path, new_database: NewDatabase) -> Project:
    """A database with the old model, and a migration to the new one."""
    project = Project(tmp_path / "migrations", new_database())
    project.make(model(*OLD), "first")
    project.apply(model(*OLD))
    project.make(model(*NEW), **ANSWERS)
    return project


@pytest.mark.slow
def test_contract_waits_for_services_of_before(project: Project, runner: asyncio.Runner) -> None:
    old, new, url = model(*OLD), model(*NEW), project.outside.url
    config, chain = Config(database=url), read_folder(project.folder)
    listed = commands.Project(new, project.folder)
    with in_process(old, url, runner, rounds=True):
        runner.run(asyncio.sleep(0.2))
        (node,) = listed.nodes(config)
        assert version_of(node, chain) == "0001_first" and node.age <= 30
        before = structure(project.outside)
        with pytest.raises(StartError, match=r"The service .* without (slug|rank); it .* Nothing was changed"):
            project.apply(new)
        assert structure(project.outside) == before
        project.apply(new, expand=True)
        with pytest.raises(StartError, match=r"The service .* has things\.note"):
            project.apply(new)
    assert listed.nodes(config) == [], "it has stopped"
    with in_process(new, url, runner, rounds=True):
        runner.run(asyncio.sleep(0.2))
        assert [version_of(each, chain) for each in listed.nodes(config)] == ["0002_next"]
        project.apply(new)


def test_one_that_was_killed_is_forgotten(project: Project, runner: asyncio.Runner) -> None:
    new, outside = model(*NEW), project.outside
    now = "CAST(strftime('%s', 'now') AS INTEGER)" if outside.is_sqlite else "extract(epoch FROM now())::bigint"
    tables = '{"things": ["id", "title", "note"]}'
    values = f"'killed', 'web-1', '{tables}', 0"
    outside.sql(f"INSERT INTO diptych_nodes (id, host, tables, started_at, seen_at) VALUES ({values}, {now} - 20)")
    with pytest.raises(StartError, match=r"killed on web-1 \(seen [12][0-9] s ago\) .*has things\.note"):
        project.apply(new)
    outside.sql(f"UPDATE diptych_nodes SET seen_at = {now} - 70")
    project.apply(new)


def add_node(project: Project, id: str, age: int) -> None:
    outside = project.outside
    now = "CAST(strftime('%s', 'now') AS INTEGER)" if outside.is_sqlite else "extract(epoch FROM now())::bigint"
    tables = '{"things": ["id", "title", "note"]}'
    outside.sql(
        "INSERT INTO diptych_nodes (id, host, tables, started_at, seen_at) "
        f"VALUES ('{id}', 'web-1', '{tables}', 0, {now} - {age})"
    )


def test_one_that_was_killed_on_this_machine_is_forgotten_at_once(project: Project) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        mark = mark_of(other.pid)
        add_node(project, f"aa-{mark}", 1)
        with pytest.raises(StartError, match="has things"):
            project.apply(model(*NEW))
        other.kill()
    assert mark and is_running(mark) is False
    project.apply(model(*NEW))


def test_the_mark_of_a_process() -> None:
    mine = mark_of(os.getpid())
    assert is_running(mine) is True
    place, _, started = mine.rpartition(".")
    assert is_running(f"{place}.{int(started) + 1}") is False, "another process has got its id"
    assert is_running(mine[1:]) is is_running("") is is_running("x.y") is None, "another machine"


class Looks:
    """`apply` of a project that refuses while a service was seen so many seconds ago."""

    def __init__(self, *ages: int) -> None:
        self.ages = [*ages]

    def apply(self, config: Config, tell: Callable[[str], None]) -> None:
        if self.ages:
            raise StillNeeded("The service runs.", Node("aa-", "web-1", {}, self.ages.pop(0)))


def test_a_start_waits_until_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """`serve --migrate`: a service on another machine that was killed is forgotten, one that runs is seen again."""
    monkeypatch.setattr(migrate_command, "_EVERY", 0.0)
    said: list[str] = []
    killed, runs = Looks(3, 4, 59), Looks(3, 4, 0, 1)
    migrate_command._apply_patiently(cast(Any, killed), Config(), said.append)
    assert killed.ages == [] and len(said) == 1 and "Waiting until it is seen again" in said[0]
    with pytest.raises(StillNeeded):
        migrate_command._apply_patiently(cast(Any, runs), Config(), said.append)
    assert runs.ages == [1]


def test_a_rename_waits_too_unless_nodes_are_ignored(
    tmp_path: Path, new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    old, new = model("title: str"), model("headline: str")
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    project.make(new, renames={"things.title": "headline"})
    with in_process(old, project.outside.url, runner, rounds=True):
        runner.run(asyncio.sleep(0.2))
        with pytest.raises(StartError, match=r"has things\.title"):
            project.apply(new)
        project.apply(new, ignore_nodes=True)
