"""A long value is stored when it changes and not again: what a change leaves as it was is found where it is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from diptych import Model, Resource, grant
from diptych.demo.model import model
from tests.contract.feed.scene import A, B, Library
from tests.contract.http import data
from tests.contract.http.data import ANN, POST
from tests.support.in_process import Service, encoded, in_process
from tests.support.running import NewDatabase

LONG = 20_000
SHELF = "INSERT INTO shelves (id, name, room) VALUES ('{}', '{}', '{}')"


def size(library: Library, after: int = 0) -> int:
    """Bytes that the feed has stored of rows."""
    shown = (
        "length(coalesce(old, '')) + length(coalesce(new, ''))"
        if library.is_sqlite
        else ("length(coalesce(old::text, '')) + length(coalesce(new::text, ''))")
    )
    ((found,),) = library.sql(f"SELECT coalesce(sum({shown}), 0) FROM diptych_feed WHERE position > {after}")
    return int(found)


def test_a_change_of_something_else_stores_no_long_value(seen: tuple[Library, str]) -> None:
    library, writer = seen
    library.write(writer, SHELF.format(A, "A", "x" * LONG))
    for name in "BCDE":
        library.write(writer, f"UPDATE shelves SET name = '{name}' WHERE id = '{A}'")
        library.write(writer, f"UPDATE shelves SET name = name || '!', version = version + 1 WHERE id = '{A}'")
    told = library.told()
    assert [len(change.new["room"]) for change in told if change.new] == [LONG] * 9
    assert [len(change.old["room"]) for change in told if change.old] == [LONG] * 8
    assert size(library, 1) < 8 * 1_000


def test_whatever_happens_each_change_begins_where_the_one_before_it_ended(seen: tuple[Library, str]) -> None:
    """Long and short, changed and not, deleted, replaced, moved to another id: the feed explains the tables."""
    library, writer = seen
    drawn = random.Random(11)
    replace = library.is_sqlite
    statements = []
    for number in range(60):
        row, text = drawn.choice((A, B)), drawn.choice("xyz") * drawn.choice((1, 1_024, 1_025, 3_000))
        statements.append(
            drawn.choice(
                [
                    f"INSERT INTO shelves (id, name, room) VALUES ('{row}', 'n{number}', '{text}') ON CONFLICT DO NOTHING",
                    f"UPDATE shelves SET room = '{text}' WHERE id = '{row}'",
                    f"UPDATE shelves SET room = room, name = 'm{number}' WHERE id = '{row}'",
                    f"UPDATE shelves SET name = 'v{number}', version = version + 1 WHERE id = '{row}'",
                    f"DELETE FROM shelves WHERE id = '{row}'",
                    f"INSERT OR REPLACE INTO shelves (id, name, room) VALUES ('{row}', 'r{number}', '{text}')"
                    if replace
                    else f"UPDATE shelves SET room = room || 'q' WHERE id = '{row}'",
                ]
            )
        )
    for start in range(0, len(statements), 20):
        library.write(writer, *statements[start : start + 20])
        library.told()
    assert len(library.told()) > 25


def test_triggers_of_the_owner_change_long_values_too(on_sqlite: Library) -> None:
    on_sqlite.sql(
        "CREATE TRIGGER mine AFTER UPDATE OF name ON shelves WHEN NEW.name LIKE 'l%' AND OLD.name NOT LIKE 'l%' BEGIN "
        "UPDATE shelves SET room = replace(room, 'x', 'y') || 'z' WHERE id = NEW.id; END"
    )
    on_sqlite.write("outside", SHELF.format(A, "A", "x" * LONG))
    for name in ("l1", "m", "l2", "l3"):
        on_sqlite.write("outside", f"UPDATE shelves SET name = '{name}' WHERE id = '{A}'")
        on_sqlite.told()
    on_sqlite.write("outside", "DELETE FROM shelves")
    told = on_sqlite.told()
    assert told[-1].old and told[-1].old["room"] == "y" * LONG + "zz"


# as it is told


@pytest.fixture
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, new_database(), runner, data.ROWS) as found:
        yield found


def bodies(service: Service, start: str, **more: Any) -> list[Any]:
    page = service.changes(
        f"/posts/changes?{encoded(after=start, fields='title,body', first=50, **more)}", token=service.token(ANN)
    )
    return [
        (change["kind"], change["post"] and (change["post"]["title"], change["post"]["body"]))
        for change in page["data"]
    ]


def test_a_change_shows_the_long_value_of_its_time(service: Service) -> None:
    start = service.end_of_changes()
    stream = service.follow("subscription { postChanged { post { title body } } }", token=service.token(ANN))
    first, second = "a" * LONG, "b" * LONG
    wanted = []
    for title, body in (
        ("1", first),
        ("2", first),
        ("3", second),
        ("4", second),
        ("5", "short"),
        ("6", "short"),
        ("7", first),
    ):
        service.execute(f"UPDATE posts SET title = '{title}', body = '{body}' WHERE id = '{POST[1]}'")
        wanted.append(("UPDATED", (title, body)))
        assert bodies(service, start) == wanted
    assert bodies(service, start, where={"body": {"startsWith": "b"}})[0] == ("UPDATED", ("3", second))
    assert [kind for kind, _ in bodies(service, start, where={"body": {"startsWith": "b"}})] == [
        "UPDATED",
        "UPDATED",
        "LEFT",
    ]
    service.settle()
    assert [(event["post"]["title"], event["post"]["body"]) for event in stream.events] == [pair for _, pair in wanted]
    service.execute(f"DELETE FROM posts WHERE id = '{POST[1]}'")
    assert [kind for kind, _ in bodies(service, start, where={"body": {"startsWith": "a"}})] == [
        "UPDATED",
        "UPDATED",
        "LEFT",
        "UPDATED",
        "DELETED",
    ]


class Site(Resource):
    name: str
    day: date
    access = (grant("read", "update"),)


def test_a_change_shows_a_long_text_in_a_column_of_another_type_as_it_is_stored(new_sqlite: NewDatabase) -> None:
    """SQLite stores any text anywhere; the feed leaves out only what its readers restore."""
    site = "0190a000-0009-7000-8000-000000000001"
    made = {"version": 1, "createdAt": data.day(1), "updatedAt": data.day(1)}
    rows = {"Site": [{"id": site, "name": "a", "day": "2026-01-01", **made}]}
    with asyncio.Runner() as runner, in_process(Model(Site), new_sqlite(), runner, rows) as service:
        service.execute(f"UPDATE sites SET day = '{'x' * 2_000}' WHERE id = '{site}'")
        start = service.end_of_changes()
        service.execute(f"UPDATE sites SET name = 'b' WHERE id = '{site}'")
        (shown,) = service.rows("/sites?fields=name,day")
        (change,) = service.changes(f"/sites/changes?{encoded(after=start, fields='name,day')}")["data"]
        assert change["site"] == shown == {"name": "b", "day": "x" * 2_000}
