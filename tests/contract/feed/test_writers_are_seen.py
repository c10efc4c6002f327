"""Whoever writes, and however: one change is one line of the feed, with the row before and after."""

from __future__ import annotations

import random

import apsw
import asyncpg
import pytest

from diptych.db.script import Violation
from tests.contract.feed.scene import A, B, C, D, Library, Told, uuid

Seen = tuple[Library, str]
SHELF = "INSERT INTO shelves (id, name) VALUES ('{}', '{}')"
BOOK = "INSERT INTO books (id, title, shelf_id) VALUES ('{}', '{}', '{}')"


def kinds(told: list[Told]) -> list[tuple[str, str, str]]:
    return [(change.kind, change.resource, change.row_id) for change in told]


def test_a_row_that_is_made_changed_and_deleted(seen: Seen) -> None:
    library, writer = seen
    library.write(writer, SHELF.format(A, "A"))
    library.write(writer, f"UPDATE shelves SET name = 'B' WHERE id = '{A}'")
    library.write(writer, f"UPDATE shelves SET name = 'C', version = version + 1 WHERE id = '{A}'")
    library.write(writer, "DELETE FROM shelves")
    told = library.told()
    assert kinds(told) == [(kind, "shelves", A) for kind in ("created", "updated", "updated", "deleted")]
    assert [
        (
            change.old and (change.old["name"], change.old["version"]),
            change.new and (change.new["name"], change.new["version"]),
        )
        for change in told
    ] == [
        (None, ("A", 1)),
        (("A", 1), ("B", 2)),
        (("B", 2), ("C", 3)),
        (("C", 3), None),
    ]


def test_a_change_that_changes_nothing_is_a_change(seen: Seen) -> None:
    library, writer = seen
    library.write(writer, SHELF.format(A, "A"), "UPDATE shelves SET name = name", "UPDATE shelves SET version = 1")
    assert [change.new and change.new["version"] for change in library.told()] == [1, 2, 3]


def test_many_rows_at_once(seen: Seen) -> None:
    library, writer = seen
    library.write(writer, f"INSERT INTO shelves (id, name) VALUES ('{A}', 'A'), ('{B}', 'B'), ('{C}', 'C')")
    library.write(writer, "UPDATE shelves SET room = name")
    library.write(
        writer, "UPDATE shelves SET room = 'x', version = version + 1 WHERE name > 'A'", "DELETE FROM shelves"
    )
    assert len(library.told()) == 3 + 3 + 2 + 3


def test_what_follows_from_a_deletion(seen: Seen) -> None:
    library, writer = seen
    library.write(
        writer,
        SHELF.format(A, "A"),
        SHELF.format(B, "B"),
        BOOK.format(A, "on A, of B", A),
        BOOK.format(B, "on A", A),
        BOOK.format(C, "of A", B),
        f"UPDATE books SET owner_id = '{B}' WHERE id = '{A}'",
        f"UPDATE books SET owner_id = '{A}' WHERE id = '{C}'",
    )
    before = len(library.told())
    library.write(writer, f"DELETE FROM shelves WHERE id = '{A}'")
    told = library.told()[before:]
    assert sorted(kinds(told)) == [
        ("deleted", "books", C),
        ("deleted", "shelves", A),
        ("updated", "books", A),
        ("updated", "books", B),
    ]
    for change in told:
        if change.kind == "updated":
            assert change.old and change.new
            assert (change.old["shelf_id"], change.new["shelf_id"]) == (A, None)
            assert change.new["version"] == change.old["version"] + 1


def test_a_tree_that_falls(seen: Seen) -> None:
    library, writer = seen
    library.write(
        writer,
        *(f"INSERT INTO tickets (id, text, parent_id) VALUES ({n}, 't', {n // 2 or 'NULL'})" for n in range(1, 16)),
    )
    library.write(writer, "DELETE FROM tickets WHERE id = 1")
    told = library.told()
    assert [change.kind for change in told] == ["created"] * 15 + ["deleted"] * 15
    assert len({change.row_id for change in told[15:]}) == 15


def test_integer_ids_that_the_database_makes(seen: Seen) -> None:
    library, writer = seen
    library.write(
        writer,
        "INSERT INTO tickets (text) VALUES ('a'), ('b')",
        "DELETE FROM tickets WHERE text = 'b'",
        "INSERT INTO tickets (id, text) VALUES (9007199254740993, 'c')",
    )
    assert kinds(library.told()) == [
        ("created", "tickets", "1"),
        ("created", "tickets", "2"),
        ("deleted", "tickets", "2"),
        ("created", "tickets", "9007199254740993"),
    ]


def test_another_id_is_another_row(seen: Seen) -> None:
    library, writer = seen
    library.write(writer, SHELF.format(A, "A"))
    library.write(writer, f"UPDATE shelves SET id = '{B}'")
    library.write(writer, f"UPDATE shelves SET id = '{C}', name = 'C', version = version + 5")
    library.write(writer, f"UPDATE shelves SET id = '{C}'")
    told = library.told()
    assert kinds(told) == [
        ("created", "shelves", A),
        ("deleted", "shelves", A),
        ("created", "shelves", B),
        ("deleted", "shelves", B),
        ("created", "shelves", C),
        ("updated", "shelves", C),
    ]
    assert [change.new["version"] for change in told if change.new] == [1, 2, 7, 8]


def test_an_upsert_is_what_it_did(seen: Seen) -> None:
    library, writer = seen
    upsert = "INSERT INTO shelves (id, name) VALUES ('{}', '{}') ON CONFLICT {} DO {}"
    library.write(writer, SHELF.format(A, "A"))
    library.write(writer, upsert.format(A, "B", "(id)", "NOTHING"), upsert.format(B, "A", "(name)", "NOTHING"))
    library.write(writer, upsert.format(A, "B", "(id)", "UPDATE SET name = excluded.name"))
    library.write(writer, upsert.format(C, "C", "(id)", "UPDATE SET name = excluded.name"))
    library.write(writer, upsert.format(D, "C", "(name)", "UPDATE SET room = 'x', version = shelves.version + 1"))
    library.write(writer, f"DELETE FROM shelves WHERE id = '{A}'", SHELF.format(A, "again"), SHELF.format(B, "B"))
    assert kinds(library.told()) == [
        ("created", "shelves", A),
        ("updated", "shelves", A),
        ("created", "shelves", C),
        ("updated", "shelves", C),
        ("deleted", "shelves", A),
        ("created", "shelves", A),
        ("created", "shelves", B),
    ]


def test_what_is_taken_back_was_never_told(seen: Seen) -> None:
    library, writer = seen
    library.write(
        writer,
        SHELF.format(A, "A"),
        "SAVEPOINT one",
        SHELF.format(B, "B"),
        "UPDATE shelves SET room = 'x'",
        "SAVEPOINT two",
        "DELETE FROM shelves",
        "ROLLBACK TO two",
        "ROLLBACK TO one",
        SHELF.format(C, "C"),
    )
    with pytest.raises((apsw.Error, asyncpg.PostgresError, Violation, AssertionError)):
        library.write(writer, SHELF.format(D, "D"), "UPDATE shelves SET name = NULL")
    assert kinds(library.told()) == [("created", "shelves", A), ("created", "shelves", C)]


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_the_feed_explains_it(seen: Seen, seed: int) -> None:
    library, writer = seen
    draw = random.Random(seed)
    count = 0
    for _ in range(4):
        statements = [_anything(draw, sqlite=library.is_sqlite) for _ in range(25)]
        library.write(writer, *statements)
        now = len(library.told())
        assert now > count
        count = now


def _anything(draw: random.Random, *, sqlite: bool) -> str:
    """A statement that succeeds, whatever is there."""
    shelf, other = (f"'{uuid(draw.randrange(8))}'" for _ in range(2))
    book, name = f"'{uuid(draw.randrange(20))}'", f"'{draw.choice('abcdefgh')}'"
    of_shelf = f"(SELECT id FROM shelves WHERE id = {other})"
    fresh = "ON CONFLICT DO NOTHING"
    moved = draw.choice(["", ", version = version + 1", ", version = 1", ", updated_at = created_at"])
    free = f"NOT EXISTS (SELECT 1 FROM shelves s WHERE s.id = {other} OR s.id IN (SELECT shelf_id FROM books UNION "
    free += "SELECT owner_id FROM books))"
    common = [
        f"INSERT INTO shelves (id, name) VALUES ({shelf}, {name}) {fresh}",
        f"INSERT INTO shelves (id, name) VALUES ({shelf}, {name} || {shelf}) ON CONFLICT (id) DO UPDATE SET room = {name}",
        f"INSERT INTO books (id, title, shelf_id, owner_id) SELECT {book}, {name}, {of_shelf}, NULL WHERE true {fresh}",
        f"INSERT INTO books (id, title, owner_id) SELECT {book}, {name}, {of_shelf} WHERE true {fresh}",
        f"UPDATE shelves SET room = {name}{moved} WHERE id = {shelf}",
        f"UPDATE shelves SET room = room || {name}{moved}",
        f"UPDATE books SET title = {name}{moved} WHERE title > {name}",
        f"UPDATE books SET shelf_id = {of_shelf}{moved} WHERE id = {book}",
        f"UPDATE shelves SET id = {other}{moved} WHERE id = {shelf} AND {free}",
        f"DELETE FROM shelves WHERE id = {shelf}",
        f"DELETE FROM books WHERE id = {book}",
    ]
    if sqlite:
        common += [
            f"INSERT OR REPLACE INTO shelves (id, name) VALUES ({shelf}, {name})",
            f"REPLACE INTO books (id, title, version) VALUES ({book}, {name}, {draw.randrange(1, 9)})",
            f"INSERT OR IGNORE INTO shelves (id, name) VALUES ({shelf}, {name})",
            f"REPLACE INTO shelves (id, name) SELECT id, name || {name} FROM shelves WHERE id < {shelf}",
        ]
    return draw.choice(common)
