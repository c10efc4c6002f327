"""Scribes: whoever changes posts and orders while others follow them, in both styles and by SQL from outside.

A request is sent once. If its connection breaks before there was an answer, the change was made or was not: the feed
tells. What was acknowledged is remembered, as the id of the row and the version that it had then (None: it is gone).
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import apsw
import asyncpg

from tests.proof.long_running.parts import Answer, Wire, http, wire

Acknowledged = tuple[str, str, int | None]
_PASSING = ("CONFLICT", "UNAVAILABLE", "TIMEOUT", "NOT_FOUND")
"""Codes that a change may meet: others change the same rows."""


@dataclass
class Made:
    """What all scribes did."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    """Table, id and version, in the order of the answers."""
    cut: int = 0
    refused: int = 0
    outside: int = 0


@dataclass(frozen=True)
class Author:
    """Who writes: a user, with the tokens of that user and of an admin."""

    user: str
    bearer: str
    admin: str


class Scribe:
    """One client that changes rows until it is told to stop."""

    def __init__(self, name: str, port: Callable[[], int], author: Author, hot: str, made: Made, pause: float) -> None:
        self.name = name
        self.port = port
        self.author = author
        self.hot = hot
        """A post that all scribes change."""
        self.made = made
        self.pause = pause
        self._dice = random.Random(name)
        self._posts: list[str] = []
        self._orders: list[str] = []
        self._number = 0
        self._wire: Wire | None = None

    async def run(self, done: asyncio.Event) -> None:
        """Change things until it is enough."""
        deeds: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self._create, 4),
            (self._create_two, 1),
            (self._update, 4),
            (self._delete, 2),
            (self._heat, 2),
            (self._order, 2),
            (self._move_order, 2),
        ]
        kinds, weights = zip(*deeds, strict=True)
        while not done.is_set():
            await self._dice.choices(kinds, weights)[0]()
            await asyncio.sleep(self._dice.uniform(0, 2 * self.pause))
        if self._wire is not None:
            self._wire.close()

    def _post(self) -> dict[str, Any]:
        self._number += 1
        title = f"{self._dice.choice('abc')} {self.name} {self._number}"
        return {"authorId": self.author.user, "title": title, "body": "x", "published": self._dice.random() < 0.7}

    async def _create(self) -> None:
        if self._dice.random() < 0.5:
            answer = await self._ask(http("POST", "/posts", self.author.bearer, self._post()))
            made = [answer.json()] if answer else []
        else:
            query = "mutation($i: PostCreate!) { createPost(input: $i) { id version } }"
            made = await self._mutate(query, i=self._post())
        self._note("posts", made)

    async def _create_two(self) -> None:
        """Two rows in one transaction."""
        two = "a: createPost(input: $a) { id version } b: createPost(input: $b) { id version }"
        query = f"mutation($a: PostCreate!, $b: PostCreate!) {{ {two} }}"
        self._note("posts", await self._mutate(query, a=self._post(), b=self._post()))

    def _note(self, table: str, made: list[Any]) -> None:
        for row in made:
            (self._posts if table == "posts" else self._orders).append(row["id"])
            self._acknowledge(table, row)

    def _acknowledge(self, table: str, row: Any) -> None:
        self.made.acknowledged.append((table, row["id"], row["version"]))

    async def _update(self) -> None:
        if self._posts:
            change = self._dice.choice(({"published": True}, {"published": False}, {"title": f"b {self.name}"}))
            await self._change(self._dice.choice(self._posts), change)

    async def _heat(self) -> None:
        await self._change(self.hot, {"body": f"{self.name} {self._dice.random()}"})

    async def _change(self, key: str, change: dict[str, Any]) -> None:
        if self._dice.random() < 0.5:
            answer = await self._ask(http("PATCH", f"/posts/{key}", self.author.admin, change))
            made = [answer.json()] if answer else []
        else:
            query = "mutation($id: ID!, $p: PostPatch!) { updatePost(id: $id, patch: $p) { id version } }"
            made = await self._mutate(query, self.author.admin, id=key, p=change)
        for row in made:
            self._acknowledge("posts", row)

    async def _delete(self) -> None:
        if len(self._posts) < 3:
            return
        key = self._posts.pop(self._dice.randrange(len(self._posts)))
        if self._dice.random() < 0.5:
            gone = await self._ask(http("DELETE", f"/posts/{key}", self.author.bearer)) is not None
        else:
            gone = bool(await self._mutate("mutation($id: ID!) { deletePost(id: $id) { id } }", id=key))
        if gone:
            self.made.acknowledged.append(("posts", key, None))

    async def _order(self) -> None:
        given = {"customerId": self.author.user, "total": "9.50"}
        answer = await self._ask(http("POST", "/orders", self.author.bearer, given))
        self._note("orders", [answer.json()] if answer else [])

    async def _move_order(self) -> None:
        if self._orders:
            key, to = self._orders.pop(0), self._dice.choice(("paid", "cancelled"))
            query = f"mutation($id: ID!) {{ updateOrder(id: $id, patch: {{status: {to}}}) {{ id version }} }}"
            for row in await self._mutate(query, self.author.admin, id=key):
                self._acknowledge("orders", row)

    async def _mutate(self, query: str, bearer: str = "", **variables: Any) -> list[Any]:
        body = {"query": query, "variables": variables}
        answer = await self._ask(http("POST", "/graphql", bearer or self.author.bearer, body))
        return list(answer.json()["data"].values()) if answer else []

    async def _ask(self, request: bytes) -> Answer | None:
        """The answer to a change that was made; None if it was not, or if nobody knows."""
        try:
            if self._wire is None:
                self._wire = await wire(self.port())
            async with asyncio.timeout(30):
                answer = await self._wire.ask(request)
        except OSError:
            self.made.cut += self._wire is not None
            self._wire = None
            return None
        if answer.status >= 400 or answer.body.startswith((b'{"errors"', b'{"data":null')):
            assert answer.code in _PASSING, answer
            self.made.refused += 1
            return None
        return answer


# from outside

_INSERT = "INSERT INTO posts (id, author_id, title, body, published) VALUES ({0}1, {0}2, 'b from outside', 'x', {0}3)"
_UPDATE = (
    "UPDATE posts SET body = 'from outside', published = NOT published "
    "WHERE id IN (SELECT id FROM posts WHERE id <> {0}1 ORDER BY random() LIMIT 3)"
)
_DELETE = "DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE title = 'b from outside' LIMIT 2)"


async def write_outside(database: str, user: str, hot: str, made: Made, done: asyncio.Event, pause: float) -> None:
    """Change posts by SQL, past the service: every fifth transaction is rolled back."""
    dice = random.Random("outside")
    run = _Sqlite(database) if database.startswith("sqlite:") else await _postgres(database)
    try:
        while not done.is_set():
            key = str(uuid.UUID(int=uuid.uuid4().int & ~(0xF << 76) | 7 << 76))
            insert, update = (key, user, dice.random() < 0.7), (hot,)
            chosen = dice.choice(
                ([(_INSERT, insert)], [(_UPDATE, update)], [(_INSERT, insert), (_UPDATE, update)], [(_DELETE, ())])
            )
            await run(chosen, commits=dice.random() < 0.8)
            made.outside += 1
            await asyncio.sleep(dice.uniform(0, 2 * pause))
    finally:
        await run.close()


Statements = list[tuple[str, tuple[Any, ...]]]


class _Sqlite:
    def __init__(self, database: str) -> None:
        self._connection = apsw.Connection(database.removeprefix("sqlite:///"))
        self._connection.set_busy_timeout(20_000)
        self._connection.execute("PRAGMA foreign_keys = ON")

    async def __call__(self, statements: Statements, *, commits: bool) -> None:
        await asyncio.to_thread(self._run, statements, commits)

    def _run(self, statements: Statements, commits: bool) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for text, values in statements:
            self._connection.execute(text.format("?"), values)
        self._connection.execute("COMMIT" if commits else "ROLLBACK")

    async def close(self) -> None:
        self._connection.close()


class _Postgres:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def __call__(self, statements: Statements, *, commits: bool) -> None:
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            for text, values in statements:
                await self._connection.execute(text.format("$"), *values)
        except asyncpg.PostgresError:  # a deadlock with a writer of the service: as if it had never been
            commits = False
        await (transaction.commit() if commits else transaction.rollback())

    async def close(self) -> None:
        await self._connection.close()


async def _postgres(database: str) -> _Postgres:
    return _Postgres(await asyncpg.connect(database))
