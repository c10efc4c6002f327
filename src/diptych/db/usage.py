"""The table of who still uses what is deprecated: a row for each part of the API, role and OAuth client."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.db.system_records import Records

UsageKey = tuple[str, str, str]
"""The part of the API, the role, and the client; "" if there is none."""
_MOST = 10_000
"""Rows of the table; a client that is new then is counted with the others."""
_ROWS = "SELECT count(*) FROM diptych_usage"
_ADD = """
    INSERT INTO diptych_usage (name, role, client, requests, first_at, last_at)
    VALUES ({0}1, {0}2, {0}3, {0}4, {0}5, {0}5)
    ON CONFLICT (name, role, client) DO UPDATE
    SET requests = diptych_usage.requests + excluded.requests, last_at = excluded.last_at RETURNING 1
"""
_THERE = "SELECT 1 FROM diptych_usage WHERE name = {0}1 AND role = {0}2 AND client = {0}3"


class UsageRow(Struct, frozen=True):
    """How many requests used a part of the API, and when the first and the last of them were counted."""

    name: str
    role: str
    client: str
    requests: int
    first_at: int
    last_at: int


_USAGE = Records("diptych_usage", UsageRow)


def add_usage(dialect: Dialect, counts: Mapping[UsageKey, int], now: int, other: str) -> Script[None]:
    """Add counts, in an order that is the same in all processes."""
    sign = dialect.placeholder
    row = yield Step(_ROWS, ())
    left = _MOST - (row[0] if row is not None else 0)
    for name, role, client in sorted(counts):
        requests = counts[name, role, client]
        there = yield Step(_THERE.format(sign), (name, role, client))
        counted = client if there is not None or left > 0 else other
        left -= there is None
        yield Step(_ADD.format(sign), (name, role, counted, requests, now))


async def all_usage(store: Store) -> list[UsageRow]:
    """All rows, sorted by name."""
    return await _USAGE.all(store, "name")
