"""Creations that come together share a commit; each is made once or not at all, and knows which."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from diptych.db.postgres import batches, writer
from diptych.db.postgres.link import Link
from diptych.db.postgres.store import PostgresStore
from diptych.db.script import ResultRow, Step
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from tests.support.behind_pooler import needs_own_session
from tests.support.effort import scaled
from tests.support.running import Postgres
from tests.unit.db.postgres.test_read_batches import CALLS, sizes

pytestmark = needs_own_session(reason="a change there is a transaction with an id, not a statement that commits itself")
SQL = """
INSERT INTO things SELECT $1::text::uuid, $2::text FROM pg_sleep(CASE $2::text WHEN 'slow' THEN 0.3 ELSE 0 END)
WHERE $2::text <> 'refused' RETURNING id, convert_to(name, 'UTF8')
"""
FOUND = "SELECT id, convert_to(name, 'UTF8') FROM things WHERE id = $1::text::uuid"


def id_of(number: int) -> str:
    return str(UUID(int=number + 1))


class Things:
    """A table of things with unique names."""

    def __init__(self, store: PostgresStore, admin: asyncpg.Connection) -> None:
        self.store, self.admin = store, admin
        self.noted = 0
        """Changes of which this process told its followers."""
        changed = store._changed

        def noted() -> None:
            self.noted += 1
            changed()

        store._changed = noted  # type: ignore[method-assign]

    async def make(self, number: int, name: str, caller: str = "ann") -> ResultRow:
        CALLER.set(caller)
        step = Step(SQL, (id_of(number), name), makes=id_of(number))
        return await self.store.change(step, lambda: Step(FOUND, (id_of(number),)))

    async def together(self, names: list[str]) -> list[bytes | None]:
        """The texts of things that are made in one moment, after their statement was found to be fast."""
        for number in range(3):
            await asyncio.create_task(self.make(-10 - number + (1 << 64), f"first {number} {random.random()}"))
        tasks = [asyncio.create_task(self.make(number, name)) for number, name in enumerate(names)]
        return [None if row is None else row[1] for row in await asyncio.gather(*tasks)]

    async def there(self) -> dict[str, str]:
        """The names of all that was made, by their ids."""
        rows = await self.admin.fetch("SELECT id::text, name FROM things WHERE name NOT LIKE 'first%'")
        return {row[0]: row[1] for row in rows}


def served(postgres: Postgres, work: Callable[[Things], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        url = postgres.create()
        store, admin = PostgresStore(url, **settings), await asyncpg.connect(url)
        await admin.execute("CREATE TABLE things (id uuid PRIMARY KEY, name text UNIQUE)")
        await store.open(model)
        try:
            await work(Things(store, admin))
            assert store.pool.semaphore.free == store.pool.size, "all permits are back"
        finally:
            await store.close()
            await admin.close()

    asyncio.run(run())


def test_what_comes_together_is_committed_together(postgres: Postgres) -> None:
    async def work(things: Things) -> None:
        names = [f"n{number}" for number in range(CALLS)]
        with sizes() as found:
            assert await things.together(names) == [name.encode() for name in names]
        assert sum(found) == CALLS - 1
        assert max(found) == batches._MOST
        assert await things.there() == {id_of(number): name for number, name in enumerate(names)}
        assert things.noted == 3 + CALLS, "followers hear of each"
        commits = await things.admin.fetchval("SELECT count(DISTINCT xmin::text) FROM things WHERE name LIKE 'n%'")
        assert commits == len(found) + 1

    served(postgres, work)


def test_one_that_changes_nothing_says_so_and_the_others_are_made(postgres: Postgres) -> None:
    async def work(things: Things) -> None:
        names = ["refused" if number % 3 == 1 else f"n{number}" for number in range(CALLS)]
        assert await things.together(names) == [None if name == "refused" else name.encode() for name in names]
        assert await things.there() == {id_of(n): name for n, name in enumerate(names) if name != "refused"}

    served(postgres, work)


def test_one_that_breaks_a_constraint_takes_nobody_along(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were rolled back with it say that they changed nothing, and run again by themselves."""

    async def work(things: Things) -> None:
        names = [f"n{number % 30}" for number in range(CALLS)]
        ended: list[asyncpg.Connection] = []
        monkeypatch.setattr(asyncpg.Connection, "terminate", ended.append)
        made = await things.together(names)
        there = await things.there()
        for number, (name, row) in enumerate(zip(names, made, strict=True)):
            assert row in (None, name.encode())
            assert (id_of(number) in there) == (row is not None)
        assert not ended, "its outcome was known"

    served(postgres, work)


CLOSED = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(
    "error", [CLOSED, ConnectionResetError(), asyncio.CancelledError()], ids=lambda e: type(e).__name__
)
def test_what_became_of_a_batch_whose_connection_breaks_is_looked_for(
    postgres: Postgres, committed: bool, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(things: Things) -> None:
        broken = 0
        running = Link.read_many

        async def breaking(self: Link, sql: str, parameters: Any) -> Any:
            nonlocal broken
            broken += 1
            if broken > 2:
                return await running(self, sql, parameters)
            if committed:
                await running(self, sql, parameters)
            raise error

        monkeypatch.setattr(Link, "read_many", breaking)
        names = [f"n{number}" for number in range(CALLS)]
        made = await things.together(names)
        there = await things.there()
        assert broken >= 2
        assert [id_of(number) in there for number in range(CALLS)] == [row is not None for row in made]
        assert (None in made) is not committed

    served(postgres, work)


@pytest.mark.parametrize("runs", [1, CALLS], ids=["alone", "batches"])
def test_what_cannot_be_looked_for_is_refused(postgres: Postgres, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what became of it, as long as the database is gone."""

    async def work(things: Things) -> None:
        await things.together(["x"])

        async def broken(*_: Any) -> Any:
            raise CLOSED

        async def gone(*_: Any) -> Any:
            raise ConnectionRefusedError("nobody listens there")

        monkeypatch.setattr(Link, "read_many", broken)
        monkeypatch.setattr(Link, "row", broken)
        monkeypatch.setattr(writer, "_inquire", gone)
        tasks = [asyncio.create_task(things.make(number + 50, f"n{number}")) for number in range(runs)]
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Refusal}
        assert {answer.code for answer in answers if isinstance(answer, Refusal)} == {Code.UNAVAILABLE}

    served(postgres, work)


def test_no_change_is_lost_or_doubled_when_backends_are_ended(postgres: Postgres) -> None:
    async def work(things: Things) -> None:
        await things.together(["x"])
        made: dict[int, ResultRow | BaseException] = {}

        async def one(number: int) -> None:
            await asyncio.sleep(number * 0.0005)
            name = "slow" if number % 97 == 0 else f"n{number}"
            task = asyncio.create_task(things.make(number + 100, name, f"caller {number % 5}"))
            (made[number],) = await asyncio.gather(task, return_exceptions=True)

        tasks = [asyncio.create_task(one(number)) for number in range(scaled(5_000, 600))]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0.03)
            await things.admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%things%' "
                "ORDER BY random() LIMIT 2"
            )
        there = await things.there()
        for number, row in made.items():
            if not isinstance(row, BaseException):
                assert (id_of(number + 100) in there) == (row is not None), number
        assert sum(row is not None and not isinstance(row, BaseException) for row in made.values()) > 100

    served(postgres, work)


def test_a_caller_that_goes_away_takes_nobody_along(postgres: Postgres) -> None:
    async def work(things: Things) -> None:
        await things.together(["x"])
        tasks = [asyncio.create_task(things.make(number + 50, f"n{number}")) for number in range(CALLS)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        rows = await asyncio.gather(*tasks, return_exceptions=True)
        there = await things.there()
        for number, row in enumerate(rows):
            if number % 3:
                assert not isinstance(row, BaseException)
                assert (row is not None) == (id_of(number + 50) in there)
                assert row is not None

    served(postgres, work)
