"""Rows by hand, for the peers that write their own statements: Ariadne and FastAPI.

On PostgreSQL by asyncpg's pool, which prepares and keeps statements, lists of many parents by one LATERAL join; on
SQLite by apsw in the event loop, one statement for each parent, since there is no round trip to save.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import apsw
import asyncpg
from uuid_utils import uuid7

from bench.ideal import FIRST
from bench.store import Store, connect_sqlite

POOL = 8
Row = dict[str, Any]
Grouped = dict[str, list[Row]]

_MOMENT = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_MOMENTS = f'{_MOMENT.format("created_at")} AS "createdAt", {_MOMENT.format("updated_at")} AS "updatedAt"'


class Rows(Protocol):
    """What the peers ask of a store. The viewer is a constant."""

    async def open(self) -> None:
        """Connects."""

    async def user(self, user_id: str) -> Row | None:
        """One user, as GraphQL has it."""

    async def users(self, keys: Sequence[str]) -> dict[str, Row]:
        """Users by id."""

    async def posts(self, first: int, after: str | None) -> list[Row]:
        """A page of posts."""

    async def posts_of(self, keys: Sequence[str], first: int) -> Grouped:
        """The first posts of each user."""

    async def comments_of(self, keys: Sequence[str], first: int) -> Grouped:
        """The first comments of each post."""

    async def create(self, customer_id: str, total: str, currency: str, note: str | None) -> Row:
        """A new order."""


def _grouped(rows: Iterable[Any]) -> Grouped:
    found: Grouped = defaultdict(list)
    for row in rows:
        found[str(row["parent"])].append(dict(row))
    return found


class PostgresRows:
    """By asyncpg."""

    def __init__(self, store: Store, viewer: str) -> None:
        self.store, self.viewer = store, viewer
        self.pool: asyncpg.Pool[Any]

    async def open(self) -> None:
        """Connects."""
        self.pool = await asyncpg.create_pool(
            self.store.url, min_size=POOL, max_size=POOL, server_settings={"jit": "off"}, init=_plain_uuids
        )

    async def user(self, user_id: str) -> Row | None:
        """One user, as GraphQL has it."""
        text = "SELECT id, name, CASE WHEN id = $2 THEN email END AS email FROM users WHERE id = $1"
        row = await self.pool.fetchrow(text, user_id, self.viewer)
        return dict(row) if row else None

    async def full_user(self, user_id: str) -> Row | None:
        """One user, as REST has it."""
        text = f"""SELECT id, version, {_MOMENTS}, name, CASE WHEN id = $2 THEN email END AS email
            FROM users WHERE id = $1"""
        row = await self.pool.fetchrow(text, user_id, self.viewer)
        return dict(row) if row else None

    async def users(self, keys: Sequence[str]) -> dict[str, Row]:
        """Users by id."""
        text = "SELECT id, name, CASE WHEN id = $2 THEN email END AS email FROM users WHERE id = ANY($1::uuid[])"
        return {row["id"]: dict(row) for row in await self.pool.fetch(text, keys, self.viewer)}

    async def posts(self, first: int, after: str | None) -> list[Row]:
        """A page of posts."""
        text = """SELECT id, title, author_id FROM posts
            WHERE id > $1 AND (published OR author_id = $2) ORDER BY id LIMIT $3"""
        return [dict(row) for row in await self.pool.fetch(text, after or FIRST["postgres"], self.viewer, first)]

    async def posts_of(self, keys: Sequence[str], first: int) -> Grouped:
        """The first posts of each user."""
        text = """SELECT k.id AS parent, p.id, p.title FROM unnest($1::uuid[]) AS k (id) CROSS JOIN LATERAL (
            SELECT id, title FROM posts WHERE author_id = k.id AND (published OR author_id = $3) ORDER BY id LIMIT $2
        ) p"""
        return _grouped(await self.pool.fetch(text, keys, first, self.viewer))

    async def comments_of(self, keys: Sequence[str], first: int) -> Grouped:
        """The first comments of each post."""
        text = """SELECT k.id AS parent, c.body, c.author_id FROM unnest($1::uuid[]) AS k (id) CROSS JOIN LATERAL (
            SELECT body, author_id FROM comments WHERE post_id = k.id ORDER BY id LIMIT $2
        ) c"""
        return _grouped(await self.pool.fetch(text, keys, first))

    async def orders(self, first: int, after: str | None) -> list[Row]:
        """A page of orders, with all fields."""
        text = f"""SELECT id, version, {_MOMENTS}, customer_id AS "customerId", status, total::text, currency, note,
            internal_note AS "internalNote" FROM orders WHERE id > $1 ORDER BY id LIMIT $2"""
        return [dict(row) for row in await self.pool.fetch(text, after or FIRST["postgres"], first)]

    async def create(self, customer_id: str, total: str, currency: str, note: str | None) -> Row:
        """A new order."""
        text = """INSERT INTO orders (id, version, created_at, updated_at, customer_id, status, total, currency, note)
            VALUES ($1, 1, $2, $2, $3, 'pending', $4::text::numeric, $5, $6)
            RETURNING id, status, total::text, currency, customer_id"""
        values = (str(uuid7()), datetime.now(UTC), customer_id, total, currency, note)
        return dict(await self.pool.fetchrow(text, *values))  # type: ignore[arg-type]  # never None here


async def _plain_uuids(connection: Any) -> None:
    """Ids as text: what the API takes and gives, and no object made for each."""
    await connection.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")


class SqliteRows:
    """By apsw, in the event loop."""

    def __init__(self, store: Store, viewer: str) -> None:
        self.store, self.viewer = store, viewer
        self.connection: apsw.Connection

    async def open(self) -> None:
        """Connects."""
        self.connection = connect_sqlite(self.store)
        self.connection.row_trace = _as_dict

    def _all(self, text: str, *values: str | int | None) -> list[Row]:
        found: Any = self.connection.execute(text, values).fetchall()
        rows: list[Row] = found
        return rows

    async def user(self, user_id: str) -> Row | None:
        """One user, as GraphQL has it."""
        return (await self.users([user_id])).get(user_id)

    async def users(self, keys: Sequence[str]) -> dict[str, Row]:
        """Users by id."""
        text = "SELECT id, name, CASE WHEN id = ?2 THEN email END AS email FROM users WHERE id = ?1"
        return {key: row for key in keys for row in self._all(text, key, self.viewer)}

    async def posts(self, first: int, after: str | None) -> list[Row]:
        """A page of posts."""
        text = """SELECT id, title, author_id FROM posts
            WHERE id > ?1 AND (published OR author_id = ?2) ORDER BY id LIMIT ?3"""
        return self._all(text, after or "", self.viewer, first)

    async def posts_of(self, keys: Sequence[str], first: int) -> Grouped:
        """The first posts of each user."""
        text = """SELECT id, title FROM posts WHERE author_id = ?1 AND (published OR author_id = ?2)
            ORDER BY id LIMIT ?3"""
        return {key: self._all(text, key, self.viewer, first) for key in keys}

    async def comments_of(self, keys: Sequence[str], first: int) -> Grouped:
        """The first comments of each post."""
        text = "SELECT body, author_id FROM comments WHERE post_id = ?1 ORDER BY id LIMIT ?2"
        return {key: self._all(text, key, first) for key in keys}

    async def create(self, customer_id: str, total: str, currency: str, note: str | None) -> Row:
        """A new order, committed by itself."""
        text = """INSERT INTO orders (id, version, created_at, updated_at, customer_id, status, total, currency, note)
            VALUES (?1, 1, ?2, ?2, ?3, 'pending', ?4, ?5, ?6)
            RETURNING id, status, format('%d.%02d', total / 100, total % 100) AS total, currency, customer_id"""
        now = datetime.now(UTC).isoformat(timespec="microseconds")[:26] + "Z"
        hundredths = int(total.replace(".", "", 1))
        return self._all(text, str(uuid7()), now, customer_id, hundredths, currency, note)[0]


def _as_dict(cursor: apsw.Cursor, row: tuple[Any, ...]) -> Row:
    return dict(zip((column[0] for column in cursor.description), row, strict=True))


def rows_of(store: Store, viewer: str) -> Rows:
    """The rows of a store."""
    return SqliteRows(store, viewer) if store.kind == "sqlite" else PostgresRows(store, viewer)
