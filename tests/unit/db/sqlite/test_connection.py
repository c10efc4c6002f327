"""The connections of SQLite."""

from __future__ import annotations

from pathlib import Path

import apsw

from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.watchdog import Watchdog


def test_a_change_that_looks_for_two_rows_is_prepared_once(tmp_path: Path) -> None:
    """Without its stability guarantee, SQLite compares the ids while it plans, and plans anew whenever they are bound."""
    connection = SqliteConnection(str(tmp_path / "x.db"), Watchdog(), write=True)
    connection.db.execute("CREATE TABLE users (id TEXT PRIMARY KEY); CREATE TABLE posts (id TEXT PRIMARY KEY)")
    rules = "EXISTS (SELECT 1 FROM users WHERE id = ?2) AND EXISTS (SELECT 1 FROM posts WHERE id = ?3)"
    change = f"INSERT INTO posts SELECT ?1 WHERE {rules}"
    seen: list[int] = []  # SQLite asks for what a statement needs whenever it prepares it

    def allow(operation: int, *_: object) -> int:
        seen.append(operation)
        return apsw.SQLITE_OK

    connection.db.authorizer = allow
    connection.db.execute(change, (0, "user", "user"))
    at_first = len(seen)
    for number in range(10):
        connection.db.execute(change, (number, f"user {number}", f"user {number}"))
    assert at_first > 0 and len(seen) == at_first
    connection.close()
