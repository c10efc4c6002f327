"""Reads from standbys of PostgreSQL: the same answers, a standby that is lost and comes back, and read tokens."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.postgres.replica import name_of
from diptych.db.store import FeedHead
from diptych.demo.model import model
from diptych.errors import StartError
from tests.support.cluster import Server, cluster
from tests.support.node import Node
from tests.support.running import NewDatabase, Postgres


@pytest.fixture(scope="module")
def servers(postgres: Postgres) -> Iterator[list[Server]]:
    with cluster(postgres, standbys=1) as servers:
        yield servers


def on(servers: list[Server], work: Callable[[Node, Node], Awaitable[None]], **settings: object) -> None:
    """Run work with two nodes: one that reads from the standby, and one that does not."""

    async def run() -> None:
        primary, standby = servers
        nodes = Node(primary.url(), (standby.url(),)), Node(primary.url())
        try:
            for node in nodes:
                await node.start()
            await until(lambda: nodes[0].app.store.replicas[0].is_up)
            await work(*nodes)
        finally:
            for node in nodes:
                await node.app.stop()

    asyncio.run(run())


async def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.02)


async def read_there(node: Node, url: str, token: str = "", **headers: str) -> Any:
    """An answer of the standby, once it has all that was written."""
    patience = time.monotonic() + 30
    while time.monotonic() < patience:
        before = node.app.store.replicas[0].reads
        answer = await node.send("GET", url, token, **headers)
        if node.app.store.replicas[0].reads > before:
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError(f"the standby answered nothing, but {answer}")


def test_a_standby_answers_byte_by_byte_what_the_primary_answers(servers: list[Server]) -> None:
    async def work(node: Node, plain: Node) -> None:
        token = node.token("admin")
        for number in range(7):
            body = {"name": f"same {number}", "email": f"same{number}@example.org"}
            assert (await node.send("POST", "/users", token, body))[0] == 201
        urls = (
            "/users?first=3",
            "/users?first=2&sort=-name",
            "/users?name=same%201",
            "/posts?first=1",
        )
        for url in urls:
            there, here = await read_there(node, url, token), await plain.send("GET", url, token)
            assert there == here, url
            _, headers, _ = here
            tag = headers["etag"]
            assert (await read_there(node, url, token, if_none_match=tag))[0] == 304
        _, headers, _ = await plain.send("GET", "/users?first=3", token)
        following = headers["link"].partition("<")[2].partition(">")[0]
        assert await read_there(node, following, token) == await plain.send("GET", following, token)
        missing = "/users/00000000-0000-7000-8000-000000000000"
        assert (await node.send("GET", missing, token))[0] == 404

    on(servers, work)


def test_a_lost_standby_is_left_out_at_once_and_comes_back_by_itself(servers: list[Server]) -> None:
    async def work(node: Node, _: Node) -> None:
        await node.send("POST", "/users", node.token("admin"), {"name": "l", "email": "lost@example.org"})
        await read_there(node, "/users?first=1")
        servers[1].kill()
        for _number in range(30):
            begun = time.monotonic()
            assert (await node.send("GET", "/users?first=1"))[0] == 200
            assert time.monotonic() - begun < 2
        await until(lambda: not node.app.store.replicas[0].is_up)
        await asyncio.to_thread(servers[1].start)
        await until(lambda: node.app.store.replicas[0].is_up)
        await read_there(node, "/users?first=1")

    on(servers, work)


def test_a_standby_that_hangs_holds_nobody_up_for_long(servers: list[Server]) -> None:
    async def work(node: Node, _: Node) -> None:
        await read_there(node, "/users?first=1")
        servers[1].signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            answers = await asyncio.gather(*(node.send("GET", f"/users?first={n}") for n in range(1, 6)))
            assert {status for status, _, _ in answers} == {200}
            assert time.monotonic() - begun < 5
            await until(lambda: not node.app.store.replicas[0].is_up)
        finally:
            servers[1].signal(signal.SIGCONT)
        await until(lambda: node.app.store.replicas[0].is_up)

    on(servers, work)


def test_a_server_that_is_no_standby_answers_nothing(servers: list[Server]) -> None:
    async def work() -> None:
        node = Node(servers[0].url(), (servers[0].url(),))
        await node.start()
        try:
            await asyncio.sleep(0.5)
            assert (await node.send("GET", "/users?first=1"))[0] == 200
            (replica,) = node.app.store.replicas
            assert (replica.is_up, replica.reads) == (False, 0)
        finally:
            await node.app.stop()

    asyncio.run(work())


def test_a_token_is_enough_for_a_standby_and_covers_what_was_seen(servers: list[Server]) -> None:
    async def work(node: Node, plain: Node) -> None:
        token = node.token("admin")
        body = {"name": "t", "email": "token@example.org"}
        _, headers, made = await plain.send("POST", "/users", token, body, prefer="read-token")
        first = headers["read-token"]
        heads = 0
        head = node.app.store.head

        async def counted() -> FeedHead:
            nonlocal heads
            heads += 1
            return await head()

        await read_there(node, f"/users/{made['id']}", token)
        node.app.store.head = counted  # type: ignore[method-assign]  # a spy
        status, headers, found = await node.send("GET", f"/users/{made['id']}", token, read_token=first)
        assert (status, found["name"], heads) == (200, "t", 0)
        assert headers["read-token"] != first and headers["cache-control"].startswith("private")
        together = f"{first}, {headers['read-token']}"
        assert (await node.send("GET", "/users?first=1", token, read_token=together))[0] == 200
        refused, headers, _ = await node.send("GET", "/users/none", token, read_token=first)
        assert refused in (400, 404) and "read-token" in headers

    on(servers, work)


def test_a_token_covers_a_change_that_was_seen_before_it_had_a_position(postgres: Postgres) -> None:
    """One standby has a change whose position it lacks, the other lacks the change: who has seen it goes to neither."""

    async def work(servers: list[Server]) -> None:
        primary, ahead, behind = servers
        node = Node(primary.url(), (ahead.url(), behind.url()))
        await node.start()
        try:
            token = node.token("admin")
            body = {"name": "old", "email": "position@example.org"}
            _, headers, made = await node.send("POST", "/users", token, body, prefer="read-token")
            url, carried = f"/users/{made['id']}", headers["read-token"]
            await until(lambda: all(replica.is_up for replica in node.app.store.replicas))
            for standby in (ahead, behind):
                await asyncio.to_thread(_wait_for, standby, "old")
            await asyncio.to_thread(_see_without_position, *servers)

            async def read(sent: str) -> tuple[str, str]:
                _, headers, found = await node.send("GET", url, token, read_token=sent)
                return found["name"], headers["read-token"]

            reads = [await read(carried) for _ in range(8)]
            assert {name for name, _ in reads} == {"old", "new"}, "each standby has answered"
            seen = [sent for name, sent in reads if name == "new"]
            assert [(await read(sent))[0] for sent in seen for _ in range(4)] == ["new"] * 4 * len(seen)
        finally:
            await node.app.stop()

    with cluster(postgres, standbys=2) as servers:
        asyncio.run(work(servers))


def _wait_for(standby: Server, name: str) -> None:
    end = time.monotonic() + 20
    while not standby.execute(f"SELECT FROM users WHERE name = '{name}'"):
        assert time.monotonic() < end
        time.sleep(0.01)


def _see_without_position(primary: Server, ahead: Server, behind: Server) -> None:
    """Make a change, and stop one standby before it, and the other after it and before it has a position."""
    _pause(behind)

    async def work() -> None:
        connection = await asyncpg.connect(primary.url())
        try:
            await connection.execute("SELECT pg_advisory_lock(736122047, 'diptych_feed'::regclass::oid::integer)")
            await connection.execute("UPDATE users SET name = 'new'")
            await asyncio.to_thread(_wait_for, ahead, "new")
            await asyncio.to_thread(_pause, ahead)
        finally:
            await connection.close()

    asyncio.run(work())


def _pause(standby: Server) -> None:
    standby.execute("SELECT pg_wal_replay_pause()")
    while standby.execute("SELECT pg_get_wal_replay_pause_state()")[0][0] != "paused":
        time.sleep(0.01)


def test_a_node_without_replicas_gives_no_token_with_a_read(servers: list[Server]) -> None:
    """It reads the newest state, which the token that was sent does not cover."""

    async def work(node: Node, plain: Node) -> None:
        token = node.token("admin")
        body = {"name": "old", "email": "plain@example.org"}
        _, headers, made = await plain.send("POST", "/users", token, body, prefer="read-token")
        url, sent = f"/users/{made['id']}", headers["read-token"]
        await read_there(node, url, token)
        await asyncio.to_thread(servers[1].delay, 60)
        try:
            assert (await plain.send("PATCH", url, token, {"name": "new"}))[0] == 200
            assert (await node.send("GET", url, token, read_token=sent))[2]["name"] == "old", "who has seen no more"
            _, headers, found = await plain.send("GET", url, token, read_token=sent)
            assert (found["name"], headers.get("read-token")) == ("new", None)
            assert (await node.send("GET", url, token))[2]["name"] == "new"
        finally:
            await asyncio.to_thread(servers[1].delay, 0)

    on(servers, work)


def test_what_is_no_token_is_refused_in_both_styles(servers: list[Server]) -> None:
    async def work(node: Node, _: Node) -> None:
        for sent in ("x", ", ".join(["x"] * 17)):
            status, _headers, answer = await node.send("GET", "/users", read_token=sent)
            assert (status, answer["code"]) == (400, "BAD_REQUEST")
            query = {"query": "{ users { name } }"}
            assert (await node.send("POST", "/graphql", "", query, read_token=sent))[0] in (200, 400)

    on(servers, work)


def test_servers_that_are_killed_leave_no_shared_memory(postgres: Postgres) -> None:
    with cluster(postgres, standbys=1) as servers:
        processes = [(server.folder / "postmaster.pid").read_text().splitlines() for server in servers]
        mapped = "".join(Path(f"/proc/{lines[0]}/maps").read_text() for lines in processes)
    assert "/dev/shm/PostgreSQL." not in mapped, "it would be left behind"
    segments = {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()}
    assert not segments & {lines[6].split()[1] for lines in processes}


def test_sqlite_has_no_replicas_and_without_triggers_there_are_none(
    new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    async def work(database: str, message: str, *, triggers: bool) -> None:
        node = Node(database, ("postgresql://127.0.0.1:1/x",), triggers=triggers)
        with pytest.raises(StartError, match=message):
            await node.start()

    asyncio.run(work(new_sqlite(), "standbys of PostgreSQL", triggers=True))
    asyncio.run(work(postgres.create(), "need the setting triggers", triggers=False))


def test_metrics_name_a_replica_by_its_hosts_only() -> None:
    assert name_of("postgresql://app:secret@a:5432,b/tasks") == "a:5432,b"
    assert name_of("postgresql:///tasks?host=/var/run/postgresql") == "/var/run/postgresql"
    assert model is not None and connect(Config(database="sqlite:///:memory:")).replicas == ()
