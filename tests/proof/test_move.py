"""A move keeps everything: random rows of every type go to the other store and back, and are what they were.

Runs that are interrupted anywhere are finished by the next; a row or a change that differs is found before the switch.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from diptych import Model, Resource, grant
from diptych.compile.system.counters import CREATE_COUNTERS
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.postgres.store import PostgresStore
from diptych.errors import StartError
from diptych.move import runner as runner_of_moves
from diptych.move.postgres import PostgresSide
from diptych.move.runner import Moved, MoveRun
from diptych.move.side import Row, Side, StoredChange
from diptych.move.sqlite import SqliteSide
from tests.support import edge_cases
from tests.support.effort import long_where, scaled
from tests.support.existing import run_sql
from tests.support.in_process import in_process
from tests.support.model_files import model_of
from tests.support.running import ROOT, NewDatabase, Postgres, diptych

VALUES = """
class Address(Value):
    street: str
    city: str | None
    floor: int


class Ticket(Resource, trash=timedelta(days=30)):
    number: Annotated[int, Counter()] = auto()
    title: str
    at: time | None
    lasts: timedelta | None
    key: UUID | None
    tags: list[str] | None
    ratios: list[float]
    prices: list[Annotated[Decimal, Digits(8, 2)]]
    address: Address | None
    anything: Json | None
    search = Search("title")
    access = (grant("read", "create", "update", "delete"),)
"""


def path_of(database: str) -> str:
    return database.removeprefix("sqlite:///")


def side_of(database: str) -> Side:
    if database.startswith("sqlite"):
        return SqliteSide(path_of(database))
    return PostgresSide(PostgresStore(database))


async def move(model: Model, source: Side, target: Side, *, switch: bool = True) -> Moved:
    await source.open(model)
    await target.open(model)
    try:
        return await MoveRun(model, source, target, lambda label, done, total: None).run(switch=switch)
    finally:
        await source.close()
        await target.close()


def contents(database: str) -> dict[str, list[Any]]:
    """All that a SQLite database holds, in a form that can be compared: images of the feed are JSON."""
    db = apsw.Connection(path_of(database), flags=apsw.SQLITE_OPEN_READONLY)
    ours = "type = 'table' AND name NOT LIKE 'diptych_search%' AND name <> 'diptych_moved'"
    tables = [name for (name,) in db.execute(f"SELECT name FROM sqlite_schema WHERE {ours}")]
    held: dict[str, list[Any]] = {table: db.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables}
    held["diptych_feed"] = [
        (*plain, *(text and sorted(json.loads(text).items()) for text in (old, new)))
        for *plain, old, new in held["diptych_feed"]
    ]
    objects = "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'diptych_closed%' AND name <> 'diptych_moved'"
    return {**{name: sorted(rows, key=repr) for name, rows in held.items()}, "": sorted(db.execute(objects), key=repr)}


def fill(database: str, seed: int) -> None:
    """Random rows of the model of edge cases, and changes of them."""

    async def work() -> None:
        store = connect(Config(database=database))
        await store.open(edge_cases.model)
        await edge_cases.load(store, edge_cases.model, edge_cases.rows(edge_cases.model, seed, 30))
        await store.close()

    asyncio.run(work())
    db = apsw.Connection(path_of(database))
    long = "x" * 3_000
    for resource in edge_cases.model.resources.values():
        db.execute(f'UPDATE "{resource.table}" SET created_at = updated_at WHERE version < 2147483000')
    db.execute("UPDATE things SET text = ? WHERE version < 2147483000 AND id % 2", (long,))
    db.execute("UPDATE things SET count = 7 WHERE version < 2147483000")
    db.execute("DELETE FROM taggings WHERE id IN (SELECT id FROM taggings LIMIT 3)")
    db.close()


@pytest.mark.parametrize("seed", range(scaled(40, 1)))
def test_rows_of_every_type_come_back_as_they_were(seed: int, new_sqlite: NewDatabase, postgres: Postgres) -> None:
    first, between, last = new_sqlite(), postgres.create(), new_sqlite()
    fill(first, seed)
    before = contents(first)
    there = asyncio.run(move(edge_cases.model, side_of(first), side_of(between)))
    back = asyncio.run(move(edge_cases.model, side_of(between), side_of(last)))
    assert contents(last) == before
    assert (there.rows, there.changes) == (back.rows, back.changes)
    assert there.rows > 100 and there.changes > 200


def test_values_counters_searches_and_the_trash_go_along(new_sqlite: NewDatabase, postgres: Postgres) -> None:
    model = model_of(VALUES)
    ticket: dict[str, Any] = {
        "title": "Broken lamp",
        "at": "08:30:00.000001",
        "lasts": "-P1DT2H",
        "ratios": [1.0, 1e-7, -1e300],
    }
    ticket |= {"key": "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "tags": ["ü,", 'q"'], "prices": ["1.50", "-2.00"]}
    ticket |= {"address": {"street": "Hill", "city": None, "floor": 3}, "anything": {"b": [1.0, {}], "a": 2}}
    bare = {"title": "Lamp and desk", "ratios": [], "prices": []}
    databases = new_sqlite(), postgres.create(), new_sqlite()
    with asyncio.Runner() as runner, in_process(model, databases[0], runner) as service:
        ids = [service.send_json("POST", "/tickets", body).json()["id"] for body in (ticket, bare, bare)]
        assert service.send("DELETE", f"/tickets/{ids[2]}").status == 204
        pages = ["/tickets", "/tickets?deleted=include", "/tickets?search=lamp", "/tickets?where[address.street]=Hill"]
        before = [service.get(page).json() for page in pages]
    for source, target in itertools.pairwise(databases):
        asyncio.run(move(model, side_of(source), side_of(target)))
        with asyncio.Runner() as runner, in_process(model, target, runner) as service:
            assert [service.get(page).json() for page in pages] == before
            made = service.send_json("POST", "/tickets", bare).json()
            assert made["number"] == 3 + databases.index(target)
            assert service.send("DELETE", f"/tickets/{made['id']}").status == 204
            before = [service.get(page).json() for page in pages]


def test_a_database_whose_counters_are_gone_is_moved(new_sqlite: NewDatabase, postgres: Postgres) -> None:
    class Note(Resource):
        text: str
        access = (grant("read", "create"),)

    model, databases = Model(Note), (new_sqlite(), postgres.create(), new_sqlite())
    with asyncio.Runner() as runner, in_process(model, databases[0], runner) as service:
        service.execute(CREATE_COUNTERS["sqlite"])  # as migrations leave it
        service.execute("INSERT INTO diptych_counters (name, scope, last) VALUES ('notes.number', '', 3)")
    for source, target in itertools.pairwise(databases):
        asyncio.run(move(model, side_of(source), side_of(target)))
        with asyncio.Runner() as runner, in_process(model, target, runner) as service:
            assert service.send_json("POST", "/notes", {"text": "a"}).status == 201


class Interrupted(Exception):
    """A process that was killed."""


class Breaking:
    """A target whose n-th write never comes."""

    def __init__(self, target: Side, after: int) -> None:
        self.target, self.left = target, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Interrupted

    async def put(self, table: str, ids: Sequence[str], rows: Sequence[Row], state: Mapping[str, str]) -> None:
        self._step()
        await self.target.put(table, ids, rows, state)

    async def put_changes(self, changes: Sequence[StoredChange], state: Mapping[str, str]) -> None:
        self._step()
        await self.target.put_changes(changes, state)

    async def put_system(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._step()
        await self.target.put_system(table, columns, rows)

    async def complete(self, *arguments: Any) -> None:
        self._step()
        await self.target.complete(*arguments)
        self._step()


@pytest.mark.parametrize("way", ["to PostgreSQL", "to SQLite"])
def test_a_run_that_is_interrupted_anywhere_is_finished_by_the_next(
    way: str, new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    first, second, last = new_sqlite(), postgres.create(), new_sqlite()
    fill(first, 1)
    before = contents(first)
    if way == "to SQLite":
        asyncio.run(move(edge_cases.model, side_of(first), side_of(second)))
        source, target = second, last
    else:
        source, target = first, second
    breaks, done = 0, False
    for after in (0, 1, 2, 4, 7, 11, 16, 20, 23, 30, 45, 60, 1_000):
        try:
            asyncio.run(move(edge_cases.model, side_of(source), Breaking(side_of(target), after)))
            done = True
            break
        except Interrupted:
            breaks += 1
    assert done and breaks >= 8
    if way == "to PostgreSQL":
        asyncio.run(move(edge_cases.model, side_of(second), side_of(last)))
    assert contents(last) == before


PAGE = """
class Page(Resource):
    slug: Annotated[str, Unique()]
    access = (grant("read", "create", "update", "delete"),)
"""


class Passing:
    """A source whose pages take unique values from each other: after each chunk of the copy, and for the last time
    between the head of the feed and the rows of a round."""

    def __init__(self, database: str, slugs: dict[str, str], passing: list[tuple[str, str]]) -> None:
        self.side = side_of(database)
        self.database, self.slugs, self.passing = database, slugs, passing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.side, name)

    async def rows_of(self, table: str, ids: Sequence[str]) -> list[Row]:
        if len(self.passing) == 1:
            self._pass_on()
        return await self.side.rows_of(table, ids)

    def progress(self, label: str, done: int, total: int) -> None:
        if label == "Copying pages" and len(self.passing) > 1:
            self._pass_on()

    def _pass_on(self) -> None:
        giver, taker = self.passing.pop(0)
        taken, self.slugs[giver] = self.slugs[giver], f"given up {len(self.passing)}"
        self.slugs[taker] = taken
        for id in (giver, taker):
            run_sql(self.database, f"UPDATE pages SET slug = '{self.slugs[id]}' WHERE id = '{id}'")


@pytest.mark.parametrize("way", ["to PostgreSQL", "to SQLite"])
def test_unique_values_that_pass_from_row_to_row_meanwhile_are_moved(
    way: str, new_sqlite: NewDatabase, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(PAGE)
    first, second = new_sqlite(), postgres.create()
    source, target = (first, second) if way == "to PostgreSQL" else (second, first)
    with asyncio.Runner() as runner, in_process(model, source, runner) as service:
        rows = [service.send_json("POST", "/pages", {"slug": f"s{number}"}).json() for number in range(8)]
    slugs = {row["id"]: row["slug"] for row in rows}
    ids = sorted(slugs)
    passing = Passing(source, slugs, [(ids[0], ids[5]), (ids[0], ids[6]), (ids[1], ids[5])])

    async def work() -> Moved:
        await passing.side.open(model)
        there = side_of(target)
        await there.open(model)
        try:
            return await MoveRun(model, passing, there, passing.progress).run(switch=True)
        finally:
            await passing.side.close()
            await there.close()

    monkeypatch.setattr(runner_of_moves, "_CHUNK", 2)
    assert asyncio.run(work()).rows == 8
    assert not passing.passing
    assert {row[0]: row[1] for row in run_sql(target, "SELECT CAST(id AS text), slug FROM pages")} == slugs


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("UPDATE things SET count = count + 1 WHERE id = (SELECT max(id) FROM things)", "of things differs"),
        ("DELETE FROM tags WHERE id = (SELECT max(id::text) FROM tags)::uuid", "rows in the source"),
        (
            "INSERT INTO tags (id, word, hidden) SELECT gen_random_uuid(), word || 'z', hidden FROM tags LIMIT 1",
            "rows in the source",
        ),
        ("DELETE FROM diptych_feed WHERE position = 5", "of the feed differs"),
        ("UPDATE diptych_feed SET mark = mark + 1 WHERE position = 9", "The change 9 of the feed differs"),
    ],
)
def test_what_differs_is_found_before_the_switch(
    harm: str, said: str, new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    source, target = new_sqlite(), postgres.create()
    fill(source, 2)
    asyncio.run(move(edge_cases.model, side_of(source), side_of(target), switch=False))
    postgres.execute(harm, target.partition("?")[0].rpartition("/")[2])
    with pytest.raises(StartError, match=said):
        asyncio.run(move(edge_cases.model, side_of(source), side_of(target)))
    assert not Path(path_of(source)).with_suffix(".moved").exists()
    db = apsw.Connection(path_of(source))
    assert db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'diptych_moved'").fetchall() == []


def interrupted(side: Side, method: str) -> Side:
    """A side whose method is the last thing that happens: the process is killed then."""

    async def stop(*values: Any) -> None:
        raise Interrupted

    setattr(side, method, stop)
    return side


@long_where(way="to PostgreSQL", window="before the source is closed")
@long_where(way="to SQLite", window="after it")
@pytest.mark.parametrize("way", ["to PostgreSQL", "to SQLite"])
@pytest.mark.parametrize("window", ["before the source is closed", "after it"])
def test_a_switch_that_is_interrupted_is_finished(
    way: str, window: str, new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    """Where the target is complete already, and its triggers are there: what comes next is not logged twice."""
    first, second, last = new_sqlite(), postgres.create(), new_sqlite()
    fill(first, 3)
    source, target = first, second
    if way == "to SQLite":
        asyncio.run(move(edge_cases.model, side_of(first), side_of(second)))
        source, target = second, last
    sides = side_of(source), side_of(target)
    if window == "after it":
        interrupted(sides[1], "release")
    else:
        interrupted(sides[0], "close_to_writes")
    with pytest.raises(Interrupted):
        asyncio.run(move(edge_cases.model, *sides))
    if window == "after it":
        done = diptych("move", source, target, "--model", "tests.support.edge_cases:model", cwd=ROOT)
        assert "The switch was made before" in done.stderr, done.stderr
    else:
        run_sql(source, "UPDATE things SET count = 8 WHERE version < 2147483000")
        asyncio.run(move(edge_cases.model, side_of(source), side_of(target)))
    if way == "to PostgreSQL":
        source, target = second, last
        asyncio.run(move(edge_cases.model, side_of(source), side_of(target)))
    changes = contents(last)["diptych_feed"]
    assert len(changes) == run_sql(source, "SELECT count(*) FROM diptych_feed")[0][0]
    before = contents(first)
    if window == "after it":
        assert contents(last) == before
    else:
        assert len(changes) == len({change[0] for change in changes}) > len(before["diptych_feed"]) - 1
        assert {name: len(rows) for name, rows in contents(last).items() if name != "diptych_feed"} == {
            name: len(rows) for name, rows in before.items() if name != "diptych_feed"
        }


def test_a_chunk_is_read_by_an_index(
    new_sqlite: NewDatabase, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never by a sort of the whole table, though there are no statistics: 10⁶ rows took hours then."""
    first, second = new_sqlite(), postgres.create()
    fill(first, 1)
    asyncio.run(move(edge_cases.model, side_of(first), side_of(second)))
    fetch, plans = asyncpg.Connection.fetch, []

    async def explained(self: Any, query: str, *values: Any) -> Any:
        plans.append("\n".join([row[0] for row in await fetch(self, f"EXPLAIN {query}", *values)]))
        return await fetch(self, query, *values)

    async def read() -> None:
        side = PostgresSide(PostgresStore(second))
        await side.open(edge_cases.model)
        monkeypatch.setattr(asyncpg.Connection, "fetch", explained)
        for resource in edge_cases.model.resources.values():
            rows = await side.rows(resource.table, None, 2)
            place = [field.name for field in resource.fields.values() if field.stored].index("id")
            await side.rows(resource.table, rows[-1][place], 2)
        await side.changes(0, 100, 2)
        monkeypatch.undo()
        await side.close()

    asyncio.run(read())
    for plan in plans:
        assert "Index Scan" in plan and "Sort" not in plan and "Seq Scan" not in plan, plan
    assert len(plans) > 10
