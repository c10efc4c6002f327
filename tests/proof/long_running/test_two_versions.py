"""Two versions of a model side by side, while their database expands and contracts under load (PostgreSQL).

Two services of version 1 take 300 requests a second in both styles, with followers. The database is expanded, behind
readers that hold its tables for a second; services of version 2 take over one by one; then it is contracted. No request
fails, no acknowledged write is lost or done twice, every follower is told every change once, in order and in the shape
of its version, and nobody waits for a lock for longer than DDL tries to get it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.proof.long_running.followers import Style
from tests.proof.long_running.parts import rows, tell, until
from tests.proof.long_running.two_versions import (
    ANSWERS,
    FIRST,
    SECOND,
    Load,
    LockWatch,
    Node,
    RowFollower,
    ThingsWatching,
    event_faults,
    faults,
)
from tests.support.effort import LONG, scaled
from tests.support.machine import Machine
from tests.support.running import Client, Postgres, diptych, running

RATE = scaled(300, 60)
"""Requests in a second, of all clients together."""
CLIENTS = scaled(24, 6)
SECONDS = scaled(20, 1)
"""How long each phase lasts, at least."""
ROWS = scaled(20_000, 1_500)
READER = 1.2 if LONG else 0.3
"""Seconds for which a reader holds the table, again and again while the database is migrated."""
STALL, LOCK = 0.2, 0.1
"""Seconds that a request may wait for a lock, and those for which one may be held."""
LAG = 600.0
"""Seconds that a follower may take to catch up: on a busy machine, the load goes on faster than it is told."""
FLOOR = 0.02
"""A p99 below this is taken as this: three times a millisecond is noise."""


@pytest.fixture
def project(tmp_path: Path, postgres: Postgres) -> tuple[Path, Path, str]:
    """Folders of both versions, and a database of the first with rows."""
    old, new, url = tmp_path / "old", tmp_path / "new", postgres.create()
    for folder, text in ((old, FIRST), (new, FIRST)):
        folder.mkdir()
        (folder / "shop.py").write_text(text)
    run(new, "make", "shop:model")
    run(new, "apply", "shop:model", "--database", url)
    (new / "shop.py").write_text(SECOND)
    run(new, "make", "shop:model", *ANSWERS)
    asyncio.run(_fill(url))
    return old, new, url


async def _fill(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "INSERT INTO things (id, title, code) "
            f"SELECT gen_random_uuid(), 'seed ' || n, 'seed-' || n FROM generate_series(1, {ROWS}) AS n"
        )
    finally:
        await connection.close()


def run(folder: Path, *words: str) -> str:
    done = diptych("migrate", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.asynccontextmanager
async def long_readers(url: str) -> AsyncIterator[None]:
    """Someone who reads the tables in transactions of a second."""
    connection = await asyncpg.connect(url, server_settings={"application_name": "reader"})

    async def read() -> None:
        while True:
            async with connection.transaction():
                await connection.fetch("SELECT 1 FROM things LIMIT 1")
                await connection.fetch("SELECT 1 FROM groups LIMIT 1")
                await asyncio.sleep(READER)
            await asyncio.sleep(READER / 2)

    task = asyncio.create_task(read())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await connection.close()


class Scene:
    """Services, clients and followers of both versions."""

    def __init__(self, old: Path, new: Path, url: str) -> None:
        self.folders, self.url = {1: old, 2: new}, url
        self.load = Load(RATE)
        self.nodes = [Node(0, 1), Node(0, 1)]
        self.stack = contextlib.AsyncExitStack()
        self.followers: list[tuple[RowFollower, asyncio.Task[None]]] = []
        self.ended: list[RowFollower] = []
        self.started = 0
        """The number of changes before the scene began."""

    async def serve(self, version: int, noise: str = "") -> tuple[int, contextlib.ExitStack]:
        """Start a service; gives its port, and what stops it."""
        stop = contextlib.ExitStack()
        self.stack.push_async_callback(asyncio.to_thread, stop.close)
        context = running("serve", "shop:model", database=self.url, cwd=self.folders[version], noise=noise)
        return (await asyncio.to_thread(stop.enter_context, context)).port, stop

    def follow(self, node: Node, cursor: str) -> None:
        """Follow the changes of things at a node, in two ways."""
        for style in WAYS:
            follower = RowFollower(ThingsWatching.of(node.version), style, lambda: node.port, cursor)
            self.followers.append((follower, asyncio.create_task(follower.run())))

    async def end_followers(self, version: int) -> None:
        """Let the followers of a version catch up with all that there is, and end them."""
        count = (await asyncio.to_thread(rows, self.url, COUNT))[0][0] - self.started
        for follower, task in [*self.followers]:
            if follower.watching.name.endswith(str(version)):
                try:
                    await until(functools.partial(_has_all, follower, count), "", LAG)
                except AssertionError:
                    raise AssertionError(
                        f"{follower} was told {len(follower.told)} of {count}: {follower.faults}, "
                        f"{follower.connections} connections"
                    ) from None
                task.cancel()
                self.followers.remove((follower, task))
                self.ended.append(follower)

    async def migrate(self, *options: str) -> None:
        words = ("migrate", "apply", "shop:model", "--database", self.url, *options)
        done = await asyncio.to_thread(diptych, *words, cwd=self.folders[2])
        assert done.returncode == 0, done.stderr

    async def contract_too_early(self) -> None:
        words = ("migrate", "apply", "shop:model", "--database", self.url, "--allow-loss")
        done = await asyncio.to_thread(diptych, *words, cwd=self.folders[2])
        assert done.returncode == 2 and "has things.note" in done.stderr, done.stderr

    async def phase(self, name: str, seconds: float = SECONDS) -> None:
        self.load.phase = name
        await asyncio.sleep(seconds)


COUNT = "SELECT count(*) FROM diptych_feed WHERE resource = 'things' AND position IS NOT NULL"


def _has_all(follower: RowFollower, count: int) -> bool:
    return len(follower.told) >= count


async def scene_of(scene: Scene, lock: LockWatch) -> None:
    """Version 1 alone, the expansion, both, the contraction, version 2 alone."""
    load, (first, second) = scene.load, scene.nodes
    (first.port, stop_first), (second.port, stop_second) = [await scene.serve(1) for _ in scene.nodes]
    read = Client(f"http://127.0.0.1:{first.port}").get("/things?first=1", prefer="change-cursor")
    start = read.headers["change-cursor"]
    scene.started = (await asyncio.to_thread(rows, scene.url, COUNT))[0][0]
    for node in scene.nodes:
        load.start(node, CLIENTS // 2, CLIENTS)
    scene.follow(first, start)
    await scene.phase("warming up", 1)
    await scene.phase("before")
    with lock:
        async with long_readers(scene.url):
            load.phase = "expanding"
            await scene.migrate("--expand")
            await scene.phase("expanded", SECONDS / 2)
        # a service of version 2 takes the place of one of version 1
        load.phase = "rolling"
        port, _ = await scene.serve(2)
        second.port, second.version = port, 2
        await asyncio.sleep(0.5)
        await asyncio.to_thread(stop_second.close)
        scene.follow(second, start)
        await scene.phase("both")
        await scene.contract_too_early()
        load.phase = "rolling"
        port, _ = await scene.serve(2)
        await scene.end_followers(1)
        first.port, first.version = port, 2
        await asyncio.sleep(0.5)
        await asyncio.to_thread(stop_first.close)
        async with long_readers(scene.url):
            load.phase = "contracting"
            await scene.migrate("--allow-loss")
            await scene.phase("contracted", SECONDS / 2)
    await load.stop()
    await scene.end_followers(2)


async def run_scene(scene: Scene, lock: LockWatch) -> None:
    async with scene.stack:
        try:
            await scene_of(scene, lock)
        finally:
            await scene.load.stop()


WAYS: tuple[Style, ...] = ("rest", "socket")
DURING = ("expanding", "expanded", "both", "contracting", "contracted")


def test_two_versions_side_by_side(project: tuple[Path, Path, str]) -> None:
    scene, machine = Scene(*project), Machine()
    load, lock = scene.load, LockWatch(scene.url)
    asyncio.run(run_scene(scene, lock))
    before, during = load.p99("before"), load.p99(*DURING)
    slowest = max(each for phase in DURING for each in load.latencies[phase])
    tell(
        f"two versions: {load.answers('before', 'rolling', *DURING)} requests, {len(load.written)} writes, "
        f"{sum(len(each.told) for each in scene.ended)} events; p99 before {before * 1000:.0f} ms, "
        f"during {during * 1000:.0f} ms, slowest {slowest * 1000:.0f} ms; by phase "
        f"{ {phase: round(load.p99(phase) * 1000) for phase in load.latencies} }; "
        f"longest wait for a lock {lock.waited * 1000:.0f} ms, "
        f"held { ({table: round(each * 1000) for table, each in lock.held.items()}) } ms ({lock.looks} looks)"
    )
    assert load.failed == []
    assert [*faults(load, scene.url)] == []
    for follower in scene.ended:
        assert [*event_faults(follower, scene.url, scene.started)] == []
    assert {str(follower) for follower in scene.ended} == {f"version {v} by {way}" for v in (1, 2) for way in WAYS}
    assert lock.looks > 100
    assert lock.waited <= machine.limit(STALL)
    assert lock.longest <= machine.limit(LOCK)
    # the short form migrates for most of the time; so nearly all of its slowest requests waited for DDL
    assert during <= machine.limit(3 * max(before, FLOOR) if LONG else max(3 * before, STALL))


# controls: what must be seen


async def without_care(scene: Scene, lock: LockWatch) -> None:
    """DDL that waits for its lock behind a reader, then all of a migration beside a service of version 1."""
    async with scene.stack:
        try:
            node = scene.nodes[0]
            node.port, _ = await scene.serve(1, noise=".")
            scene.load.start(node, CLIENTS, CLIENTS)
            await scene.phase("before", 1)
            with lock:
                reader, owner = [await asyncpg.connect(scene.url) for _ in range(2)]
                async with reader.transaction():
                    await reader.fetch("SELECT 1 FROM things LIMIT 1")
                    altering = asyncio.create_task(owner.execute("ALTER TABLE things ALTER COLUMN size SET DEFAULT 1"))
                    await scene.phase("altering", 4 * STALL)
                await altering
                await reader.close()
                await owner.close()
            assert scene.load.failed == []
            await scene.migrate("--allow-loss", "--ignore-nodes")
            await scene.phase("contracted", 1)
        finally:
            await scene.load.stop()


@pytest.mark.long
def test_what_is_done_without_care_is_seen(project: tuple[Path, Path, str]) -> None:
    scene, lock = Scene(*project), LockWatch(project[2])
    asyncio.run(without_care(scene, lock))
    tell(f"without care: waits of {lock.waited * 1000:.0f} ms, {len(scene.load.failed)} requests failed")
    assert lock.waited > 2 * STALL
    assert [each for each in scene.load.failed if each.startswith("contracted, version 1: 500")]
