"""The writers of both stores: what fails, fails alone; what is told was kept; nobody waits forever.

Scripts are written by hand here and run on the stores themselves. `test_deadlines.py` has clients that go away, and
`tests/proof/long_running` has the long proofs.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import apsw
import asyncpg
import pytest

from diptych import Model, Resource, Unique, grant
from diptych.compile.plan import Plan
from diptych.config import Config
from diptych.db import idempotency as replays
from diptych.db.connect import connect
from diptych.db.idempotency import IdempotencyClaim, StoredReply
from diptych.db.postgres.store import PostgresStore
from diptych.db.script import Again, Script, Step, Violation
from diptych.db.sqlite import writer as sqlite_writer
from diptych.db.sqlite.store import SqliteStore
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.live.retention import Retention
from tests.support.behind_pooler import needs_own_session
from tests.support.running import NewDatabase, Postgres, with_tables

ID = "00000000-0000-7000-8000-{:012x}"
SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

READ = {"?": "SELECT count(*) FROM things, things", "$": "SELECT convert_to(pg_sleep(0.02)::text, 'UTF8')"}


class Thing(Resource):
    name: Annotated[str, Unique()]

    access = (grant("read"),)


model = Model(Thing)


class Shop:
    """An open store with one table, and scripts that talk to it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sign = store.dialect.placeholder

    def insert(self, number: int, name: str = "") -> Step:
        cast, mark = ("::uuid", ", pg_current_xact_id()::text") if self.sign == "$" else ("", "")
        sql = f"INSERT INTO things (id, name) VALUES ({self.sign}1{cast}, {self.sign}2) RETURNING id{mark}"
        return Step(sql, (ID.format(number), name or f"n{number}"), marked=bool(mark))

    def adding(self, number: int, name: str = "") -> Callable[[], Script[int]]:
        """A script that adds a row."""

        def script() -> Script[int]:
            try:
                yield self.insert(number, name)
            except Violation as violation:
                raise Refusal(Code.CONFLICT, f"{violation.kind} {violation.table} {violation.columns}") from None
            return number

        return script

    def failing(self, number: int, error: Exception) -> Callable[[], Script[int]]:
        """A script that adds a row and then fails."""

        def script() -> Script[int]:
            yield self.insert(number)
            raise error

        return script

    def lasting(self, number: int) -> Callable[[], Script[int]]:
        """A script that adds a row and then takes too long, at something that changes rows."""

        def script() -> Script[int]:
            yield self.insert(number)
            forever = f"UPDATE things SET name = ({SLOW})" if self.sign == "?" else "SELECT pg_sleep(60)"
            yield Step(forever, ())
            return number

        return script

    async def numbers(self) -> set[int]:
        """What is there, as someone else sees it."""

        def script() -> Script[str]:
            together = "group_concat" if self.sign == "?" else "string_agg"
            row = yield Step(f"SELECT {together}(substr(CAST(id AS text), 25), ',') FROM things", ())
            return row[0] or "" if row else ""

        return {int(each, 16) for each in (await self.store.write(script)).split(",") if each}

    async def several(self, *scripts: Callable[[], Script[Any]]) -> list[Any]:
        """What becomes of scripts that come at the same time; codes of what was refused."""
        gathered = await asyncio.gather(*map(self.store.write, scripts), return_exceptions=True)
        return [each.code if isinstance(each, Refusal) else each for each in gathered]


Work = Callable[[Shop], Awaitable[None]]


def on(database: str, work: Work, **settings: Any) -> None:
    """Do something with a store that is open meanwhile. PostgreSQL's pool must be whole in the end."""

    async def main() -> None:
        store = connect(Config(database=with_tables(database, model), **settings))
        await store.open(model)
        try:
            await work(Shop(store))
            if isinstance(store, PostgresStore):
                await whole_again(store)
        finally:
            await store.close()

    asyncio.run(main(), debug=False)


async def whole_again(store: PostgresStore) -> None:
    """All connections can be had at once, and none is in a transaction."""
    await until(lambda: store.pool.idle == store.pool.size)
    links = await asyncio.gather(*(store.pool.take() for _ in range(store.pool.size)))
    try:
        for link in links:
            assert not link.connection.is_in_transaction()
            state = await link.connection.fetchval("SELECT pg_current_xact_id_if_assigned()")
            assert state is None
            assert await link.connection.fetchval("SHOW statement_timeout") == f"{int(store.timeout * 1000)}ms".replace(
                "000ms", "s"
            )
    finally:
        for link in links:
            store.pool.give(link)


async def until(true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.005)


@contextmanager
def locked(database: str) -> Iterator[None]:
    """Someone else has the write lock of a SQLite file."""
    other = apsw.Connection(database.removeprefix("sqlite:///"))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


# both stores


def test_what_fails_fails_alone(database: str) -> None:
    async def work(shop: Shop) -> None:
        boom = RuntimeError("boom")
        await shop.store.write(shop.adding(7, "taken"))
        found = await shop.several(
            shop.adding(1),
            shop.failing(2, Refusal(Code.FORBIDDEN, "no")),
            shop.adding(3),
            shop.adding(4, "taken"),
            shop.failing(5, boom),
            shop.adding(6),
        )
        assert found == [1, Code.FORBIDDEN, 3, Code.CONFLICT, boom, 6]
        assert await shop.numbers() == {1, 3, 6, 7}

    on(database, work)


def test_a_violation_names_its_table_and_columns(database: str) -> None:
    async def work(shop: Shop) -> None:
        await shop.store.write(shop.adding(1))
        with pytest.raises(Refusal, match=r"unique things \('name',\)"):
            await shop.store.write(shop.adding(2, "n1"))
        with pytest.raises(Refusal, match=r"unique things \('id',\)"):
            await shop.store.write(shop.adding(1, "other"))

    on(database, work)


@pytest.mark.slow
def test_one_that_takes_too_long_is_a_timeout_and_the_others_are_kept(database: str) -> None:
    async def work(shop: Shop) -> None:
        others = [shop.adding(number) for number in range(1, 20)]
        found = await shop.several(*others[:10], shop.lasting(99), *others[10:])
        assert found == [*range(1, 11), Code.TIMEOUT, *range(11, 20)]
        assert await shop.numbers() == set(range(1, 20))

    begun = time.monotonic()
    on(database, work, statement_timeout=0.5)
    assert time.monotonic() - begun < 5


def test_a_script_that_looked_at_what_others_changed_runs_again(database: str) -> None:
    async def work(shop: Shop) -> None:
        runs = 0

        def script() -> Script[int]:
            nonlocal runs
            runs += 1
            yield shop.insert(runs)
            if runs < 3:
                raise Again
            return runs

        assert await shop.several(script, shop.adding(7), shop.adding(8)) == [3, 7, 8]
        assert await shop.numbers() == {3, 7, 8}

        def never() -> Script[int]:
            yield shop.insert(9)
            raise Again

        assert await shop.several(never, shop.adding(10)) == [Code.UNAVAILABLE, 10]
        assert await shop.numbers() == {3, 7, 8, 10}

    on(database, work)


def test_whoever_is_cancelled_leaves_nothing_behind(database: str) -> None:
    """Many writers, each cancelled at some moment: what was told is there, and the store is as good as new."""

    async def work(shop: Shop) -> None:
        told: set[int] = set()
        dice = random.Random(7)
        begun = time.monotonic()
        await asyncio.gather(*(shop.store.write(shop.adding(number)) for number in range(9_000, 9_040)))
        patience = time.monotonic() - begun  # on this machine, as busy as it is

        async def one(number: int) -> None:
            with suppress(asyncio.TimeoutError, Refusal):
                async with asyncio.timeout(dice.expovariate(1 / patience)):
                    kind = dice.random()
                    if kind < 0.1:
                        await shop.store.run(Plan(READ[shop.sign], (), ()), ())
                    elif kind < 0.2:
                        await shop.store.write(shop.failing(number, Refusal(Code.CONFLICT, "no")))
                    elif kind < 0.4:
                        await in_session(shop, number)
                        told.add(number)
                    else:
                        told.add(await shop.store.write(shop.adding(number)))

        for start in range(1, 801, 40):
            await asyncio.gather(*(one(number) for number in range(start, start + 40)))
        assert told <= await shop.numbers()
        assert 20 < len(told) < 780
        assert await shop.store.write(shop.adding(5_000)) == 5_000

    on(database, work, pool_size=5)


async def in_session(shop: Shop, number: int) -> None:
    session = await shop.store.session()
    try:
        await session.drive(shop.adding(number))
        await session.commit()
    finally:
        await session.end()


def test_nobody_hears_of_success_before_the_commit(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is held up: meanwhile no one has an answer."""
    early: list[bool] = []
    tasks: list[asyncio.Task[int]] = []

    def held_up() -> bool:
        time.sleep(0.1)  # in the writer's thread
        early.append(any(task.done() for task in tasks))
        return False

    execute = asyncpg.Connection.execute

    async def slowly(self: Any, query: str, *arguments: Any, **more: Any) -> str:
        if query == "COMMIT":
            await asyncio.sleep(0.1)
            early.append(any(task.done() for task in tasks))
        return str(await execute(self, query, *arguments, **more))

    async def work(shop: Shop) -> None:
        await shop.store.write(shop.adding(1))
        together = isinstance(shop.store, SqliteStore)
        if together:
            connection_of(shop).set_commit_hook(held_up)
        else:
            monkeypatch.setattr(asyncpg.Connection, "execute", slowly)
        for numbers in ([2], [3, 4, 5]) if together else ([2],):
            tasks[:] = [asyncio.create_task(shop.store.write(shop.adding(number))) for number in numbers]
            assert await asyncio.gather(*tasks) == numbers
            tasks.clear()
        monkeypatch.undo()
        if together:
            connection_of(shop).set_commit_hook(None)

    on(database, work)
    assert early and not any(early)


# sessions


def test_a_session_goes_on_after_a_refusal_without_the_part_that_failed(database: str) -> None:
    async def work(shop: Shop) -> None:
        session = await shop.store.session()
        try:
            await session.drive(shop.adding(1))
            for failing in (shop.failing(2, Refusal(Code.CONFLICT, "no")), shop.adding(3, "n1")):
                with pytest.raises(Refusal):
                    await session.drive(failing)
            with pytest.raises((apsw.Error, asyncpg.PostgresError)):
                await session.rows("SELECT no_such_column FROM things", ())
            assert await session.rows("SELECT name FROM things", ()) == [("n1",)]
            await session.drive(shop.adding(4))
            await session.commit()
        finally:
            await session.end()
        assert await shop.numbers() == {1, 4}

    on(database, work)


def test_what_a_session_does_not_commit_is_undone(database: str) -> None:
    async def work(shop: Shop) -> None:
        session = await shop.store.session()
        await session.drive(shop.adding(1))
        await session.end()
        await session.end()
        assert await shop.numbers() == set()

    on(database, work)


def test_a_session_whose_transaction_was_ended_inside_is_over(postgres: Postgres) -> None:
    async def work(shop: Shop) -> None:
        session = await shop.store.session()
        try:
            with pytest.raises(RuntimeError, match="ended by a statement"):
                await session.rows("COMMIT", ())
            with pytest.raises((RuntimeError, Refusal)):
                await session.drive(shop.adding(1))
        finally:
            await session.end()
        assert await shop.numbers() == set()

    on(postgres.create(), work)


def test_a_statement_that_would_end_its_transaction_is_refused(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        session = await shop.store.session()
        try:
            await session.drive(shop.adding(1))
            for statement in ("COMMIT", "ROLLBACK", "BEGIN"):
                with pytest.raises(ValueError, match="no BEGIN, COMMIT or ROLLBACK"):
                    await session.rows(statement, ())
        finally:
            await session.end()
        assert await shop.numbers() == set(), "what was not committed is undone"

    on(new_sqlite(), work)


def test_settings_that_a_session_made_do_not_outlive_it(postgres: Postgres) -> None:
    async def work(shop: Shop) -> None:
        session = await shop.store.session()
        await session.rows("SET statement_timeout = 7000", ())
        await session.commit()
        await session.end()
        session = await shop.store.session()
        (after,) = await session.rows("SHOW statement_timeout", ())
        await session.end()
        assert after != ("7s",)

    on(postgres.create(), work, pool_size=1)


def test_a_session_has_a_budget_of_time(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        session = await shop.store.session()
        await session.drive(shop.adding(1))
        assert await shop.store.write(shop.adding(2)) == 2  # it waits until the session's time is over
        with pytest.raises(Refusal) as refused:
            await session.commit()
        assert refused.value.code is Code.TIMEOUT
        await session.end()
        assert await shop.numbers() == {2}

    on(new_sqlite(), work, statement_timeout=0.3)


# SQLite


def writer_of(shop: Shop) -> sqlite_writer.Writer:
    assert isinstance(shop.store, SqliteStore)
    return shop.store._require_writer()


def connection_of(shop: Shop) -> apsw.Connection:
    """The connection of the writer, which has worked before."""
    found = writer_of(shop)._connection
    assert found is not None
    return found.db


def test_what_comes_together_is_committed_together(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        await shop.store.write(shop.adding(1))
        commits = 0

        def committed() -> bool:
            nonlocal commits
            commits += 1
            return False

        connection_of(shop).set_commit_hook(committed)
        assert await shop.several(*map(shop.adding, range(2, 502))) == list(range(2, 502))
        connection_of(shop).set_commit_hook(None)
        assert commits < 20
        assert connection_of(shop).pragma("synchronous") == 2

    on(new_sqlite(), work)


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError, apsw.NoMemError])
def test_if_the_store_fails_each_runs_alone(new_sqlite: NewDatabase, error: type[apsw.Error]) -> None:
    async def work(shop: Shop) -> None:
        def script() -> Script[int]:
            yield shop.insert(50)
            raise error("as if")

        scripts = [*map(shop.adding, range(1, 5)), script, *map(shop.adding, range(5, 9))]
        assert await shop.several(*scripts) == [1, 2, 3, 4, Code.UNAVAILABLE, 5, 6, 7, 8]
        assert await shop.numbers() == set(range(1, 9))

    on(new_sqlite(), work)


def test_a_disk_that_is_full_refuses_what_does_not_fit(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        await shop.store.write(shop.adding(1))
        db = connection_of(shop)
        db.pragma("max_page_count", db.pragma("page_count") + 2)
        found = await shop.several(shop.adding(2), shop.adding(3, "x" * 50_000), shop.adding(4))
        assert found == [2, Code.UNAVAILABLE, 4]
        assert await shop.numbers() == {1, 2, 4}

    on(new_sqlite(), work)


def test_a_file_that_others_have_locked_is_waited_for(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        with locked(database):
            waiting = [asyncio.create_task(shop.store.write(shop.adding(number))) for number in range(1, 30)]
            await asyncio.sleep(0.2)
            assert not any(task.done() for task in waiting)
        assert await asyncio.gather(*waiting) == list(range(1, 30))

    on(database, work)


def test_and_not_longer_than_a_statement_may_take(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        with locked(database):
            begun = time.monotonic()
            assert await shop.several(*map(shop.adding, range(1, 30))) == [Code.UNAVAILABLE] * 29
            assert time.monotonic() - begun < 2.5  # two batches at most, and not 29 of them
        assert await shop.several(*map(shop.adding, range(1, 30))) == list(range(1, 30))

    on(database, work, statement_timeout=0.5)


def test_two_writers_on_one_file_take_turns(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        other = SqliteStore(database.removeprefix("sqlite:///"))
        await other.open(model)
        try:
            begun = [time.monotonic()]

            async def busy(store: Store, start: int) -> float:
                for number in range(start, start + 150):
                    await store.write(shop.adding(number))
                return time.monotonic() - begun[0]

            times = await asyncio.gather(
                *(busy(shop.store, 1_000 * lane) for lane in range(1, 5)),
                *(busy(other, 1_000 * lane) for lane in range(5, 9)),
            )
        finally:
            await other.close()
        assert len(await shop.numbers()) == 8 * 150
        assert max(times) < 60

    on(database, work)


def test_one_whose_caller_went_away_before_its_turn_is_left_out(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        with locked(database):
            first = asyncio.create_task(shop.store.write(shop.adding(1)))
            await asyncio.sleep(0.05)
            rest = [asyncio.create_task(shop.store.write(shop.adding(number))) for number in range(2, 6)]
            gone = asyncio.create_task(shop.store.session())
            await asyncio.sleep(0.05)
            for task in (rest[1], gone):
                task.cancel()
        assert await first == 1
        assert [await task for task in (rest[0], *rest[2:])] == [2, 4, 5]
        assert await shop.numbers() == {1, 2, 4, 5}

    on(database, work)


@pytest.mark.slow
def test_a_read_whose_caller_went_away_ends(new_sqlite: NewDatabase) -> None:
    async def work(shop: Shop) -> None:
        reads = [asyncio.create_task(shop.store.run(Plan(SLOW, (), ()), ())) for _ in range(12)]
        await asyncio.sleep(0.3)
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        begun = time.monotonic()
        session = await shop.store.session(reading=True)  # it needs one of the workers
        await session.end()
        assert time.monotonic() - begun < 5

    on(new_sqlite(), work, statement_timeout=60.0)


def test_the_line_has_an_end(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        with locked(database):
            first = asyncio.create_task(shop.store.write(shop.adding(1)))
            await asyncio.sleep(0.05)
            tasks: list[asyncio.Task[int]] = []

            async def come(who: str) -> list[asyncio.Task[int]]:
                CALLER.set(who)
                more = range(len(tasks) + 2, len(tasks) + 602)
                tasks.extend(asyncio.create_task(shop.store.write(shop.adding(number))) for number in more)
                await asyncio.sleep(0.1)
                return [task for task in tasks if task.done()]

            assert await come("ann") == tasks[500:600]  # nobody has more than half of it
            assert await come("ben") == [*tasks[500:600], *tasks[1_100:]]
            refused = await come("cid")  # those with most make room, the newest first
            assert refused == [*tasks[333:600], *tasks[600 + 334 : 1_200], *tasks[1_200 + 333 :]]
            for task in refused:
                with pytest.raises(Refusal) as told:
                    await task
                assert told.value.code is Code.UNAVAILABLE
        await asyncio.gather(first, *(task for task in tasks if task not in refused))
        assert len(await shop.numbers()) == 1_001

    on(database, work)


def test_closing_finishes_what_is_in_line_and_takes_nothing_more(new_sqlite: NewDatabase) -> None:
    database, others = new_sqlite(), threading.enumerate()

    async def work(shop: Shop) -> None:
        with locked(database):
            tasks = [asyncio.create_task(shop.store.write(shop.adding(number))) for number in range(1, 300)]
            await asyncio.sleep(0.02)
            closing = asyncio.create_task(asyncio.to_thread(writer_of(shop).close))
            await asyncio.sleep(0.02)
            with pytest.raises(Refusal, match="closed"):
                await writer_of(shop).write(shop.adding(1_000))
        assert await asyncio.gather(*tasks) == list(range(1, 300))
        await closing
        writers = [each for each in threading.enumerate() if each.name == "diptych-writer"]
        assert not set(writers) - set(others)

    on(database, work)


def test_a_loop_that_ended_meanwhile_harms_nobody(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()

    async def work(shop: Shop) -> None:
        def elsewhere() -> None:
            async def hurry() -> None:
                asyncio.get_running_loop().call_later(0.05, lambda: None)
                writing = asyncio.ensure_future(shop.store.write(shop.adding(1)))
                await asyncio.sleep(0.05)
                assert not writing.done()

            asyncio.run(hurry())

        with locked(database):
            await asyncio.to_thread(elsewhere)
        assert await shop.store.write(shop.adding(2)) == 2

    on(database, work)


# PostgreSQL


KILL = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
    "AND application_name = 'diptych' AND pid <> pg_backend_pid()"
)


def store_of(shop: Shop) -> PostgresStore:
    assert isinstance(shop.store, PostgresStore)
    return shop.store


def test_scripts_that_deadlock_run_again(postgres: Postgres) -> None:
    async def work(shop: Shop) -> None:
        await shop.several(shop.adding(1), shop.adding(2))
        runs = 0

        def touching(first: int, second: int) -> Callable[[], Script[None]]:
            def script() -> Script[None]:
                nonlocal runs
                runs += 1
                for number in (first, second):
                    yield Step("UPDATE things SET version = version + 1 WHERE id = $1::uuid", (ID.format(number),))
                    yield Step("SELECT pg_sleep(0.05)", ())

            return script

        found = await shop.several(touching(1, 2), touching(2, 1))
        assert found == [None, None]
        assert runs > 2

        def versions() -> Script[list[int]]:
            row = yield Step("SELECT array_agg(version) FROM things", ())
            assert row is not None
            return list(row[0])

        assert await shop.store.write(versions) == [3, 3]

    on(postgres.create(), work)


def test_a_row_that_others_hold_is_not_waited_for_long(postgres: Postgres) -> None:
    database = postgres.create()

    async def work(shop: Shop) -> None:
        await shop.store.write(shop.adding(1))
        other = await asyncpg.connect(database)
        try:
            await other.execute("BEGIN; UPDATE things SET version = version + 1")

            def script() -> Script[None]:
                yield Step("UPDATE things SET version = version + 1 RETURNING 1", ())

            with pytest.raises(Violation) as caught:
                await shop.store.write(script)
            assert caught.value.kind == "lock"
            await other.execute("ROLLBACK")
        finally:
            await other.close()

    on(database, work)


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_a_connection_that_breaks_at_the_commit_is_asked_about(
    postgres: Postgres, committed: bool, marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a script whose statements do not return the id of the transaction."""
    broken = 0
    execute = asyncpg.Connection.execute

    async def breaking(self: Any, query: str, *arguments: Any, **more: Any) -> str:
        nonlocal broken
        if query == "COMMIT" and not broken:
            broken += 1
            if committed:
                await execute(self, query)
            self.terminate()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return str(await execute(self, query, *arguments, **more))

    async def work(shop: Shop) -> None:
        runs = 0

        def script() -> Script[int]:
            nonlocal runs
            runs += 1
            step = shop.insert(runs, "a")
            yield step if marked else Step(step.sql, step.parameters)
            return runs

        monkeypatch.setattr(asyncpg.Connection, "execute", breaking)
        assert await shop.store.write(script) == (1 if committed else 2)
        monkeypatch.undo()
        assert await shop.numbers() == ({1} if committed else {2})

    on(postgres.create(), work, pool_size=1)
    assert broken == 1


@needs_own_session(reason="a change there is a transaction with an id, not a statement that commits itself")
@pytest.mark.parametrize("committed", [True, False])
def test_a_lone_change_whose_connection_breaks_is_looked_for(
    postgres: Postgres, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(shop: Shop) -> None:
        pool = store_of(shop).pool
        link = await pool.take()
        broken = 0
        running = type(link).row

        async def breaking(self: Any, sql: str, parameters: Any) -> Any:
            nonlocal broken
            if sql.startswith("INSERT") and not broken:
                broken += 1
                if committed:
                    await running(self, sql, parameters)
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return await running(self, sql, parameters)

        pool.give(link)
        monkeypatch.setattr(type(link), "row", breaking)
        found = Step("SELECT id FROM things WHERE id = $1::uuid", (ID.format(1),))
        row = await shop.store.change(shop.insert(1), lambda: found)
        assert broken == 1
        assert (row is not None, await shop.numbers()) == ((True, {1}) if committed else (False, set()))

    on(postgres.create(), work, pool_size=1)


def test_backends_that_are_ended_are_not_noticed(postgres: Postgres) -> None:
    database = postgres.create()

    async def work(shop: Shop) -> None:
        told: list[int] = []
        killed: list[int] = []

        async def lane(start: int) -> None:
            for number in range(start, start + 40):
                told.append(await shop.store.write(shop.adding(number)))

        async def kill() -> None:
            other = await asyncpg.connect(database)
            try:
                for enough in range(10, 220, 20):
                    await until(lambda: len(told) >= enough, seconds=60)  # noqa: B023  # awaited in the loop
                    for _ in range(4):  # also what connects anew
                        killed.append(await other.fetchval(KILL))  # none, if all have gone just now
            finally:
                await other.close()

        await asyncio.gather(kill(), *(lane(1_000 * each) for each in range(1, 7)))
        assert sum(killed) > 10
        assert len(told) == 240
        assert await shop.numbers() == set(told)

    on(database, work, pool_size=4)


# answers that are kept


def test_answers_that_are_too_old_are_deleted_in_batches(database: str) -> None:
    async def work(shop: Shop) -> None:
        dialect = shop.store.dialect

        def old() -> Script[None]:
            for number in range(replays.AT_A_TIME + 100):
                at = f"2020-01-01T00:00:00.{number:06}Z"
                yield Step(
                    f"INSERT INTO diptych_replays (caller, key, print, at) VALUES ('ann', '{number}', 'x', '{at}')", ()
                )

        def kept() -> Script[None]:
            claim = IdempotencyClaim("bob", "k", "x")
            assert (yield from claim.take(dialect)) is None
            yield from claim.keep(StoredReply(200, "[]", b""), dialect)

        def count() -> Script[int]:
            row = yield Step("SELECT count(*) FROM diptych_replays", ())
            assert row is not None
            return int(row[0])

        await shop.store.write(old)
        await shop.store.write(kept)
        assert await shop.store.write(lambda: replays.forget(dialect))
        assert await shop.store.write(count) == 101
        await Retention(shop.store, 3600.0, 1_000).forget()
        assert await shop.store.write(count) == 1, "what is young stays"

    on(database, work)
