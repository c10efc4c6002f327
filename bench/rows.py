"""The rows: 10,000 users, 100,000 posts, 500,000 comments, 50,000 orders, drawn from a seed.

Everything is a function of the seed, so ids are known without asking a database: `ids("users")`. A table is
described once, as columns with a type; what each store makes of a type is in `data.py`. Texts have accents,
quotes and backslashes in them, as real ones do. Four of five posts are published.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal, NamedTuple

Value = str | int | bool | datetime | None
Row = tuple[Value, ...]
Table = Literal["users", "posts", "comments", "orders"]
Type = Literal["id", "int", "datetime", "bool", "decimal", "text"]


class Column(NamedTuple):
    """One column with its type."""

    name: str
    type: Type


COUNTS: dict[Table, int] = {"users": 10_000, "posts": 100_000, "comments": 500_000, "orders": 50_000}
SEED = 7
PUBLISHED = 0.8
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=365)

_COMMON = (
    Column("id", "id"),
    Column("version", "int"),
    Column("created_at", "datetime"),
    Column("updated_at", "datetime"),
)
COLUMNS: dict[Table, tuple[Column, ...]] = {
    "users": (*_COMMON, Column("name", "text"), Column("email", "text")),
    "posts": (
        *_COMMON,
        Column("author_id", "id"),
        Column("title", "text"),
        Column("body", "text"),
        Column("published", "bool"),
    ),
    "comments": (
        *_COMMON,
        Column("post_id", "id"),
        Column("author_id", "id"),
        Column("body", "text"),
    ),
    "orders": (
        *_COMMON,
        Column("customer_id", "id"),
        Column("status", "text"),
        Column("total", "decimal"),
        Column("currency", "text"),
        Column("note", "text"),
        Column("internal_note", "text"),
    ),
}

WORDS = tuple(
    """amber basin candle drift ember fjord garden harbour island juniper kettle lantern meadow needle orchard
    pebble quarry river saddle timber umbrella valley willow yonder zephyr naïve café Straße 東京 “quoted” a
    "plain" quote back\\slash""".split()  # noqa: SIM905  # words are easier to read so
)
NAMES = ("Ann", "Bob", "Cleo", "Dara", "Eve", "Finn", "Gita", "Hugo", "Iris", "Jon", "Kaya", "Liam", "Mona")
STATUSES = ("pending", "paid", "shipped", "delivered", "cancelled")
CURRENCIES = ("EUR", "USD", "GBP", "JPY")


def _moment(table: Table, index: int) -> datetime:
    """When a row was made: evenly over the year, so that id order is the order of making."""
    return EPOCH + SPAN * (index / COUNTS[table])


def _uuid7(rng: random.Random, moment: datetime) -> str:
    """A UUIDv7 (RFC 9562) with random bits of the seed."""
    milliseconds = int(moment.timestamp() * 1000)
    value = milliseconds << 80 | 7 << 76 | rng.getrandbits(12) << 64 | 2 << 62 | rng.getrandbits(62)
    return str(uuid.UUID(int=value))


@cache
def ids(table: Table) -> tuple[str, ...]:
    """Every id of a table, ascending."""
    rng = random.Random(f"{SEED} ids of {table}")
    return tuple(sorted(_uuid7(rng, _moment(table, index)) for index in range(COUNTS[table])))


def _text(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))


def _user(rng: random.Random, index: int) -> Row:
    first, last = rng.choice(NAMES), rng.choice(WORDS).title()
    return f"{first} {last}", f"{first.lower()}.{index}@example.org"


def _post(rng: random.Random, _index: int) -> Row:
    return rng.choice(ids("users")), _text(rng, 3, 8), _text(rng, 20, 60), rng.random() < PUBLISHED


def _comment(rng: random.Random, _index: int) -> Row:
    return rng.choice(ids("posts")), rng.choice(ids("users")), _text(rng, 4, 20)


def _order(rng: random.Random, _index: int) -> Row:
    note = _text(rng, 3, 12) if rng.random() < 0.3 else None
    internal = _text(rng, 3, 12) if rng.random() < 0.2 else None
    status, currency = rng.choice(STATUSES), rng.choice(CURRENCIES)
    return rng.choice(ids("users")), status, rng.randint(100, 1_000_000), currency, note, internal


_MAKERS: dict[Table, Callable[[random.Random, int], Row]] = {
    "users": _user,
    "posts": _post,
    "comments": _comment,
    "orders": _order,
}


def rows(table: Table) -> Iterator[Row]:
    """Every row of a table, ascending by id; a decimal is its scaled integer."""
    rng = random.Random(f"{SEED} rows of {table}")
    for index, row_id in enumerate(ids(table)):
        made = _moment(table, index)
        changed = made + timedelta(microseconds=rng.randint(0, 10**12))
        yield row_id, rng.randint(1, 9), made, changed, *_MAKERS[table](rng, index)
