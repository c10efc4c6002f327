"""Rules that look at other rows hold also where changes are made side by side: what each store promises, raced for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

import asyncpg
import pytest

from diptych.api.reply import Reply
from diptych.compile.locks import Locks
from diptych.db.postgres.link import Link
from diptych.db.postgres.store import PostgresStore
from diptych.serve.http.request import Request
from tests.contract.http.data import ANN
from tests.contract.writes import club
from tests.support.behind_pooler import needs_own_session
from tests.support.effort import scaled
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase, Postgres

ROUNDS = scaled(60, 3)
AT_ONCE = 16


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(club.model, new_database(), runner) as found:
        yield found


@pytest.fixture(scope="module")
def side_by_side(postgres: Postgres) -> Iterator[Service]:
    """A service on PostgreSQL."""
    with asyncio.Runner() as runner, in_process(club.model, postgres.create(), runner) as found:
        yield found


async def ask(service: Service, method: str, path: str, body: Any = None) -> Reply:
    async def read(most: int) -> bytes:
        return json.dumps(body).encode()

    bearer = b"Bearer " + service.token(ANN).encode()
    headers = {b"authorization": bearer, b"content-type": b"application/json"}
    return await service.handler.handle(Request(method, path, "", headers, read))


def make(service: Service, path: str, body: Any) -> str:
    reply = service.runner.run(ask(service, "POST", path, body))
    assert reply.status == 201, reply.body
    return str(json.loads(reply.body)["id"])


def at_once(service: Service, *asked: Awaitable[Reply]) -> list[Reply]:
    async def all_of_them() -> list[Reply]:
        return list(await asyncio.gather(*asked))

    return service.runner.run(all_of_them())


def statuses(replies: Sequence[Reply]) -> list[int]:
    return sorted(reply.status for reply in replies)


@pytest.mark.parametrize("how", ["one", "array", "action", "mutation"])
def test_of_many_at_once_exactly_one_is_the_first(service: Service, how: str) -> None:
    for round_ in range(ROUNDS):
        user = make(service, "/users", {"name": f"u{round_}"})
        body = {"ownerId": user, "word": "w"}
        document = f'mutation {{ a: createOnce(input: {{ownerId: "{user}", word: "w"}}) {{ id }} }}'
        wanted = {
            "one": ("/onces", body),
            "array": ("/onces", [body]),
            "action": (f"/users/{user}/join", {}),
            "mutation": ("/graphql", {"query": document}),
        }[how]
        replies = at_once(service, *(ask(service, "POST", *wanted) for _ in range(AT_ONCE)))
        assert len(service.rows(f"/onces?ownerId={user}", token=service.token(ANN))) == 1, f"round {round_}"
        if how != "mutation":
            made = 200 if how == "action" else 201
            assert statuses(replies) == sorted([made] + [403] * (AT_ONCE - 1))


def test_of_two_changes_that_look_at_each_other_one_is_refused(service: Service) -> None:
    """Nobody closes an account with a once, and nobody gets one in a closed account."""
    both = 0
    for round_ in range(ROUNDS * 2):
        user = make(service, "/users", {"name": f"c{round_}"})
        create = ask(service, "POST", "/onces", {"ownerId": user, "word": "w"})
        close = ask(service, "PATCH", f"/users/{user}", {"open": False})
        replies = at_once(service, *([create, close] if round_ % 2 else [close, create]))
        both += sum(reply.status < 300 for reply in replies) == 2
        assert 403 in statuses(replies), f"round {round_}: {statuses(replies)}"
    assert not both


def test_what_a_multiple_change_moves_and_watches_counts_as_one(side_by_side: Service) -> None:
    """One request opens an account and looks at a page's folder; another locks that and looks at the account."""
    service = side_by_side
    for round_ in range(ROUNDS):
        user = make(service, "/users", {"name": "m"})
        folder = make(service, "/folders", {})
        page = make(service, "/pages", {"folderId": folder, "title": "t"})
        one = (
            f'mutation {{ a: updateUser(id: "{user}", patch: {{open: false}}) {{ id }} '
            f'b: updatePage(id: "{page}", patch: {{title: "x"}}) {{ id }} }}'
        )
        other = (
            f'mutation {{ a: updateFolder(id: "{folder}", patch: {{locked: true}}) {{ id }} '
            f'b: createOnce(input: {{ownerId: "{user}", word: "w"}}) {{ id }} }}'
        )
        replies = at_once(service, *(ask(service, "POST", "/graphql", {"query": each}) for each in (one, other)))
        done = [json.loads(reply.body)["data"] is not None for reply in replies]
        assert done != [True, True], f"round {round_}"


# a row that others change while a change waits for it


@pytest.mark.parametrize("locked, status", [(True, 403), (False, 200)])
def test_a_row_that_was_waited_for_is_held_against_other_rows_as_they_are_then(
    side_by_side: Service, locked: bool, status: int
) -> None:
    service = side_by_side
    folder = make(service, "/folders", {})
    page = make(service, "/pages", {"folderId": folder, "title": "t"})
    store = service.app.store
    assert isinstance(store, PostgresStore)

    async def race() -> Reply:
        other = await asyncpg.connect(store.url)
        try:
            await other.execute(f"BEGIN; UPDATE pages SET hits = 1 WHERE id = '{page}'")
            await other.execute(f"UPDATE folders SET locked = {locked} WHERE id = '{folder}'")
            asked = asyncio.create_task(ask(service, "PATCH", f"/pages/{page}", {"title": "new"}))
            await _until_waiting(other)
            await other.execute("COMMIT")
            return await asked
        finally:
            await other.close()

    reply = service.runner.run(race())
    assert reply.status == status, reply.body


async def _until_waiting(connection: asyncpg.Connection) -> None:
    """Until someone waits for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(10):
        while not await connection.fetchval(query):
            await asyncio.sleep(0.005)


# what it costs


class Statements:
    """The statements that a store sends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        row, execute = Link.row, asyncpg.Connection.execute

        async def counted_row(link: Link, sql: str, parameters: Any) -> Any:
            self.sent.append(sql)
            return await row(link, sql, parameters)

        async def counted(connection: Any, sql: str, *values: Any, **options: Any) -> Any:
            self.sent.append(sql)
            return await execute(connection, sql, *values, **options)

        monkeypatch.setattr(Link, "row", counted_row)
        monkeypatch.setattr(asyncpg.Connection, "execute", counted)

    def take(self) -> list[str]:
        """Their first words since the last time; of those of the feed, nothing."""
        found = [sql for sql in self.sent if "diptych" not in sql]
        self.sent.clear()
        return ["lock" if "advisory" in each else each.split()[0] for each in found]


@needs_own_session(reason="a change there is a transaction with an id, not a statement that commits itself")
def test_plain_changes_take_no_lock_and_send_no_further_statement(
    side_by_side: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = side_by_side
    user = make(service, "/users", {"name": "plain"})
    statements = Statements(monkeypatch)
    post = make(service, "/posts", {"title": "t", "ownerId": user})
    assert statements.take() == ["INSERT"]
    for method, path, body in (("PATCH", f"/posts/{post}", {"title": "u"}), ("PATCH", f"/users/{user}", {"name": "v"})):
        assert service.runner.run(ask(service, method, path, body)).status == 200
        assert statements.take() == ["BEGIN", "WITH", "COMMIT"]
    page = make(service, "/pages", {"folderId": make(service, "/folders", {}), "title": "t"})
    assert statements.take() == ["INSERT", "INSERT"]
    assert service.runner.run(ask(service, "PATCH", f"/pages/{page}", {"title": "u"})).status == 200
    assert statements.take() == ["BEGIN", "WITH", "COMMIT"], "who only watches takes no lock"
    make(service, "/onces", {"ownerId": user, "word": "w"})
    assert statements.take() == ["lock", "INSERT", "COMMIT"], "the lock comes with the BEGIN"


def test_who_cannot_get_the_lock_in_time_is_told_to_try_again(side_by_side: Service) -> None:
    service = side_by_side
    user = make(service, "/users", {"name": "busy"})
    store = service.app.store
    assert isinstance(store, PostgresStore)

    async def race() -> Reply:
        other = await asyncpg.connect(store.url)
        try:
            await other.execute("BEGIN; " + Locks(moved=frozenset({"onces"})).alone)
            return await ask(service, "POST", "/onces", {"ownerId": user, "word": "w"})
        finally:
            await other.close()

    reply = service.runner.run(race())
    assert reply.status == 503 and json.loads(reply.body)["code"] == "UNAVAILABLE"
    make(service, "/onces", {"ownerId": user, "word": "w"})
