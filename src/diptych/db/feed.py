"""Where the feed of a database is, and how little is kept of it: the same for both stores.

A feed is a table that triggers write (`compile/feed.py`). Its changes have positions 1, 2, 3 …, and readers follow
those. `head` is its newest position; `touched` tells which rows changed in a part of it; `trim` forgets its oldest
part, and never the newest change, so that a position is not given twice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from diptych.compile.part import DialectName
from diptych.compile.plan import Plan
from diptych.db.script import Script, Step

Run = Callable[[Plan, Sequence[Any]], Awaitable[Sequence[Any]]]
"""How a store runs a plan."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a feed begins and ends."""

    feed: str
    """Its identity: 16 hexadecimal digits, made with the table."""
    position: int
    """The newest position, 0 if there is none yet."""
    mark: int
    """The mark of the change there, 0 if there is none."""
    oldest: int
    """The oldest position that is kept, 0 if there is none."""


def head_of(row: Any) -> Head:
    """A Head from a row of its four columns."""
    feed, position, mark, oldest = row
    return Head(feed, position or 0, mark or 0, oldest or 0)


SQLITE_HEAD = Plan(
    "SELECT h.feed, f.position, f.mark, (SELECT min(position) FROM diptych_feed) FROM diptych_feed_head h "
    "LEFT JOIN diptych_feed f ON f.position = (SELECT max(position) FROM diptych_feed)",
    (), (), columns=4,
)  # fmt: skip
_MARK: Mapping[DialectName, Plan] = {
    "sqlite": Plan("SELECT mark FROM diptych_feed WHERE position = ?1", (), ()),
    "postgres": Plan("SELECT mark FROM diptych_feed WHERE position = $1::bigint", (), ()),
}
_TOUCHED: Mapping[DialectName, Plan] = {
    "sqlite": Plan(
        "SELECT CAST(json_group_array(json_array(resource, row_id)) AS BLOB) FROM (SELECT DISTINCT resource, row_id "
        "FROM diptych_feed WHERE position > ?1 AND position <= ?2 LIMIT ?3)",
        (), (),
    ),
    "postgres": Plan(
        "SELECT convert_to(coalesce(json_agg(json_build_array(resource, row_id))::text, '[]'), 'UTF8') FROM (SELECT "
        "DISTINCT resource, row_id FROM diptych_feed WHERE position > $1::bigint AND position <= $2::bigint "
        "LIMIT $3::bigint) AS t",
        (), (),
    ),
}  # fmt: skip


async def mark_at(run: Run, dialect: DialectName, position: int) -> int | None:
    """The mark of the change at a position; None if that is not kept."""
    (mark,) = await run(_MARK[dialect], [position])
    return None if mark is None else int(mark)


async def touched(
    run: Run, dialect: DialectName, after: int, upto: int, most: int
) -> list[tuple[str, str]] | None:
    """The rows that changed between two positions, as (table, id); None if there are more than so many."""
    (answer,) = await run(_TOUCHED[dialect], [after, upto, most + 1])
    found = json.loads(answer or b"[]")
    return None if len(found) > most else [(resource, row_id) for resource, row_id in found]


# What goes is a beginning of the feed, without holes, whatever the clock said when its changes were made.
_TRIM_SQLITE = """
    DELETE FROM diptych_feed WHERE position <= (
      SELECT max(position) FROM (SELECT position, at FROM diptych_feed ORDER BY position LIMIT ?3)
      WHERE position < (SELECT max(position) FROM diptych_feed)
        AND (at < ?1 OR position <= (SELECT max(position) FROM diptych_feed) - ?2))
"""


def trim_sqlite(before: datetime, rows: int, most: int) -> Script[int]:
    """Forget the oldest changes of a SQLite feed; gives how many."""
    yield Step(_TRIM_SQLITE, (moment(before), rows, most))
    found = yield Step("SELECT changes()", ())
    assert found is not None
    return int(found[0])


def moment(when: datetime) -> str:
    """A moment in the form of a DateTime column of SQLite."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
