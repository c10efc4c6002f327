"""What every write relies on, in real databases: versions that move, defaults, ids, and constraints told apart."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import apsw
import asyncpg
import pytest

from diptych import Model, OnDelete, Resource, Unique
from diptych.compile.system.object import DialectName, FeedTable
from diptych.compile.system.objects import system_objects
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.db.violations import COLUMNS_OF_INDEX, COLUMNS_OF_REFERENCE, columns_of_violation
from diptych.demo.model import model as default
from tests.support.running import NewDatabase, Postgres

LONG_AGO = "2020-01-01T00:00:00.000000Z"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


class Shelf(Resource, plural="shelves"):
    name: Annotated[str, Unique()]


class Book(Resource):
    title: str
    shelf: Annotated[Shelf | None, OnDelete("set null")] = None
    owner: Shelf | None


class Ticket(Resource, ids="integer"):
    text: str
    parent: Ticket | None


model = Model(Shelf, Book, Ticket)

OLD = """
    CREATE TABLE diptych_keys (kid text PRIMARY KEY, kind text NOT NULL, secret text NOT NULL, created_at text NOT NULL);
    CREATE TABLE shelves (id {id} PRIMARY KEY NOT NULL, version integer NOT NULL, created_at {time} NOT NULL,
      updated_at {time} NOT NULL, name {text} NOT NULL UNIQUE);
    CREATE TABLE books (id {id} PRIMARY KEY NOT NULL, version integer NOT NULL, created_at {time} NOT NULL,
      updated_at {time} NOT NULL, title {text} NOT NULL, shelf_id {id} REFERENCES shelves (id) ON DELETE SET NULL,
      owner_id {id} REFERENCES shelves (id) ON DELETE RESTRICT);
    CREATE TABLE tickets (id {big} PRIMARY KEY NOT NULL, version integer NOT NULL, created_at {time} NOT NULL,
      updated_at {time} NOT NULL, text {text} NOT NULL, parent_id {big} REFERENCES tickets (id) ON DELETE RESTRICT);
    INSERT INTO shelves VALUES ('00000000-0000-7000-8000-000000000001', 7, '{then}', '{then}', 'A');
    INSERT INTO tickets VALUES (41, 7, '{then}', '{then}', 'A', NULL);
"""
"""The tables as they were when nothing but Diptych wrote them: no defaults, no triggers, no identity."""
OLD_SQLITE = OLD.format(id="TEXT", time="TEXT", text="TEXT", big="INTEGER", then=LONG_AGO)
OLD_POSTGRES = OLD.format(id="uuid", time="timestamptz", text='text COLLATE "C"', big="bigint", then=LONG_AGO)


class Outside:
    """A database, and SQL that reaches it from outside."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite:")
        self.dialect: DialectName = "sqlite" if self.is_sqlite else "postgres"

    def sql(self, statement: str, *values: Any) -> list[Any]:
        return self._sqlite(statement, values) if self.is_sqlite else asyncio.run(self._postgres(statement, values))

    def _sqlite(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
        try:
            connection.execute("PRAGMA foreign_keys = ON").fetchall()
            connection.execute("PRAGMA legacy_alter_table = ON").fetchall()  # a column can go though triggers name it
            return list(connection.execute(statement, values or None))
        finally:
            connection.close()

    async def _postgres(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        connection = await asyncpg.connect(self.url)
        try:
            if not values and ";" in statement:
                await connection.execute(statement)
                return []
            return [tuple(row) for row in await connection.fetch(statement, *values)]
        finally:
            await connection.close()

    def rows(self, table: str, *columns: str) -> list[Any]:
        """The named columns of all rows by id, times as the wire has them."""
        shown = [self.moment(name) if name.endswith("_at") else name for name in columns]
        return self.sql(f"SELECT {', '.join(shown)} FROM {table} ORDER BY id")

    def moment(self, column: str) -> str:
        if self.is_sqlite:
            return column
        return f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

    def touched(self, table: str) -> list[bool]:
        """Which rows were written lately? Their `updated_at` is a moment in its full form."""
        moments = [moment for (moment,) in self.rows(table, "updated_at")]
        assert all(MOMENT.fullmatch(moment) for moment in moments), moments
        return [moment > LONG_AGO for moment in moments]

    def catalogue(self) -> list[Any]:
        """All that a database tells of itself, with what changes whenever a thing is made again."""
        if self.is_sqlite:
            return [*self.sql("SELECT * FROM sqlite_schema ORDER BY name"), *self.sql("PRAGMA schema_version")]
        return [
            row
            for table, name in (
                ("pg_class", "relname"),
                ("pg_trigger", "tgname"),
                ("pg_proc", "proname"),
                ("pg_attrdef", "oid"),
            )
            for row in self.sql(
                f"SELECT {name}::text, oid::text, xmin::text FROM {table} WHERE oid >= 16384 ORDER BY oid"
            )
        ]


@pytest.fixture
def outside(database: str) -> Outside:
    return Outside(database)


@contextmanager
def store(outside: Outside, of: Model = model, *, add_columns: bool = False) -> Iterator[tuple[asyncio.Runner, Store]]:
    """A store that is open, and the runner it lives in."""
    with asyncio.Runner() as runner:
        found = connect(Config(database=outside.url))
        runner.run(found.open(of, add_columns=add_columns))
        try:
            yield runner, found
        finally:
            runner.run(found.close())


def opened(outside: Outside, of: Model = model, *, add_columns: bool = False) -> Outside:
    """The same database, after a store has opened and closed it."""
    with store(outside, of, add_columns=add_columns):
        return outside


@pytest.fixture
def filled(outside: Outside) -> Outside:
    """Three shelves with a book each, written long ago."""
    opened(outside)
    for number in (1, 2, 3):
        key = f"'00000000-0000-7000-8000-{number:012d}'"
        then = f"'{LONG_AGO}'"
        outside.sql(f"INSERT INTO shelves VALUES ({key}, {number}, {then}, {then}, 'shelf {number}')")
        outside.sql(
            "INSERT INTO books (id, version, created_at, updated_at, title, shelf_id) "
            f"VALUES ({key}, {number}, {then}, {then}, 'book {number}', {key})"
        )
    return outside


# versions


def test_sql_from_outside_moves_the_version_and_the_time_of_each_row(filled: Outside) -> None:
    filled.sql("UPDATE books SET title = 'x' WHERE version > 1")
    assert filled.rows("books", "version", "title", "created_at") == [
        (1, "book 1", LONG_AGO),
        (3, "x", LONG_AGO),
        (4, "x", LONG_AGO),
    ]
    assert filled.touched("books") == [False, True, True]
    assert filled.touched("shelves") == [False] * 3


def test_a_row_that_is_written_over_and_over_moves_each_time(filled: Outside) -> None:
    for _ in range(3):
        filled.sql("UPDATE shelves SET name = name")
    assert filled.rows("shelves", "version") == [(4,), (5,), (6,)]


def test_a_statement_that_moves_the_version_itself_moves_it_once_and_keeps_its_time(filled: Outside) -> None:
    filled.sql("UPDATE books SET title = 'x', version = version + 1")
    assert filled.rows("books", "version", "title") == [(2, "x"), (3, "x"), (4, "x")]
    assert filled.touched("books") == [False] * 3


@pytest.mark.parametrize("version", ["version", "version - 1", "0"])
def test_a_version_never_goes_back(filled: Outside, version: str) -> None:
    filled.sql(f"UPDATE books SET version = {version}")
    assert filled.rows("books", "version") == [(2,), (3,), (4,)]
    assert filled.touched("books") == [True] * 3


def test_a_reference_that_is_set_to_null_moves_the_version(filled: Outside) -> None:
    filled.sql("DELETE FROM shelves WHERE version < 3")
    assert [(version, shelf is None) for version, shelf in filled.rows("books", "version", "shelf_id")] == [
        (2, True),
        (3, True),
        (3, False),
    ]
    assert filled.touched("books") == [True, True, False]


def test_an_upsert_moves_the_version(filled: Outside) -> None:
    filled.sql(
        "INSERT INTO shelves (id, name) VALUES ('00000000-0000-7000-8000-000000000009', 'shelf 2') "
        "ON CONFLICT (name) DO UPDATE SET name = excluded.name"
    )
    assert filled.rows("shelves", "version") == [(1,), (3,), (3,)]


def test_triggers_that_may_recurse_still_move_it_once(filled: Outside) -> None:
    pragma = "PRAGMA recursive_triggers = ON; " if filled.is_sqlite else ""
    filled.sql(f"{pragma}UPDATE books SET title = 'x';")
    assert filled.rows("books", "version") == [(2,), (3,), (4,)]


def test_times_do_not_depend_on_the_zone_of_who_writes(filled: Outside) -> None:
    zone = "" if filled.is_sqlite else "SET TimeZone = 'Asia/Tokyo'; "
    before = datetime.now(UTC)
    filled.sql(f"{zone}UPDATE books SET title = 'x';")
    for (moment,) in filled.rows("books", "updated_at"):
        assert abs(datetime.fromisoformat(moment) - before) < timedelta(minutes=1)


# inserts


def test_an_insert_from_outside_may_leave_out_what_the_server_fills(outside: Outside) -> None:
    opened(outside)
    outside.sql("INSERT INTO shelves (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'A')")
    ((version, created, updated),) = outside.rows("shelves", "version", "created_at", "updated_at")
    assert version == 1 and created == updated and MOMENT.fullmatch(created)
    assert outside.touched("shelves") == [True]


def test_the_database_makes_integer_ids_that_never_come_back(outside: Outside) -> None:
    opened(outside)
    for text in ("a", "b", "c"):
        outside.sql(f"INSERT INTO tickets (text) VALUES ('{text}')")
    outside.sql("DELETE FROM tickets WHERE id = 3")
    outside.sql("INSERT INTO tickets (text, parent_id) VALUES ('d', 2)")
    assert outside.rows("tickets", "id", "text", "parent_id", "version") == [
        (1, "a", None, 1),
        (2, "b", None, 1),
        (4, "d", 2, 1),
    ]


def test_integer_ids_go_on_after_those_that_were_given(outside: Outside) -> None:
    names = ("id", "version", "createdAt", "updatedAt", "text")
    with store(outside) as (runner, found):
        ticket = model.resources["Ticket"]
        for ids in ((7, 5), (3,), ()):  # the last ones are less, and none: the count does not go back
            runner.run(found.insert(ticket, names, [(key, 1, LONG_AGO, LONG_AGO, "x") for key in ids]))
    for _ in range(2):
        outside.sql("INSERT INTO tickets (text) VALUES ('x')")
    assert outside.rows("tickets", "id") == [(3,), (5,), (7,), (8,), (9,)]


# databases that are there


def test_opening_twice_changes_nothing(outside: Outside) -> None:
    before = opened(outside).catalogue()
    assert before
    assert opened(outside).catalogue() == before
    assert opened(outside, add_columns=True).catalogue() == before


def test_a_normal_start_locks_no_table(postgres: Postgres) -> None:
    outside = opened(Outside(postgres.create()))

    async def work() -> None:
        holder = await asyncpg.connect(outside.url)
        try:
            async with holder.transaction():
                await holder.execute("LOCK TABLE shelves, books, tickets, diptych_keys, diptych_replays")
                found = connect(Config(database=outside.url))
                await asyncio.wait_for(found.open(model), 10)
                await found.close()
        finally:
            await holder.close()

    asyncio.run(work())


@pytest.fixture
def old(outside: Outside) -> Outside:
    """A database as an earlier version made it, opened now."""
    outside.sql(OLD_SQLITE if outside.is_sqlite else OLD_POSTGRES)
    return opened(outside)


def test_a_database_of_the_old_form_gets_its_triggers(old: Outside) -> None:
    old.sql("UPDATE shelves SET name = 'B'")
    old.sql("UPDATE tickets SET text = 'B'")
    assert old.rows("shelves", "version", "name") == [(8, "B")]
    assert old.rows("tickets", "version", "text") == [(8, "B")]
    assert old.touched("shelves") == [True]


def test_a_database_of_the_old_form_gets_the_tables_of_the_system(old: Outside) -> None:
    assert old.sql("SELECT caller, key, print, status, head, body, at FROM diptych_replays") == []
    before = old.catalogue()
    assert opened(old).catalogue() == before


def test_integer_ids_of_the_old_form_go_on_after_the_last(old: Outside) -> None:
    default_of = "1, '2026-01-01', '2026-01-01'" if old.is_sqlite else "DEFAULT, DEFAULT, DEFAULT"
    old.sql(f"INSERT INTO tickets (version, created_at, updated_at, text) VALUES ({default_of}, 'B')")
    assert old.rows("tickets", "id", "text") == [(41, "A"), (42, "B")]


def test_tables_with_an_identity_or_sequence_of_their_own_are_left_with_it(postgres: Postgres) -> None:
    outside = Outside(postgres.create())
    outside.sql(
        OLD_POSTGRES.replace("tickets (id bigint", "tickets (id bigserial").replace(
            "books (id uuid", "books (id uuid DEFAULT gen_random_uuid()"
        )
    )
    before = outside.sql("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY oid")
    opened(outside)
    assert outside.sql("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY oid")[: len(before)] == before
    with store(outside) as (runner, found):
        names = ("id", "version", "createdAt", "updatedAt", "text")
        runner.run(found.insert(model.resources["Ticket"], names, [(50, 1, LONG_AGO, LONG_AGO, "x")]))
    assert outside.sql("INSERT INTO tickets (text) VALUES ('B') RETURNING id") == [(51,)]


def test_a_trigger_or_function_of_another_form_is_made_anew(outside: Outside) -> None:
    before = opened(outside).catalogue()
    if outside.is_sqlite:
        outside.sql("DROP TRIGGER diptych_touch_books")
        outside.sql("CREATE TRIGGER diptych_touch_books AFTER UPDATE ON books BEGIN SELECT 1; END")
    else:
        outside.sql(
            "CREATE OR REPLACE FUNCTION diptych_touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        )
    outside.sql("INSERT INTO books (id, title) VALUES ('00000000-0000-7000-8000-000000000001', 'A')")
    outside.sql("UPDATE books SET title = 'B'")
    assert outside.rows("books", "version") == [(1,)]
    opened(outside).sql("UPDATE books SET title = 'C'")
    assert outside.rows("books", "version") == [(2,)]
    assert len(outside.catalogue()) == len(before)


def test_each_schema_has_parts_of_its_own(postgres: Postgres) -> None:
    first = opened(Outside(postgres.create()))
    name = first.url.partition("?")[0].rpartition("/")[2]
    first.sql(f'CREATE SCHEMA "Else"; ALTER DATABASE {name} SET search_path = "Else";')
    opened(first)
    first.sql("INSERT INTO shelves (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'A')")
    first.sql("UPDATE shelves SET name = 'B'")
    assert first.rows("shelves", "version") == [(2,)]
    assert first.sql("SELECT count(*) FROM pg_proc WHERE proname = 'diptych_touch'") == [(2,)]
    assert first.sql(COLUMNS_OF_INDEX, "shelves_name_key") == [("name",)]
    assert first.sql(COLUMNS_OF_REFERENCE, "books_shelf_id_fkey", "books") == [("shelf_id",)]


def test_a_relation_that_is_added_while_developing_has_its_foreign_key(outside: Outside) -> None:
    opened(outside, model)
    outside.sql(
        "ALTER TABLE books DROP COLUMN shelf_id"
        if not outside.is_sqlite
        else "DROP INDEX books_shelf_id; ALTER TABLE books DROP COLUMN shelf_id"
    )
    opened(outside, add_columns=True)
    outside.sql("INSERT INTO shelves (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'A')")
    outside.sql("INSERT INTO books (id, title, shelf_id) SELECT id, 'B', id FROM shelves")
    outside.sql("DELETE FROM shelves")
    assert outside.rows("books", "shelf_id", "version") == [(None, 2)]
    indexes = "SELECT name FROM sqlite_schema" if outside.is_sqlite else "SELECT relname::text FROM pg_class"
    assert ("books_shelf_id",) in outside.sql(indexes)


def test_the_default_model_has_a_trigger_on_every_table(outside: Outside) -> None:
    opened(outside, default)
    found = outside.sql(
        "SELECT tbl_name FROM sqlite_schema WHERE name LIKE 'diptych_touch_%'"
        if outside.is_sqlite
        else "SELECT c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE t.tgname = 'diptych_touch'"
    )
    assert sorted(found) == [("comments",), ("orders",), ("posts",), ("users",)]


def test_a_table_with_the_longest_name_has_its_trigger() -> None:
    for dialect in ("sqlite", "postgres"):
        assert "t" * 63 in system_objects([FeedTable("t" * 63, ("id", "version"))], dialect)[-1].create[-1]


def test_replays_are_found_by_caller_and_key_and_in_the_order_of_time(outside: Outside) -> None:
    opened(outside)
    for key in ("b", "a"):
        outside.sql(f"INSERT INTO diptych_replays (caller, key, print, at) VALUES ('me', '{key}', 'f', '{LONG_AGO}')")
    with pytest.raises((apsw.ConstraintError, asyncpg.UniqueViolationError)):
        outside.sql(f"INSERT INTO diptych_replays (caller, key, print, at) VALUES ('me', 'a', 'f', '{LONG_AGO}')")
    body = "x'00ff'" if outside.is_sqlite else r"'\x00ff'"
    outside.sql(f"UPDATE diptych_replays SET status = 201, head = '{{}}', body = {body} WHERE key = 'a'")
    assert outside.sql("SELECT key, status, head, body FROM diptych_replays ORDER BY at, key") == [
        ("a", 201, "{}", b"\x00\xff"),
        ("b", None, None, None),
    ]


# violations


def test_messages_of_sqlite_name_the_columns(new_sqlite: NewDatabase) -> None:
    outside = opened(Outside(new_sqlite()))
    outside.sql("CREATE TABLE pairs (a, b, c CHECK (c > 0), UNIQUE (a, b)); CREATE UNIQUE INDEX twice ON pairs (c * 2)")
    key = "00000000-0000-7000-8000-000000000001"
    outside.sql(f"INSERT INTO shelves (id, name) VALUES ('{key}', 'A'); INSERT INTO pairs VALUES (1, 2, 3)")
    outside.sql(f"INSERT INTO books (id, title, owner_id) VALUES ('{key}', 'A', '{key}')")
    for statement, expected in {
        "INSERT INTO shelves (id, name) VALUES ('x', 'A')": ("shelves", ("name",)),
        f"INSERT INTO shelves (id, name) VALUES ('{key}', 'B')": ("shelves", ("id",)),
        "UPDATE shelves SET name = NULL": ("shelves", ("name",)),
        "INSERT INTO pairs VALUES (1, 2, 4)": ("pairs", ("a", "b")),
        "INSERT INTO pairs VALUES (2, 1, 3)": ("", ()),
        "INSERT INTO pairs VALUES (5, 5, 0)": ("", ()),
        "UPDATE books SET shelf_id = 'x'": ("", ()),
        "DELETE FROM shelves": ("", ()),
    }.items():
        with pytest.raises(apsw.ConstraintError) as caught:
            outside.sql(statement)
        assert columns_of_violation(str(caught.value)) == expected, str(caught.value)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("ConstraintError: UNIQUE constraint failed: users.email", ("users", ("email",))),
        ("UNIQUE constraint failed: index 'name'", ("", ())),
        ("CHECK constraint failed: 'UNIQUE constraint failed: users.email'", ("", ())),
        ("UNIQUE constraint failed: odd (table).a", ("", ())),
        ("", ("", ())),
    ],
)
def test_other_messages_name_none(message: str, expected: tuple[str, tuple[str, ...]]) -> None:
    assert columns_of_violation(message) == expected


def test_the_catalogue_of_postgres_knows_the_columns(postgres: Postgres) -> None:
    outside = opened(Outside(postgres.create()))
    outside.sql(
        'CREATE TABLE "Odd ""Pairs" (a int, b int, c int, CONSTRAINT "it\'s ""odd" UNIQUE (b, a) INCLUDE (c));'
        'CREATE UNIQUE INDEX sums ON "Odd ""Pairs" ((a + b));'
        'CREATE TABLE others (x int, y int, CONSTRAINT two FOREIGN KEY (x, y) REFERENCES "Odd ""Pairs" (b, a));'
    )
    assert outside.sql(COLUMNS_OF_INDEX, "it's \"odd") == [("b",), ("a",)]
    assert outside.sql(COLUMNS_OF_INDEX, "sums") == []
    assert outside.sql(COLUMNS_OF_INDEX, "none") == []
    assert outside.sql(COLUMNS_OF_REFERENCE, "two", "others") == [("x",), ("y",)]
    assert outside.sql(COLUMNS_OF_REFERENCE, "two", "books") == []


def test_errors_of_postgres_name_what_the_catalogue_knows(postgres: Postgres) -> None:
    outside = opened(Outside(postgres.create()))
    key = "00000000-0000-7000-8000-000000000001"
    outside.sql(f"INSERT INTO shelves (id, name) VALUES ('{key}', 'A')")
    outside.sql(f"INSERT INTO books (id, title, owner_id) VALUES ('{key}', 'A', '{key}')")
    for statement, expected in {
        "INSERT INTO shelves (id, name) SELECT gen_random_uuid(), 'A'": ("shelves", [("name",)]),
        f"INSERT INTO shelves (id, name) VALUES ('{key}', 'B')": ("shelves", [("id",)]),
        "UPDATE books SET shelf_id = gen_random_uuid()": ("books", [("shelf_id",)]),
        "DELETE FROM shelves": ("books", [("owner_id",)]),
    }.items():
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as caught:
            outside.sql(statement)
        error: Any = caught.value
        unique = isinstance(error, asyncpg.UniqueViolationError)
        found = (
            outside.sql(COLUMNS_OF_INDEX, error.constraint_name)
            if unique
            else outside.sql(COLUMNS_OF_REFERENCE, error.constraint_name, error.table_name)
        )
        assert (error.table_name, found) == expected, (statement, type(error))
