"""What the feed has of a row is what the row had, to the last digit, whatever its type and whoever wrote it."""

from __future__ import annotations

import itertools
import json
import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from diptych import Model, Resource
from diptych.model.defs import ResourceDef
from diptych.model.scalars import JSON
from tests.contract.feed.scene import A, Library
from tests.support import edge_cases
from tests.support.running import NewDatabase, Postgres

FLOATS = (
    0.1,
    0.1 + 0.2,
    1e300,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    -1e22,
    123456789012345680.0,
    0.0,
)
TEXTS = (
    "",
    "'",
    '"',
    "\\",
    "a\nb\tc",
    "\x01\x1f\x7f",
    "\u2028\ufeff\ufffd",
    "😀👩‍👩‍👧",
    "é",
    "null",
    '{"a": 1}',
    "$.a",
    "x" * 5000,
)
DOCUMENTS = ("null", "1.10", '{"b": 1, "a": [1e400, 1.0, "\\ud83d\\ude00"],  "b": 2}', "[" * 60 + "]" * 60)


def floats() -> Iterator[float]:
    """Hard ones, and any of all that there are."""
    drawn = random.Random(7)
    patterns = (struct.unpack("d", drawn.randbytes(8))[0] for _ in itertools.count())
    return itertools.chain(FLOATS, itertools.islice(filter(math.isfinite, patterns), 200))


def drawn(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of every type, whose versions can move on."""
    data = edge_cases.rows(edge_cases.model, seed)
    for row in itertools.chain(*data.values()):
        row["version"] = min(row["version"], 1_000)
    return data


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_floats_are_exact(seen: tuple[Library, str]) -> None:
    library, writer = seen
    if writer == "python":
        pytest.skip("the JSON of an older SQLite has fewer digits")
    wanted = list(floats())
    values = ", ".join(f"({n}, 't', {value!r})" for n, value in enumerate(wanted, 1))
    library.write(writer, f"INSERT INTO tickets (id, text, weight) VALUES {values}", "UPDATE tickets SET text = 'u'")
    told = library.told()
    for rows in ([change.new for change in told], [change.old for change in told[len(wanted) :]]):
        assert {int(row["id"]): row["weight"] for row in rows if row} == dict(enumerate(wanted, 1))
    if library.is_sqlite:
        assert library.sql(
            "SELECT count(*) FROM diptych_feed f JOIN tickets t ON t.id = f.row_id "
            "WHERE json_extract(f.new, '$.weight') IS NOT t.weight"
        ) == [(0,)]


def test_texts_are_exact(seen: tuple[Library, str]) -> None:
    library, writer = seen
    values = ", ".join(f"({n}, {literal(text)})" for n, text in enumerate(TEXTS, 1))
    library.write(writer, f"INSERT INTO tickets (id, text) VALUES {values}", "DELETE FROM tickets")
    told = library.told()
    assert [change.new["text"] for change in told if change.new] == list(TEXTS)
    assert [change.old["text"] for change in told if change.old] == list(TEXTS)


@pytest.mark.parametrize("seed", range(2))
def test_a_row_of_every_type_is_read_back_from_the_feed(new_sqlite: NewDatabase, postgres: Postgres, seed: int) -> None:
    for url in (new_sqlite(), postgres.create()):
        library = Library(url, edge_cases.model)
        data = drawn(seed)
        library.use(lambda store, data=data: edge_cases.load(store, edge_cases.model, data))  # type: ignore[misc]  # mypy infers no type of its default
        _make_worse(library)
        library.sql("UPDATE things SET text = text || '!'")
        while not library.is_sqlite and library.sql("SELECT diptych_number(1000)") != [(0,)]:
            pass
        found = sum(_check(library, resource) for resource in edge_cases.model.resources.values())
        assert found == sum(map(len, data.values()))


def test_a_nul_in_a_document_does_not_stop_those_who_follow(postgres: Postgres) -> None:
    library = Library(postgres.create(), edge_cases.model)
    data = drawn(1)
    library.use(lambda store: edge_cases.load(store, edge_cases.model, data))
    hostile = r'{"a\u0000": ["\\u0000", "\\\u0000\u0000", "\u00000"]}'
    library.sql(f"UPDATE things SET data = '{hostile}'")
    library.sql("SELECT diptych_number(1000)")
    read = "SELECT (json_populate_record(NULL::things, new)).data FROM diptych_feed WHERE resource = 'things' ORDER BY position DESC LIMIT 1"
    ((found,),) = library.sql(read)
    assert json.loads(found) == {"a\ufffd": ["\\u0000", "\\\ufffd\ufffd", "\ufffd0"]}


def _make_worse(library: Library) -> None:
    """Documents as outsiders write them."""
    things = library.sql("SELECT id FROM things ORDER BY id")
    for (number,), document in zip(things, itertools.cycle(DOCUMENTS)):
        library.sql(f"UPDATE things SET data = {literal(document)} WHERE id = {number}")


def _check(library: Library, resource: ResourceDef) -> int:
    """Hold the newest change of every row of a table against the row, column by column; gives how many there are."""
    table = resource.table
    newest = (
        f"FROM {table} t JOIN diptych_feed f ON f.row_id = {'CAST(t.id AS TEXT)' if library.is_sqlite else 't.id::text'} "
        f"AND f.position = (SELECT max(position) FROM diptych_feed WHERE resource = '{table}' AND row_id = f.row_id)"
    )
    for field in resource.fields.values():
        if not field.stored:
            continue
        now, then = f't."{field.column}"', f"json_extract(f.new, '$.{field.column}')"
        differs = f"{now} IS NOT {then} OR typeof({now}) <> typeof({then})"
        if not library.is_sqlite:
            then = f'(json_populate_record(NULL::"{table}", f.new))."{field.column}"'
            differs = f"{now}::text IS DISTINCT FROM {then}::text"
            if field.scalar is JSON:  # a document that is null is as good as none
                differs += f" AND {now}::text <> 'null'"
        assert library.sql(f"SELECT {now}, {then} {newest} AND ({differs})") == []
    return len(library.sql(f"SELECT 1 {newest}"))


def test_a_table_may_have_very_many_columns(new_sqlite: NewDatabase, postgres: Postgres) -> None:
    for url in (new_sqlite(), postgres.create()):
        library = Library(url, wide(150))
        library.sql(f"INSERT INTO wides (id, c7, c149) VALUES ('{A}', 'x', 'y')", "UPDATE wides SET c100 = 'z'")
        if not library.is_sqlite:
            library.sql("SELECT diptych_number(10)")
        rows = [json.loads(new) for (new,) in library.sql("SELECT new FROM diptych_feed ORDER BY position")]
        assert [len(row) for row in rows] == [154, 154]
        assert [
            {
                name: value
                for name, value in row.items()
                if name[0] == "c" and value is not None and name != "created_at"
            }
            for row in rows
        ] == [{"c7": "x", "c149": "y"}, {"c7": "x", "c100": "z", "c149": "y"}]


def wide(columns: int) -> Model:
    """A model with that many columns."""
    space: dict[str, Any] = {"__annotations__": {f"c{n}": str | None for n in range(columns)}, "__module__": __name__}
    space |= {f"c{n}": None for n in range(columns)}
    return Model(type("Wide", (Resource,), space))
