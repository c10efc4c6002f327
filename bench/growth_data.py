"""A SQLite store of any size for the growth curves, filled by SQL: ids are made from numbers, so they need no list.

One of 66 rows is a user, ten are posts and the rest comments, as in the data of the bench.
"""

from __future__ import annotations

import random
from pathlib import Path

from bench.data import create_tables
from bench.home import DATA
from bench.store import Store, connect_sqlite

ID = "format('%08x-%04x-7000-8000-%012x', ({0}) >> 16, ({0}) & 65535, {0})"
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {}) "
COMMON = "1, '2024-01-01T00:00:00.000000Z', '2024-01-01T00:00:00.000000Z'"
INDEXES = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('posts', 'comments')"
)
# Prime, so that neighbours have different parents.
STEP = 7_919


def user_id(number: int) -> str:
    """The id of a user."""
    return f"{number >> 16:08x}-{number & 65535:04x}-7000-8000-{number:012x}"


def users_of(total: int) -> int:
    """How many users a store of so many rows has."""
    return max(10, total // 66)


def draw_users(total: int, count: int) -> list[str]:
    """Random users of a store."""
    rng = random.Random(f"users of {total}")
    return [user_id(rng.randrange(users_of(total))) for _ in range(count)]


def ensure_grown(total: int) -> Store:
    """A store of so many rows, filled unless a run before did."""
    store = Store("sqlite", f"sqlite:///{DATA / f'grown-{total}.sqlite'}")
    stamp = DATA / f"grown-{total}.stamp"
    if stamp.exists() and Path(store.path).exists():
        return store
    DATA.mkdir(exist_ok=True)
    for suffix in ("", "-wal", "-shm"):
        Path(store.path + suffix).unlink(missing_ok=True)
    create_tables(store)
    _fill(store, users_of(total), users_of(total) * 10, total - users_of(total) * 11)
    stamp.touch()
    return store


def _fill(store: Store, users: int, posts: int, comments: int) -> None:
    """Without triggers, and with the indexes made at the end."""
    connection = connect_sqlite(store)
    connection.execute("PRAGMA synchronous=OFF").fetchall()
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    indexes = connection.execute(INDEXES).fetchall()
    with connection:
        for kind, parts in (("TRIGGER", triggers), ("INDEX", indexes)):
            for name, _ in parts:
                connection.execute(f'DROP {kind} "{name}"')
        user = ID.format(f"i * {STEP} % {users}")
        connection.execute(
            NUMBERS.format(users) + "INSERT INTO users (id, version, created_at, updated_at, name, email) "
            f"SELECT {ID.format('i')}, {COMMON}, 'Ann ' || i, 'ann.' || i || '@example.org' FROM n"
        )
        connection.execute(
            NUMBERS.format(posts) + "INSERT INTO posts (id, version, created_at, updated_at, author_id, title, body, "
            f"published) SELECT {ID.format('i')}, {COMMON}, {user}, 'amber basin candle ' || i, "
            "'drift ember fjord garden harbour island juniper kettle lantern', 1 FROM n"
        )
        post = ID.format(f"i * {STEP} % {posts}")
        connection.execute(
            NUMBERS.format(comments) + "INSERT INTO comments (id, version, created_at, updated_at, post_id, author_id, "
            f"body) SELECT {ID.format('i')}, {COMMON}, {post}, {user}, 'meadow needle orchard pebble ' || i FROM n"
        )
        for _, sql in (*indexes, *triggers):
            connection.execute(str(sql))
    connection.execute("ANALYZE")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
