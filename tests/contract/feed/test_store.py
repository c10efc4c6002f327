"""What a store offers of its feed: where it ends, what was touched, what is forgotten, and who is woken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import asyncpg
import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.feed import changed_rows, mark_at
from diptych.db.postgres.store import PostgresStore
from diptych.db.script import Step
from diptych.db.sqlite import writer
from diptych.db.sqlite.store import SqliteStore
from diptych.db.store import FeedHead, Store
from diptych.errors import Code, Refusal
from tests.contract.feed.scene import A, B, Library, hasten, model, script, uuid
from tests.support.behind_pooler import needs_own_session
from tests.support.running import NewDatabase

AGES = timedelta(days=100)
SHELF = "INSERT INTO shelves (id, name) VALUES ('{}', '{}')"


def shelves(first: int, last: int) -> list[str]:
    return [SHELF.format(uuid(number), number) for number in range(first, last + 1)]


async def put(store: Store, *statements: str) -> None:
    await store.write(lambda: script(statements))


# where it ends


def test_the_head_is_the_newest_change(library: Library) -> None:
    async def work(store: Store) -> None:
        empty = await store.head()
        assert (empty.position, empty.mark, empty.oldest) == (0, 0, 0)
        assert len(bytes.fromhex(empty.feed)) == 8
        assert await mark_at(store, 0) is None
        await put(store, *shelves(1, 3))
        head = await store.head()
        assert head == FeedHead(empty.feed, 3, head.mark, 1)
        marks = [await mark_at(store, position) for position in (1, 2, 3, 4)]
        assert marks[2] == head.mark and marks[3] is None and None not in marks[:3]
        assert all(0 <= mark < 2**31 for mark in marks if mark is not None)

    library.use(work)


def test_a_feed_keeps_its_identity_and_no_two_have_the_same(new_database: NewDatabase) -> None:
    first, second = Library(new_database()), Library(new_database())
    names = [library.use(lambda store: store.head()).feed for library in (first, first, second)]
    assert names[0] == names[1] != names[2]


def test_two_databases_of_one_copy_go_on_with_other_marks(library: Library) -> None:
    statements = shelves(1, 40)
    library.write("outside", *statements)
    library.told()
    library.write("outside", "DELETE FROM shelves")
    marks = library.sql("SELECT mark FROM diptych_feed")
    assert len(set(marks)) > 75


def test_what_was_committed_before_is_in_the_head(on_postgres: Library) -> None:
    """However many ask at once."""

    async def work(store: Store) -> None:
        async def one(number: int) -> None:
            await put(store, *shelves(number, number))
            head = await store.head()
            ((found,),) = await _rows(
                on_postgres.url, f"SELECT position FROM diptych_feed WHERE row_id = '{uuid(number)}'"
            )
            assert isinstance(found, int) and found <= head.position

        await asyncio.gather(*(one(number) for number in range(1, 41)))
        assert (await store.head()).position == 40

    on_postgres.use(work)


def test_those_who_ask_at_once_share_a_round(on_postgres: Library) -> None:
    async def work(store: Store) -> None:
        asked = 0
        run = store.run

        async def counted(*given: object) -> object:
            nonlocal asked
            asked += 1
            return await run(*given)  # type: ignore[arg-type]  # a spy

        store._numbering._run = counted  # type: ignore[attr-defined]  # a spy
        heads = await asyncio.gather(*(store.head() for _ in range(200)))
        assert len(set(heads)) == 1 and asked <= 2

    on_postgres.use(work)


def test_a_round_that_cannot_begin_is_unavailable(on_postgres: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.db.postgres.feed._PATIENCE", 0.2)

    async def work(store: Store) -> None:
        other = await asyncpg.connect(on_postgres.url)
        async with other.transaction():
            assert await other.fetchval("SELECT diptych_number(10)") == 0
            with pytest.raises(Refusal) as refused:
                await store.head()
            assert refused.value.code is Code.UNAVAILABLE
        assert (await store.head()).position == 0
        await other.close()

    on_postgres.use(work)


def test_many_are_numbered_in_several_steps(on_postgres: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.db.postgres.feed._MOST", 7)
    on_postgres.write("outside", *shelves(1, 35))
    assert on_postgres.use(lambda store: store.head()).position == 35


def test_a_transaction_that_takes_long_holds_nobody_up(on_postgres: Library) -> None:
    async def work(store: Store) -> None:
        late = await asyncpg.connect(on_postgres.url)
        transaction = late.transaction()
        await transaction.start()
        await late.execute(SHELF.format(A, "late"))
        await put(store, SHELF.format(B, "early"))
        assert (await store.head()).position == 1
        await transaction.commit()
        assert (await store.head()).position == 2
        await late.close()

    on_postgres.use(work)
    assert [change.row_id for change in on_postgres.told()] == [B, A]


def test_numbering_asks_for_snapshots_of_its_own(on_postgres: Library) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(on_postgres.url)
        with pytest.raises(asyncpg.RaiseError, match="read committed"):
            async with connection.transaction(isolation="repeatable_read"):
                await connection.execute("SELECT diptych_number(10)")
        await connection.close()

    asyncio.run(work())


def test_one_who_looks_at_an_old_snapshot_does_not_make_numbering_slow(on_postgres: Library) -> None:
    """What was numbered since cannot be cleaned away; it is not looked at again, either."""

    async def work() -> list[int]:
        reader, writer = await asyncpg.connect(on_postgres.url), await asyncpg.connect(on_postgres.url)
        found = []
        async with reader.transaction(isolation="repeatable_read"):
            await reader.fetch("SELECT count(*) FROM shelves")
            for _ in range(2):
                for _ in range(20):
                    await writer.execute("INSERT INTO tickets (text) SELECT 'x' FROM generate_series(1, 100)")
                    await writer.execute("SELECT diptych_number(1000)")
                found.append(await _pages(writer, "SELECT diptych_number(1000)"))
        await reader.close()
        await writer.close()
        return found

    slow = asyncio.run(work())
    hasten(on_postgres)
    quick = asyncio.run(work())
    assert slow[1] > 1.5 * slow[0] > 1.5 * 2 * quick[1], (slow, quick)


async def _pages(connection: asyncpg.Connection, sql: str) -> int:
    """Pages that a statement touches."""
    lines = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) {sql}")
    return max(int(word.partition("=")[2]) for (line,) in lines for word in line.split() if word.startswith("hit="))


# what was touched


def test_touched_rows_are_told_once(library: Library) -> None:
    async def work(store: Store) -> None:
        await put(store, *shelves(1, 3), "UPDATE shelves SET room = 'x'", "INSERT INTO tickets (text) VALUES ('t')")
        assert (await store.head()).position == 7
        every = [("shelves", uuid(1)), ("shelves", uuid(2)), ("shelves", uuid(3)), ("tickets", "1")]
        assert sorted(await changed_rows(store, 0, 7, 4) or []) == every
        assert await changed_rows(store, 0, 7, 3) is None
        assert sorted(await changed_rows(store, 1, 3, 10) or []) == every[1:3]
        assert await changed_rows(store, 7, 7, 10) == await changed_rows(store, 7, 100, 10) == []

    library.use(work)


# what is forgotten


async def positions(store: Store) -> tuple[int, int]:
    head = await store.head()
    return head.oldest, head.position


def test_the_oldest_are_forgotten_by_number(library: Library) -> None:
    async def work(store: Store) -> None:
        await put(store, *shelves(1, 30))
        long_ago = datetime.now(UTC) - AGES
        await store.head()
        assert await store.trim(long_ago, 30) == 0
        assert await store.trim(long_ago, 25) == 5 and await positions(store) == (6, 30)
        assert await store.trim(long_ago, 5, most=8) == 8 and await positions(store) == (14, 30)
        assert await store.trim(long_ago, 5, most=100) == 12 and await positions(store) == (26, 30)
        assert await store.trim(long_ago, 0) == 4 and await positions(store) == (30, 30)
        assert await store.trim(datetime.now(UTC) + AGES, 0) == 0 and await positions(store) == (30, 30)
        await put(store, *shelves(31, 31))
        assert await positions(store) == (30, 31)
        assert await mark_at(store, 29) is None and await mark_at(store, 30) is not None

    library.use(work)


def test_the_oldest_are_forgotten_by_age(library: Library) -> None:
    async def work(store: Store) -> None:
        await put(store, *shelves(1, 10))
        assert await positions(store) == (1, 10)
        age = "'2020-01-01T00:00:00.000000Z'"
        await put(store, f"UPDATE diptych_feed SET at = {age} WHERE position IN (1, 2, 4, 10)")
        day = datetime(2020, 1, 2, tzinfo=UTC)
        assert await store.trim(datetime(2019, 1, 1, tzinfo=UTC), 1000) == 0
        assert await store.trim(day, 1000) == 4 and await positions(store) == (5, 10)  # without a hole
        assert await store.trim(day, 1000) == 0
        assert await store.trim(datetime.now(UTC) + AGES, 1000) == 5 and await positions(store) == (10, 10)

    library.use(work)


def test_what_has_no_position_is_not_forgotten(on_postgres: Library) -> None:
    async def work(store: Store) -> None:
        await put(store, *shelves(1, 5))
        assert (await store.head()).position == 5
        await put(store, *shelves(6, 9))
        assert await store.trim(datetime.now(UTC) + AGES, 0) == 4
        assert await positions(store) == (5, 9)

    on_postgres.use(work)


def test_those_who_forget_at_once_do_not_wait_for_each_other(on_postgres: Library) -> None:
    async def work(store: Store) -> None:
        await put(store, *shelves(1, 50))
        await store.head()
        future = datetime.now(UTC) + AGES
        assert sum(await asyncio.gather(*(store.trim(future, 0, most=10) for _ in range(8)))) in range(10, 50)
        while await store.trim(future, 0, most=10):
            pass
        assert await positions(store) == (50, 50)

    on_postgres.use(work)


def test_the_moment_of_a_change_is_now(library: Library) -> None:
    long_ago = "'2001-01-01T00:00:00.000000Z'"
    library.write(
        "outside",
        f"INSERT INTO shelves (id, name, created_at, updated_at) VALUES ('{A}', 'A', {long_ago}, {long_ago})",
        f"UPDATE shelves SET updated_at = {long_ago}, version = 9",
    )
    rows = library.sql("SELECT at FROM diptych_feed")
    assert len(rows) == 2
    for (at,) in rows:
        moment = datetime.fromisoformat(at) if library.is_sqlite else at
        assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)
        assert not library.is_sqlite or len(at) == len("2026-01-31T12:00:00.000000Z")


# who is woken


@needs_own_session(reason="a change there is a transaction with an id, not a statement that commits itself")
def test_own_commits_wake(library: Library) -> None:
    async def work(store: Store) -> None:
        calls: list[int] = []
        store.on_commit(lambda: calls.append(1))
        if isinstance(store, PostgresStore):
            await _until(lambda: len(calls) == 1)  # it listens

        async def session() -> None:
            opened = await store.session()
            await opened.rows(SHELF.format(uuid(3), "3"), [])
            await opened.commit()
            await opened.end()

        insert = Step(SHELF.format(uuid(2), "2") + " RETURNING id", ())
        for change in (lambda: put(store, *shelves(1, 1)), lambda: _changed(store, insert), session):
            before = len(calls)
            await change()  # type: ignore[no-untyped-call]  # a spy
            await _until(lambda: len(calls) > before)  # noqa: B023  # awaited in the loop
        store.on_commit(None)
        before = len(calls)
        await put(store, *shelves(4, 4))
        await asyncio.sleep(0)
        assert len(calls) == before

    library.use(work)


async def _changed(store: Store, step: Step) -> None:
    assert await store.change(step, lambda: step) is not None


def test_a_batch_wakes_once(on_sqlite: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that stands: a batch ends when its time is over, and a busy machine takes longer for it."""
    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=lambda: 0.0, perf_counter=lambda: 0.0))

    async def work(store: Store) -> None:
        calls: list[int] = []
        await put(store, *shelves(1, 1))
        store.on_commit(lambda: calls.append(1))
        held = await store.session()  # so that all of them wait
        waiting = [asyncio.ensure_future(put(store, statement)) for statement in shelves(2, 60)]
        await asyncio.sleep(0)
        await held.end()
        await asyncio.gather(*waiting)
        await asyncio.sleep(0)
        assert 1 <= len(calls) <= 5

    on_sqlite.use(work)


def test_one_who_is_woken_and_fails_does_not_stop_the_writer(on_sqlite: Library) -> None:
    async def work(store: Store) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        store.on_commit(lambda: 1 // 0)  # type: ignore[arg-type]  # a spy
        for statement in shelves(1, 5):
            await asyncio.wait_for(put(store, statement), 30)

    on_sqlite.use(work)


def test_numbering_of_others_wakes(on_postgres: Library) -> None:
    async def work(store: Store) -> None:
        calls: list[int] = []
        store.on_commit(lambda: calls.append(1))
        await _until(lambda: len(calls) == 1)
        other = connect(Config(database=on_postgres.url))
        await other.open(model)
        await put(other, *shelves(1, 1))
        await other.head()
        await other.close()
        await _until(lambda: len(calls) == 2)

    on_postgres.use(work)


LISTENING = "FROM pg_stat_activity WHERE application_name = 'diptych listens' AND datname = current_database()"


def test_a_connection_that_listens_is_made_anew_when_it_breaks(on_postgres: Library) -> None:
    async def work(store: Store) -> None:
        calls: list[int] = []
        store.on_commit(lambda: calls.append(1))
        await _until(lambda: len(calls) == 1)
        kill = f"SELECT pg_terminate_backend(pid) {LISTENING}"
        assert await _rows(on_postgres.url, kill) == [(True,)]
        await _until(lambda: len(calls) == 2)  # once for all that it may have missed
        await _rows(on_postgres.url, SHELF.format(A, "A"))
        await _rows(on_postgres.url, "SELECT diptych_number(10)")
        await _until(lambda: len(calls) == 3)

    on_postgres.use(work)
    assert on_postgres.sql(f"SELECT 1 {LISTENING}") == []


def test_nobody_is_notified_of_nothing(on_postgres: Library) -> None:
    async def work() -> list[str]:
        heard: list[str] = []
        listener = await asyncpg.connect(on_postgres.url)
        await listener.add_listener("diptych_feed", lambda *given: heard.append(given[-1]))
        await _rows(on_postgres.url, SHELF.format(A, "A"))
        for _ in range(3):
            await _rows(on_postgres.url, "SELECT diptych_number(10)")
        await _until(lambda: len(heard) == 1)
        await listener.fetchval("SELECT 1")
        await listener.close()
        return heard

    assert asyncio.run(work()) == [""]


def test_a_closed_store_has_no_head(library: Library) -> None:
    async def work() -> None:
        store: Store = SqliteStore(library.url[10:]) if library.is_sqlite else PostgresStore(library.url)
        await store.open(model)
        store.on_commit(lambda: None)
        await store.close()
        store.on_commit(None)
        with pytest.raises(Refusal):
            await store.head()

    asyncio.run(work())


@pytest.mark.parametrize("begun", [False, True])
def test_closing_a_store_ends_what_numbers_changes(on_postgres: Library, begun: bool) -> None:
    """A task that outlives its store would be reported when it is collected, in the middle of something else."""

    async def work() -> None:
        store = PostgresStore(on_postgres.url)
        await store.open(model)
        before = asyncio.all_tasks()
        asking = asyncio.create_task(store.head())
        await asyncio.sleep(0)  # it asks: a round is made
        if begun:
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks() - before) == 2
        await store.close()
        assert asyncio.all_tasks() - before <= {asking}
        with pytest.raises(Refusal) as refused:
            await asking
        assert refused.value.code is Code.UNAVAILABLE

    asyncio.run(work())


def test_the_head_costs_little_on_sqlite(on_sqlite: Library) -> None:
    """It is asked for many times a second; a hundredth of a millisecond is meant, a whole one is allowed."""

    async def work(store: Store) -> float:
        await put(store, *shelves(1, 500))
        begun = time.process_time()
        for _ in range(500):
            await store.head()
        return (time.process_time() - begun) / 500

    assert on_sqlite.use(work) < 0.001


async def _rows(url: str, sql: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)
