"""The feed is in every database that is opened, follows its columns, and lets nobody bypass it or abuse it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import asyncpg
import pytest

from diptych import Model, OnDelete, Resource, Unique
from tests.contract.feed.scene import A, B, C, Library
from tests.support.behind_pooler import needs_no_pooler
from tests.support.running import NewDatabase, Postgres

SHELF = "INSERT INTO shelves (id, name) VALUES ('{}', '{}')"


def kinds(library: Library) -> list[tuple[str, str]]:
    return [(change.kind, change.row_id) for change in library.told()]


# databases of an earlier form


def without_feed(library: Library) -> None:
    """Take all of the feed away."""
    if not library.is_sqlite:
        for function in ("feed", "truncate", "number", "head", "trim"):
            library.sql(f"DROP FUNCTION diptych_{function} CASCADE")
        library.sql("DROP TABLE diptych_feed, diptych_feed_head")
        return
    for (name,) in library.sql("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
        library.sql(f"DROP TRIGGER {name}")
    for table in ("diptych_feed", "diptych_feed_head", "diptych_feed_replaced"):
        library.sql(f"DROP TABLE {table}")


def test_a_database_that_has_no_feed_gets_it(library: Library) -> None:
    without_feed(library)
    library.write("outside", SHELF.format(A, "A"))
    library = Library(library.url)
    library.write("outside", SHELF.format(B, "B"), f"DELETE FROM shelves WHERE id = '{A}'")
    if not library.is_sqlite:
        library.sql("SELECT diptych_number(10)")
    assert library.sql("SELECT position, row_id FROM diptych_feed ORDER BY position") == [(1, B), (2, A)]
    assert len(library.use(lambda store: store.head()).feed) == 16


def test_a_database_that_has_all_is_left_alone(library: Library) -> None:
    told = (
        "SELECT rowid, * FROM sqlite_schema"
        if library.is_sqlite
        else (
            "SELECT oid::text, xmin::text FROM pg_proc WHERE proname ~ 'diptych' UNION ALL "
            "SELECT oid::text, xmin::text FROM pg_trigger UNION ALL SELECT feed, xmin::text FROM diptych_feed_head"
        )
    )
    before = sorted(map(str, library.sql(told)))
    Library(library.url)
    assert sorted(map(str, library.sql(told))) == before


def test_a_trigger_or_function_of_an_earlier_form_is_made_anew(library: Library) -> None:
    if library.is_sqlite:
        library.sql(
            "DROP TRIGGER diptych_created_shelves",
            "CREATE TRIGGER diptych_created_shelves AFTER INSERT ON shelves BEGIN SELECT 1; END",
        )
    else:
        library.sql(
            "CREATE OR REPLACE FUNCTION diptych_feed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
    library = Library(library.url)
    library.write("outside", SHELF.format(A, "A"))
    assert kinds(library) == [("created", A)]


# columns


class Plain(Resource):
    text: str


class Wider(Resource, plural="plains"):
    text: str
    size: int = 7
    note: str | None = None


Wider.__name__ = "Plain"


def test_a_column_that_is_added_is_told_from_then_on(new_database: NewDatabase) -> None:
    library = narrow = Library(new_database(), Model(Plain))
    narrow.sql(f"INSERT INTO plains (id, text) VALUES ('{A}', 'before')")
    wide = Library.__new__(Library)
    wide.url, wide.is_sqlite, wide.model = library.url, library.is_sqlite, Model(Wider)
    wide.use(_nothing, add_columns=True)
    wide.sql(
        f"INSERT INTO plains (id, text, note) VALUES ('{B}', 'after', 'n')",
        f"UPDATE plains SET size = 8 WHERE id = '{A}'",
    )
    if not wide.is_sqlite:
        wide.sql("SELECT diptych_number(10)")
    field = "json_extract({}, '$.{}')" if wide.is_sqlite else "{}->>'{}'"
    shown = ", ".join(field.format(*pair) for pair in (("old", "size"), ("new", "size"), ("new", "note")))
    found = wide.sql(f"SELECT {shown} FROM diptych_feed WHERE resource = 'plains' ORDER BY position")
    assert [tuple(value if value is None else str(value) for value in row) for row in found] == [
        (None, None, None),
        (None, "7", "n"),
        ("7", "8", None),
    ]


async def _nothing(_: object) -> None: ...


# triggers of others, which change the row once more


TRIGGERS = {
    "updates after an insert": ("INSERT", "UPDATE shelves SET room = 'r' || name WHERE id = NEW.id"),
    "updates after an insert, version and all": (
        "INSERT",
        "UPDATE shelves SET room = 'r' || name, version = version + 1 WHERE id = NEW.id",
    ),
    "updates after an update": ("UPDATE OF name", "UPDATE shelves SET room = 'r' || name WHERE id = NEW.id"),
    "updates after an update, version and all": (
        "UPDATE OF name",
        "UPDATE shelves SET room = 'r' || name, version = version + 1 WHERE id = NEW.id",
    ),
    "deletes after an insert": ("INSERT", "DELETE FROM shelves WHERE id = NEW.id AND name = 'B'"),
    "deletes after an update": ("UPDATE OF name", "DELETE FROM shelves WHERE id = NEW.id"),
    "inserts after a deletion": ("DELETE", "INSERT INTO books (id, title) VALUES (OLD.id, OLD.name)"),
}


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("what", TRIGGERS)
def test_a_trigger_of_others_on_sqlite(on_sqlite: Library, what: str, recursive: bool) -> None:
    event, body = TRIGGERS[what]
    on_sqlite.sql(f"CREATE TRIGGER own AFTER {event} ON shelves BEGIN {body}; END")
    _stir(on_sqlite, "recursive" if recursive else "outside")


@pytest.mark.parametrize("what", TRIGGERS)
def test_a_trigger_of_others_on_postgres(on_postgres: Library, what: str) -> None:
    """Its name begins with a capital: it sorts before most."""
    event, body = TRIGGERS[what]
    on_postgres.sql(f"CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NULL; END $$")
    on_postgres.sql(f'CREATE TRIGGER "Own" AFTER {event} ON shelves FOR EACH ROW EXECUTE FUNCTION own()')
    _stir(on_postgres, "outside")


def _stir(library: Library, writer: str) -> None:
    library.write(writer, SHELF.format(A, "A"), SHELF.format(B, "B"), f"UPDATE shelves SET name = 'C' WHERE id = '{A}'")
    library.write(
        writer,
        f"UPDATE shelves SET name = 'D', version = version + 1 WHERE id = '{A}'",
        "UPDATE shelves SET room = 'x'",
    )
    library.write(writer, "DELETE FROM shelves")
    changes = [change for change in library.told() if change.old is not None or change.new is not None]
    for change in changes:
        if change.kind == "updated":
            assert change.old and change.new and change.new["version"] > change.old["version"]


# INSERT OR REPLACE


class Pair(Resource):
    left: Annotated[str, Unique()]
    right: Annotated[str | None, Unique()] = None
    other: Annotated[Pair | None, OnDelete("set null")] = None


@pytest.mark.parametrize("writer", ["ours", "outside", "recursive", "python"])
def test_what_is_replaced_was_deleted(on_sqlite: Library, writer: str) -> None:
    on_sqlite.write(
        writer,
        SHELF.format(A, "A"),
        SHELF.format(B, "B"),
        f"INSERT INTO books (id, title, owner_id) VALUES ('{A}', 'a', '{A}')",
    )
    on_sqlite.write(writer, f"REPLACE INTO shelves (id, name) VALUES ('{A}', 'B')")
    told = on_sqlite.told()[3:]
    assert sorted((change.kind, change.resource, change.row_id) for change in told[:-1]) == [
        ("deleted", "books", A),
        ("deleted", "shelves", A),
        ("deleted", "shelves", B),
    ]
    assert (told[-1].kind, told[-1].row_id, on_sqlite.sql("SELECT * FROM diptych_feed_replaced")) == ("created", A, [])


def test_what_several_values_replace_is_told(new_sqlite: NewDatabase) -> None:
    library = Library(new_sqlite(), Model(Pair))
    insert = "INSERT OR {} INTO pairs (id, left, right) VALUES ('{}', '{}', {})"
    for row in ((A, "a", "NULL"), (B, "b", "'x'")):
        library.sql(insert.format("FAIL", *row))
    library.sql(
        insert.format("IGNORE", C, "a", "'x'"),
        insert.format("REPLACE", C, "c", "NULL"),
        insert.format("REPLACE", C, "a", "'x'"),
    )
    found = library.sql("SELECT row_id, old IS NULL, new IS NULL FROM diptych_feed ORDER BY position")
    assert found[:3] == [(A, 1, 0), (B, 1, 0), (C, 1, 0)]
    assert sorted(found[3:6]) == [(A, 0, 1), (B, 0, 1), (C, 0, 1)] and found[6:] == [(C, 1, 0)]


# nobody bypasses it, or abuses it


def test_truncate_is_refused(on_postgres: Library) -> None:
    on_postgres.write("outside", SHELF.format(A, "A"))
    for statement in ("TRUNCATE tickets", "TRUNCATE shelves CASCADE"):
        with pytest.raises(asyncpg.RaiseError, match=r"TRUNCATE of \w+ would be seen by nobody"):
            on_postgres.sql(statement)
    assert kinds(on_postgres) == [("created", A)]


def test_nobody_else_tells_of_what_did_not_happen(on_postgres: Library) -> None:
    on_postgres.write("stranger", SHELF.format(A, "A"))
    forged = "CREATE TABLE elsewhere.mine (id uuid); CREATE TRIGGER forged AFTER INSERT ON elsewhere.mine FOR EACH ROW EXECUTE FUNCTION {}"

    async def work(function: str) -> None:
        connection = await asyncpg.connect(on_postgres.url)
        try:
            await connection.execute("GRANT ALL ON SCHEMA elsewhere TO stranger; SET ROLE stranger")
            await connection.execute(forged.format(function))
        finally:
            await connection.close()

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        asyncio.run(work("diptych_feed('shelves')"))


@needs_no_pooler(reason="the pooler has sessions with the search_path of before, until its owner has it reconnect")
def test_a_schema_with_another_name_has_a_feed_that_works(postgres: Postgres) -> None:
    library = Library(postgres.create())
    library.write("outside", SHELF.format(A, "A"))
    name = library.url.partition("?")[0].rpartition("/")[2]
    library.sql('ALTER SCHEMA public RENAME TO "Else"')
    library.sql(f'ALTER DATABASE {name} SET search_path = "Else"')
    library = Library(library.url)
    library.write("outside", SHELF.format(B, "B"))
    assert kinds(library) == [("created", A), ("created", B)]


def test_rows_of_a_partition_are_those_of_its_table(postgres: Postgres) -> None:
    url = postgres.create()
    library = Library(url)
    library.sql("DROP TABLE books")
    library.sql(
        "CREATE TABLE books (id uuid PRIMARY KEY, version integer NOT NULL DEFAULT 1, created_at timestamptz NOT NULL "
        'DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), title text COLLATE "C" NOT NULL, '
        "shelf_id uuid REFERENCES shelves (id) ON DELETE SET NULL, "
        "owner_id uuid REFERENCES shelves (id) ON DELETE CASCADE) PARTITION BY HASH (id)"
    )
    for part in range(2):
        library.sql(f"CREATE TABLE books_{part} PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER {part})")
    library = Library(url)
    books = [f"INSERT INTO books (id, title) VALUES ('{key}', 'x')" for key in (A, B, C)]
    library.write("outside", *books, "UPDATE books SET title = 'y'")
    assert [change.resource for change in library.told()] == ["books"] * 6
