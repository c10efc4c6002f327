"""Migrations at random, killed by SIGKILL at one statement after the other: the log is right, and going on finishes them."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import asyncpg
import pytest

from diptych import Model
from diptych.config import Config
from diptych.migrate.files import read_folder
from diptych.migrate.runner import Project as Commands
from diptych.migrate.state import state_of
from tests.contract.migrate.scene import Project, opened, structure
from tests.proof.test_migrations import Walk, insert, rows
from tests.support.effort import LONG, scaled
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

MIGRATIONS = scaled(50, 2)
STRIDE = 1 if LONG else 19
"""Statements between two kills."""
MADE = ("tables", "unique", "indexes", "partial", "references", "checks", "searches", "defaults")
"""What migrations make; triggers and the record are completed by whoever opens the database."""
Place = tuple[str, str]


def killed_at(point: int, project: Project, model: Model) -> bool:
    """Apply the migrations in a process that dies before its statement of this number; False if it was done before."""
    child = os.fork()
    if child == 0:
        left = point

        def count(*_: Any) -> bool:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

        def counted(method: Any) -> Any:
            async def execute(self: Any, sql: str, *values: Any, **how: Any) -> Any:
                count()
                return await method(self, sql, *values, **how)

            return execute

        def watch(connection: apsw.Connection) -> None:
            connection.exec_trace = count

        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            patch.object(asyncpg.Connection, "execute", counted(asyncpg.Connection.execute)).start()
            apsw.connection_hooks.append(watch)
            project.apply(model, allow_loss=True)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, f"a migration that was killed cannot go on, at {point}"
    return False


def prepared(project: Project, walk: Walk) -> tuple[Model, dict[Place, list[Any]]]:
    """A database with rows, and four migrations that it does not have; and the values that must be there afterwards."""
    now = walk.model()
    project.make(now, "first")
    project.apply(now)
    for number in range(6):
        insert(project.outside, walk.random.choice(list(now.resources.values())), number)
    values: dict[Place, tuple[Place, list[Any]]] = {
        place: (place, found) for place, found in rows(project.outside, now).items()
    }
    for _ in range(4):
        while True:
            answers, moved = walk.change()
            if state_of(walk.model()).hash != state_of(now).hash:
                break
        now = walk.model()
        columns = {
            (resource.table, field.column) for resource in now.resources.values() for field in resource.fields.values()
        }
        values = {first: (moved.get(place, place), found) for first, (place, found) in values.items()}
        values = {first: (place, found) for first, (place, found) in values.items() if place in columns}
        project.make(now, **answers)
    return now, dict(values.values())


@pytest.mark.timeout(3600 if LONG else 300)
def test_killed_at_every_statement_of_random_migrations(tmp_path: Path, new_database: NewDatabase) -> None:
    seed = int(os.environ.get("SEED") or random.randrange(10**6))
    print("SEED", seed)
    kills = 0
    for number in range(MIGRATIONS):
        walk = Walk(random.Random(seed + number), {"Alpha": {}, "Beta": {}})
        project = Project(tmp_path / str(number), new_database())
        now, values = prepared(project, walk)
        anew = Outside(new_database())
        opened(anew.url, now)
        wanted = structure(anew)
        commands, chain = Commands(now, project.folder), read_folder(project.folder)
        config = Config(database=project.outside.url)
        point = walk.random.randrange(1, STRIDE + 1)
        while killed_at(point, project, now):
            kills += 1
            if not commands.pending(config, chain):  # all is done but for what opening the database does
                there = structure(project.outside)
                assert {part: there[part] for part in MADE} == {part: wanted[part] for part in MADE}, (
                    seed + number,
                    point,
                )
            point += STRIDE
        assert commands.pending(config, chain) == []
        assert structure(project.outside) == wanted, (seed + number, point)
        after = rows(project.outside, now)
        for place, was in values.items():
            kept = [value for value, before in zip(after[place], was, strict=True) if before is not None]
            assert kept == [each for each in was if each is not None], (seed + number, place)
    print("killed", kills, "times")
    assert kills >= MIGRATIONS
