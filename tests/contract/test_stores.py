"""Both stores: tables that fit, or a refusal that says what differs; and what a store does under stress."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

import apsw
import asyncpg
import pytest

from diptych import Digits, Diptych, Model, Resource, Viewer, allow, grant
from diptych.config import Config
from diptych.demo.model import model as default
from diptych.errors import StartError
from diptych.serve.http.request import Request
from tests.support.behind_pooler import needs_no_pooler, needs_own_session
from tests.support.edge_cases import load, rows
from tests.support.edge_cases import model as edge_cases
from tests.support.running import NewDatabase, Postgres


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


class Opened:
    """An application that is open for one test, asked in process."""

    def __init__(self, runner: asyncio.Runner, model: Model, database: str, **settings: Any) -> None:
        self.runner = runner
        self.app = Diptych(model, config=replace(Config(), database=database, **settings))

    def __enter__(self) -> Opened:
        self.runner.run(self.app.start())
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.run(self.app.stop())

    def insert(self, resource: str, *values: dict[str, Any]) -> None:
        found = self.app.model.resources[resource]
        lists = [[given[name] for name in values[0]] for given in values]
        self.runner.run(self.app.store.insert(found, list(values[0]), lists))

    async def ask(self, target: str) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        handler = await self.app.start()
        reply = await handler.handle(Request("GET", path, query, {}, _no_body))
        return reply.status, json.loads(reply.body)

    def get(self, target: str) -> tuple[int, Any]:
        return self.runner.run(self.ask(target))


def open_once(runner: asyncio.Runner, model: Model, database: str, *, add_columns: bool = False) -> None:
    """Open a database and close it again."""

    async def work() -> None:
        app = Diptych(model, database=database, add_columns=add_columns)
        try:
            await app.start()
        finally:
            await app.stop()

    runner.run(work())


def sql(database: str, statement: str) -> list[Any]:
    """Run a statement from outside."""
    if database.startswith("sqlite:"):
        connection = apsw.Connection(database.removeprefix("sqlite:///"))
        try:
            connection.execute("PRAGMA legacy_alter_table = ON").fetchall()  # a column can go though triggers name it
            return list(connection.execute(statement))
        finally:
            connection.close()

    async def work() -> list[Any]:
        session = await asyncpg.connect(database)
        try:
            return [tuple(row) for row in await session.fetch(statement)]
        finally:
            await session.close()

    return asyncio.run(work())


def row(number: int, **more: Any) -> dict[str, Any]:
    """The fields that every resource has, and some more."""
    moment = "2026-01-31T12:00:00.000000Z"
    own = {"id": f"00000000-0000-7000-8000-{number:012x}", "version": 1, "createdAt": moment, "updatedAt": moment}
    return {**own, **more}


# tables


def small() -> Model:
    class Thing(Resource):
        name: str
        amount: int

        access = (grant("read"),)

    return Model(Thing)


def with_another_table() -> Model:
    class Thing(Resource):
        name: str
        amount: int

    class Other(Resource):
        name: str

    return Model(Thing, Other)


def with_another_type() -> Model:
    class Thing(Resource):
        name: str
        amount: str

    return Model(Thing)


def with_a_nullable() -> Model:
    class Thing(Resource):
        name: str | None
        amount: int

    return Model(Thing)


def with_another_column() -> Model:
    class Thing(Resource):
        name: str
        amount: int
        weight: int

    return Model(Thing)


def without_a_column() -> Model:
    class Thing(Resource):
        name: str

    return Model(Thing)


def with_soft_columns() -> Model:
    class Thing(Resource):
        name: str
        amount: int
        note: str | None
        price: Annotated[Decimal | None, Digits(9, 2)] = None
        size: int = 3
        flag: bool = True
        word: str = "it's"

        access = (grant("read"),)

    return Model(Thing)


@pytest.mark.parametrize("model", [default, edge_cases], ids=["default", "edge_cases"])
def test_tables_are_made_at_the_first_start_and_fit_at_the_second(
    runner: asyncio.Runner, database: str, model: Model
) -> None:
    open_once(runner, model, database)
    found = next(iter(model.resources.values()))
    assert sql(database, f"SELECT count(*) FROM {found.table}") == [(0,)]
    open_once(runner, model, database)
    open_once(runner, model, database, add_columns=True)


def test_keys_are_made_once(runner: asyncio.Runner, database: str) -> None:
    open_once(runner, small(), database)
    before = sql(database, "SELECT kid, secret FROM diptych_keys ORDER BY kid")
    open_once(runner, small(), database)
    assert len(before) == 2
    assert sql(database, "SELECT kid, secret FROM diptych_keys ORDER BY kid") == before


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (with_another_table, r"the table others is missing"),
        (with_another_type, r'the column things\.amount is integer and should be text( COLLATE "C")?'),
        (with_a_nullable, r"the column things\.name must not be null and may be null"),
        (with_another_column, r"the column things\.weight \(integer\) is missing"),
        (without_a_column, r"the column things\.amount is not in the model and must not be null"),
    ],
)
def test_a_database_that_does_not_fit_is_refused_with_what_differs(
    runner: asyncio.Runner, database: str, wanted: Any, said: str
) -> None:
    open_once(runner, small(), database)
    with pytest.raises(StartError, match=rf"(?im)^The database does not fit the model: {said}\.$"):
        open_once(runner, wanted(), database)


def test_everything_that_differs_is_told_at_once(runner: asyncio.Runner, database: str) -> None:
    open_once(runner, small(), database)
    sql(database, "ALTER TABLE things DROP COLUMN name")
    with pytest.raises(StartError) as caught:
        open_once(runner, with_another_table(), database)
    assert "the column things.name" in str(caught.value)
    assert "the table others is missing" in str(caught.value)


def test_tables_and_nullable_columns_of_others_are_left_alone(runner: asyncio.Runner, database: str) -> None:
    open_once(runner, small(), database)
    sql(database, "ALTER TABLE things ADD COLUMN remark text")
    sql(database, "CREATE TABLE elsewhere (a integer)")
    open_once(runner, small(), database)


def test_a_refused_database_is_left_as_it_was(runner: asyncio.Runner, database: str) -> None:
    with Opened(runner, small(), database) as opened:
        opened.insert("Thing", row(1, name="a", amount=1))
    with pytest.raises(StartError):
        open_once(runner, with_another_column(), database)
    with pytest.raises(StartError):
        open_once(runner, with_another_column(), database, add_columns=True)
    open_once(runner, small(), database)


def test_columns_that_need_no_value_are_added_while_developing(runner: asyncio.Runner, database: str) -> None:
    with Opened(runner, small(), database) as opened:
        opened.insert("Thing", row(1, name="a", amount=1))
    with pytest.raises(StartError, match=r"things\.note"):
        open_once(runner, with_soft_columns(), database)
    open_once(runner, with_soft_columns(), database, add_columns=True)
    with Opened(runner, with_soft_columns(), database) as opened:
        status, body = opened.get("/things?fields=name,note,price,size,flag,word")
    assert status == 200
    assert body["data"] == [{"name": "a", "note": None, "price": None, "size": 3, "flag": True, "word": "it's"}]


def test_what_cannot_be_added_is_refused_while_developing_too(runner: asyncio.Runner, database: str) -> None:
    with Opened(runner, small(), database) as opened:
        opened.insert("Thing", row(1, name="a", amount=1))
    with pytest.raises(StartError, match="is missing, and the rows that are there would have no value for it"):
        open_once(runner, with_another_column(), database, add_columns=True)


# sorting


def test_text_sorts_by_code_point(runner: asyncio.Runner, database: str) -> None:
    names = ["Zebra", "apple", "Äpfel", "a b", "a-b", "ab", "_", "😀", "\uffee", "ﬁ", "Ab", "1", "10", "2", ""]
    with Opened(runner, small(), database) as opened:
        opened.insert("Thing", *(row(number, name=name, amount=number) for number, name in enumerate(names)))
        for sort, expected in (("name", sorted(names)), ("-name", sorted(names, reverse=True))):
            status, body = opened.get(f"/things?fields=name&sort={sort}")
            assert status == 200
            assert [each["name"] for each in body["data"]] == expected
        status, body = opened.get(f"/things?fields=name&sort=name&name[gt]={quote('ab')}")
        assert [each["name"] for each in body["data"]] == sorted(name for name in names if name > "ab")


def test_text_columns_of_postgres_do_not_follow_the_collation_of_the_database(
    runner: asyncio.Runner, postgres: Postgres
) -> None:
    database = postgres.create()
    open_once(runner, edge_cases, database)
    found = sql(
        database,
        "SELECT c.relname, a.attname, l.collname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_collation l ON l.oid = a.attcollation WHERE c.relnamespace = current_schema()::regnamespace "
        "AND c.relkind = 'r' AND a.attnum > 0 AND c.relname !~ '^diptych_'",
    )
    assert found
    assert [each for each in found if each[2] != "C"] == []


# stress


def wordy() -> Model:
    class Text(Resource):
        words: str

        @allow("read")
        def anyone(self, viewer: Viewer) -> bool:
            return self.version > 0

    return Model(Text)


HEAVY = "/texts?count=exact&fields=id&first=1&where=" + quote(
    json.dumps({"and": [{"words": {"contains": f"no such word {number}"}} for number in range(40)]}).replace(
        '{"and"', '{"or"'
    )
)
"""Looks through all the text there is, forty times."""


@pytest.fixture
def texts(runner: asyncio.Runner, database: str) -> str:
    """A database whose texts take a while to look through."""
    with Opened(runner, wordy(), database) as opened:
        opened.insert("Text", *(row(number, words="no such word, " * 40) for number in range(5_000)))
    return database


@pytest.mark.slow
def test_a_statement_that_takes_too_long_is_a_timeout(runner: asyncio.Runner, database: str) -> None:
    with Opened(runner, wordy(), database) as opened:
        opened.insert("Text", *(row(number, words="no such word, " * 40_000) for number in range(40)))
    with Opened(runner, wordy(), database, statement_timeout=0.4) as opened:
        for _ in range(2):  # it takes many times as long; what is quick takes a hundredth of it
            status, body = opened.get(HEAVY)
            assert (status, body["code"]) == (504, "TIMEOUT")
        status, body = opened.get(f"/texts/{row(7)['id']}?fields=version")
        assert (status, body) == (200, {"version": 1})


@pytest.mark.slow
def test_a_heavy_read_does_not_keep_a_light_one_waiting(runner: asyncio.Runner, texts: str) -> None:
    async def both(opened: Opened) -> tuple[bool, tuple[int, Any], tuple[int, Any]]:
        heavy = asyncio.create_task(opened.ask(HEAVY))
        await asyncio.sleep(0)
        light = await opened.ask(f"/texts/{row(7)['id']}?fields=version")
        return heavy.done(), light, await heavy

    with Opened(runner, wordy(), texts, statement_timeout=60.0) as opened:
        for _ in range(2):  # at first sight, and when it is known to be heavy
            was_done, light, heavy = runner.run(both(opened))
            assert light == (200, {"version": 1})
            assert heavy[0] == 200 and heavy[1]["page"]["total"] == 0
            assert not was_done


@needs_own_session(reason="it counts the sessions of the server, which the pooler makes as it likes")
def test_a_broken_connection_is_replaced(runner: asyncio.Runner, postgres: Postgres) -> None:
    database = postgres.create()
    kill = (
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'diptych'"
    )

    async def many(opened: Opened) -> list[int]:
        return [status for status, _ in await asyncio.gather(*(opened.ask("/things") for _ in range(8)))]

    with Opened(runner, small(), database) as opened:
        for _ in range(3):
            assert runner.run(many(opened)) == [200] * 8
            assert sql(database, kill)[0][0] > 1
            assert opened.get("/things")[0] == 200


@needs_no_pooler(reason="it ends a backend by the id that the pooler makes up")
def test_a_connection_that_breaks_during_its_setup_is_replaced(
    runner: asyncio.Runner, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Any = asyncpg.connect
    pids: list[int] = []

    async def connect_and_end(*given: Any, **named: Any) -> Any:
        connection = await connect(*given, **named)
        if named.get("server_settings") == {"application_name": "diptych"} and len(pids) < 2:
            pids.append(connection.get_server_pid())
            try:
                await asyncio.to_thread(postgres.execute, f"SELECT pg_terminate_backend({pids[-1]}, 10000)")
            except BaseException:  # nobody waits for it any more
                connection.terminate()
                raise
        return connection

    with Opened(runner, small(), postgres.create()) as opened:
        pool = opened.app.store.pool  # type: ignore[attr-defined]  # PostgreSQL's
        for link in pool._free:
            link.connection.terminate()
        monkeypatch.setattr(asyncpg, "connect", connect_and_end)
        assert opened.get("/things")[0] == 200
        assert len(pids) == 2


@needs_no_pooler(reason="PgBouncer refuses for the time of server_login_retry after a login that has failed")
def test_a_store_that_is_gone_is_unavailable_and_comes_back(runner: asyncio.Runner, postgres: Postgres) -> None:
    database = postgres.create()
    name = database.partition("?")[0].rpartition("/")[2]
    with Opened(runner, small(), database, pool_size=2) as opened:
        assert opened.get("/things")[0] == 200
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        postgres.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'")
        for _ in range(4):
            status, body = opened.get("/things")
            assert (status, body["code"]) == (503, "UNAVAILABLE")
        assert opened.get("/health/ready")[0] == 503
        assert opened.get("/health/live")[0] == 200
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        deadline = time.monotonic() + 5  # an attempt to connect that began before may still fail for who waits for it
        while opened.get("/things")[0] != 200:
            assert time.monotonic() < deadline
        assert opened.get("/health/ready")[0] == 200


@needs_own_session(reason="it counts the sessions of the server, which the pooler makes as it likes")
def test_more_requests_than_connections_wait_for_their_turn(runner: asyncio.Runner, postgres: Postgres) -> None:
    async def many(opened: Opened) -> set[int]:
        return {status for status, _ in await asyncio.gather(*(opened.ask("/things") for _ in range(50)))}

    def used(database: str) -> int:
        with Opened(runner, small(), database, pool_size=3) as opened:  # the third is kept for others
            assert runner.run(many(opened)) == {200}
            ((count,),) = sql(
                database,
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'diptych'",
            )
            return int(count)

    assert 2 in (used(postgres.create()) for _ in range(3))  # the service itself may need the third just then


def test_two_processes_may_make_the_tables_at_once(runner: asyncio.Runner, new_database: NewDatabase) -> None:
    async def together(database: str) -> None:
        apps = [Diptych(default, database=database) for _ in range(4)]
        try:
            await asyncio.gather(*(app.start() for app in apps))
        finally:
            await asyncio.gather(*(app.stop() for app in apps))

    runner.run(together(new_database()))


def test_data_of_every_type_goes_in_and_comes_out(runner: asyncio.Runner, database: str) -> None:
    with Opened(runner, edge_cases, database) as opened:
        runner.run(load(opened.app.store, edge_cases, rows(edge_cases, 1)))
        for resource in edge_cases.resources.values():
            assert opened.get(f"/{resource.path}?first=100")[0] in (200, 401)


def test_a_read_in_memory_waits_for_code_that_changes_it_and_the_loop_does_not(runner: asyncio.Runner) -> None:
    async def read_while_code_runs(app: Diptych) -> int:
        handler = await app.start()
        session = await app.store.session()
        async with asyncio.TaskGroup() as group:
            read = group.create_task(handler.handle(Request("GET", "/users", "", {}, _no_body)))
            await asyncio.sleep(0)
            await session.rows("SELECT 1", ())
            await session.commit()
        return read.result().status

    with Opened(runner, default, "sqlite:///:memory:") as opened:
        assert runner.run(read_while_code_runs(opened.app)) == 200


async def _no_body(most: int) -> bytes:
    return b""
