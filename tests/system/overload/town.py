"""A database in which a single request can be made to take very long, as whoever wants to harm the service would."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote

from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model

USERS, POSTS, COMMENTS = 100, 20, 3
"""Users, posts of each, comments on each of these."""


def _id(kind: int, number: int) -> str:
    return f"0190a000-{kind:04x}-7000-8000-{number:012x}"


def user(number: int) -> str:
    """The id of a user."""
    return _id(1, number)


def post(number: int) -> str:
    """The id of a post; the user of the same number wrote it."""
    return _id(2, number)


async def _fill(database: str) -> None:
    store = connect(Config(database=database))
    await store.open(model)
    at = "2026-01-01T00:00:00.000000Z"
    kept = [1, at, at]
    own = ["id", "version", "createdAt", "updatedAt"]
    users = [[user(n), *kept, f"n{n}", f"u{n}@example.org"] for n in range(USERS)]
    posts = [[_id(2, n), *kept, user(n % USERS), "t", "b" * 200, True] for n in range(USERS * POSTS)]
    comments = [
        [_id(3, n), *kept, _id(2, n % len(posts)), user(n * 7 % USERS), "c" * 100] for n in range(len(posts) * COMMENTS)
    ]
    try:
        resources = model.resources
        await store.insert(resources["User"], [*own, "name", "email"], users)
        await store.insert(resources["Post"], [*own, "authorId", "title", "body", "published"], posts)
        await store.insert(resources["Comment"], [*own, "postId", "authorId", "body"], comments)
    finally:
        await store.close()


def fill(database: str) -> str:
    """Make the tables, and fill them."""
    asyncio.run(_fill(database))
    return database


LONG_POSTS = 12
"""Posts of a mebibyte each."""


async def _fill_long(database: str) -> None:
    store = connect(Config(database=database))
    await store.open(model)
    at = "2026-01-01T00:00:00.000000Z"
    own = ["id", "version", "createdAt", "updatedAt"]
    posts = [[_id(2, n), 1, at, at, user(0), "t", "a" * (1 << 20), True] for n in range(LONG_POSTS)]
    try:
        await store.insert(
            model.resources["User"], [*own, "name", "email"], [[user(0), 1, at, at, "n", "n@example.org"]]
        )
        await store.insert(model.resources["Post"], [*own, "authorId", "title", "body", "published"], posts)
    finally:
        await store.close()


def fill_long(database: str) -> str:
    """The same with few posts, whose texts are long, and are found nearly everywhere in themselves."""
    asyncio.run(_fill_long(database))
    return database


def slow(mark: str = "zz") -> str:
    """A request that looks at every row again for every row, finds nothing, and costs next to nothing by its price."""
    deep: object = {"body": {"contains": mark}}
    for _ in range(3):
        deep = {
            "or": [
                {"body": {"contains": mark}},
                {"author": {"posts": {"some": {"or": [{"title": {"contains": mark}}, {"comments": {"some": deep}}]}}}},
            ]
        }
    return "/comments?first=1&where=" + quote(json.dumps(deep))
