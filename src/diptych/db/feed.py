"""Reads and trims the feed of changes, for both stores.

A feed is a table that triggers write (`compile/system/`). Its changes have positions 1, 2, 3 …, and readers follow
those. `head` is its newest position; `changed_rows` lists the rows that changed between two positions; `trim` deletes
its oldest part, and never the newest change, so that no position is used twice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from diptych.compile.plan import Plan
from diptych.db.script import Script, Step
from diptych.db.store import FeedHead, Store

Run = Callable[[Plan, Sequence[Any]], Awaitable[Sequence[Any]]]
"""The `run` of a store."""


def head_of(row: Any) -> FeedHead:
    """A Head from a row of its four columns."""
    feed, position, mark, oldest = row
    return FeedHead(feed, position or 0, mark or 0, oldest or 0)


SQLITE_HEAD = Plan(
    "SELECT h.feed, f.position, f.mark, (SELECT min(position) FROM diptych_feed) FROM diptych_feed_head h "
    "LEFT JOIN diptych_feed f ON f.position = (SELECT max(position) FROM diptych_feed)",
    columns=4,
)
_MARK = {
    "sqlite": Plan("SELECT mark FROM diptych_feed WHERE position = ?1"),
    "postgres": Plan("SELECT mark FROM diptych_feed WHERE position = $1::bigint"),
}
_TOUCHED = {
    "sqlite": Plan(
        "SELECT CAST(json_group_array(json_array(resource, row_id)) AS BLOB) FROM (SELECT DISTINCT resource, row_id "
        "FROM diptych_feed WHERE position > ?1 AND position <= ?2 LIMIT ?3)"
    ),
    "postgres": Plan(
        "SELECT convert_to(coalesce(json_agg(json_build_array(resource, row_id))::text, '[]'), 'UTF8') FROM (SELECT "
        "DISTINCT resource, row_id FROM diptych_feed WHERE position > $1::bigint AND position <= $2::bigint "
        "LIMIT $3::bigint) AS t"
    ),
}
_FLOOR = Plan(
    "SELECT min(at_least) FROM (SELECT position AS at_least FROM diptych_webhooks WHERE disabled_at IS NULL "
    "UNION ALL SELECT position - 1 FROM diptych_webhook_deliveries WHERE state = 'pending') AS f"
)


async def webhook_floor(store: Store) -> int | None:
    """The position after which webhooks still need changes; None if there are no webhooks."""
    (floor,) = await store.run(_FLOOR, [])
    return None if floor is None else int(floor)


async def mark_at(store: Store, position: int) -> int | None:
    """The mark of the change at a position; None if that was trimmed."""
    (mark,) = await store.run(_MARK[store.dialect.name], [position])
    return None if mark is None else int(mark)


async def changed_rows(store: Store, after: int, upto: int, most: int) -> list[tuple[str, str]] | None:
    """The rows that changed between two positions, as (table, id); None if there are more than `most`."""
    (answer,) = await store.run(_TOUCHED[store.dialect.name], [after, upto, most + 1])
    rows = json.loads(answer or b"[]")
    return None if len(rows) > most else [(resource, row_id) for resource, row_id in rows]


# Retention deletes a prefix of the feed, without holes, whatever the clock said when its changes were made.
_TRIM_SQLITE = """
    DELETE FROM diptych_feed WHERE position <= (
      SELECT max(position) FROM (SELECT position, at FROM diptych_feed ORDER BY position LIMIT ?3)
      WHERE position < (SELECT max(position) FROM diptych_feed)
        AND (at < ?1 OR position <= (SELECT max(position) FROM diptych_feed) - ?2))
"""


def trim_sqlite(before: datetime, rows: int, most: int) -> Script[int]:
    """Delete the oldest changes of a SQLite feed, and return how many."""
    yield Step(_TRIM_SQLITE, (sqlite_time(before), rows, most))
    row = yield Step("SELECT changes()", ())
    assert row is not None
    return int(row[0])


def sqlite_time(when: datetime) -> str:
    """A moment in the form of a DateTime column of SQLite."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
