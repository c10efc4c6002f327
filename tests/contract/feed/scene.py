"""A small library, whoever may write to it, and the feed that must tell of all that they did.

    library.write("outside", "INSERT INTO shelves (id, name) VALUES (…)")     one transaction
    assert library.told() == [("shelves", A, None, {"name": "A", …})]          and the feed explains the tables

A feed explains the tables if it leads from nothing to what they hold: every change begins with the row as the one
before it left it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import apsw
import asyncpg

from diptych import Model, OnDelete, Resource, Unique
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.model.defs import ResourceDef
from tests.contract.feed.unfold import unfold

T = TypeVar("T")


class Shelf(Resource, plural="shelves"):
    name: Annotated[str, Unique()]
    room: str = ""


class Book(Resource):
    title: str
    shelf: Annotated[Shelf | None, OnDelete("set null")] = None
    owner: Annotated[Shelf | None, OnDelete("cascade")] = None


class Ticket(Resource, ids="integer"):
    text: str
    weight: float = 0.1
    parent: Annotated[Ticket | None, OnDelete("cascade")] = None


model = Model(Shelf, Book, Ticket)
TABLES = ("shelves", "books", "tickets")
Row = dict[str, Any]


class Told(NamedTuple):
    """A change as the feed has it."""

    resource: str
    row_id: str
    old: Row | None
    new: Row | None

    @property
    def kind(self) -> str:
        return "deleted" if self.new is None else "created" if self.old is None else "updated"


def uuid(number: int) -> str:
    return f"00000000-0000-7000-8000-{number:012x}"


A, B, C, D = map(uuid, range(0xA, 0xE))

WRITERS = {
    "sqlite": ("ours", "outside", "recursive", "python"),
    "postgres": ("ours", "outside", "stranger"),
}
"""Who writes: Diptych's own writer; SQL from outside; the same with triggers that may fire themselves; the SQLite of
Python, which is another one; a role that has no right to the feed, with settings of its own."""
# The library of Python must not have a file open in a process in which ours has.
_PYTHON = """
import json, sqlite3, sys
path, statements = json.load(sys.stdin)
db = sqlite3.connect(path, isolation_level=None)
db.execute("PRAGMA foreign_keys = ON")
db.execute("BEGIN IMMEDIATE")
for statement in statements:
    db.execute(statement).fetchall()
db.execute("COMMIT")
"""


class Library:
    """A database of the small library."""

    def __init__(self, url: str, model: Model = model) -> None:
        self.url = url
        self.model = model
        self.is_sqlite = url.startswith("sqlite:")
        self.use(_nothing)

    def use(self, work: Callable[[Store], Awaitable[T]], *, add_columns: bool = False) -> T:
        """Open the store, do some work with it, and close it."""

        async def opened() -> T:
            store = connect(Config(database=self.url))
            await store.open(self.model, add_columns=add_columns)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(opened())

    # writing

    def write(self, writer: str, *statements: str) -> None:
        """Run statements in one transaction, as somebody."""
        if writer == "ours":
            self.use(lambda store: store.write(lambda: script(statements)))
        elif writer == "python":
            given = json.dumps([self._path, statements])
            done = subprocess.run(
                [sys.executable, "-c", _PYTHON], input=given, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        elif self.is_sqlite:
            self.sql("BEGIN IMMEDIATE", *statements, "COMMIT", recursive=writer == "recursive")
        else:
            asyncio.run(self._postgres(statements, stranger=writer == "stranger"))

    def sql(self, *statements: str, recursive: bool = False) -> list[Any]:
        """Run statements from outside; gives the rows of the last."""
        if not self.is_sqlite:
            return asyncio.run(self._postgres(statements))
        connection = apsw.Connection(self._path)
        try:
            connection.execute(f"PRAGMA recursive_triggers = {int(recursive)}").fetchall()
            connection.execute("PRAGMA foreign_keys = ON").fetchall()
            found: list[Any] = []
            for statement in statements:
                found = list(connection.execute(statement))
            return found
        finally:
            connection.close()

    async def _postgres(self, statements: Sequence[str], *, stranger: bool = False) -> list[Any]:
        connection = await asyncpg.connect(self.url)
        try:
            if stranger:
                await connection.execute(_STRANGER)
                statements = [_qualified(statement) for statement in statements]
            found: list[Any] = []
            async with connection.transaction():
                for statement in statements:
                    found = [tuple(row) for row in await connection.fetch(statement)]
            return found
        finally:
            await connection.close()

    @property
    def _path(self) -> str:
        return self.url.removeprefix("sqlite:///")

    # reading

    def told(self) -> list[Told]:
        """All that the feed tells, in its order; held against the tables."""
        while not self.is_sqlite and self.sql("SELECT diptych_number(100)") != [(0,)]:
            pass
        rows = self.sql("SELECT resource, row_id, old, new FROM diptych_feed ORDER BY position")
        tables = {table: self.rows(table) for table in TABLES}
        stored = [(resource, row_id, load(old), load(new)) for resource, row_id, old, new in rows]
        texts = {each.table: _texts(each) for each in self.model.resources.values()} if self.is_sqlite else None
        found = [Told(*each) for each in unfold(stored, lambda table, row_id: tables[table].get(row_id), texts)]
        assert explained(found) == {name: there for name, there in tables.items() if there}
        return found

    def rows(self, table: str) -> dict[str, Row]:
        """A table as it is now, in the form that the feed has rows in."""
        if not self.is_sqlite:
            found = [json.loads(row) for (row,) in self.sql(f"SELECT row_to_json(t) FROM {table} t")]
            return {str(row["id"]): row for row in found}
        names = [name for _, name, *_ in self.sql(f"PRAGMA table_info({table})")]
        return {str(row[0]): dict(zip(names, row, strict=True)) for row in self.sql(f"SELECT * FROM {table}")}


def load(text: str | None) -> Row | None:
    return None if text is None else json.loads(text)


def hasten(library: Library) -> None:
    """Have it kept every few changes, and not every few thousand, up to where all are settled."""
    ((text,),) = library.sql("SELECT pg_get_functiondef('diptych_round'::regproc)")
    assert text.count("+ 4000") == 1
    library.sql(text.replace("+ 4000", "+ 20"))


def explained(changes: Sequence[Told]) -> dict[str, dict[str, Row]]:
    """What the tables must hold after these changes; fails where one does not fit the one before it."""
    tables: dict[str, dict[str, Row]] = {}
    for change in changes:
        table = tables.setdefault(change.resource, {})
        assert table.pop(change.row_id, None) == change.old, change
        if change.new is not None:
            assert str(change.new["id"]) == change.row_id, change
            table[change.row_id] = change.new
    return {name: table for name, table in tables.items() if table}


def script(statements: Sequence[str]) -> Script[None]:
    """Statements, one after the other."""
    for statement in statements:
        yield Step(statement, ())


def _texts(resource: ResourceDef) -> list[str]:
    return [field.column for field in resource.fields.values() if field.scalar.sqlite == "TEXT"]


async def _nothing(_: Store) -> None: ...


# It may write to the tables of the model, and nothing else; whatever it leaves unsaid is found somewhere else.
_STRANGER = """
    DO $$ BEGIN CREATE ROLE stranger; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
    GRANT SELECT, INSERT, UPDATE, DELETE ON shelves, books, tickets TO stranger;
    CREATE SCHEMA IF NOT EXISTS elsewhere;
    GRANT USAGE ON SCHEMA elsewhere TO stranger;
    CREATE TABLE IF NOT EXISTS elsewhere.diptych_feed ();
    CREATE OR REPLACE FUNCTION elsewhere.row_to_json(record) RETURNS json LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    SET search_path = elsewhere, pg_catalog;
    SET extra_float_digits = -15;
    SET TimeZone = 'Pacific/Chatham';
    SET ROLE stranger;
"""


def _qualified(statement: str) -> str:
    for table in TABLES:
        statement = statement.replace(f" {table}", f" public.{table}")
    return statement


def pairs() -> Iterator[tuple[str, str]]:
    """Every store with everyone who may write to it."""
    return ((store, writer) for store, writers in WRITERS.items() for writer in writers)
