"""The table of rate limits: a row for each bucket that callers have spent from lately.

`full_at` is the moment at which a bucket is full again, in microseconds of the database's clock; `previous` is what it
was before the last process added to it. `spent` and `refused` are counted as long as the row is there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.db.system_records import Records

MOST_ROWS = 100_000
"""Rows of the table, about; buckets that are new then are not shared."""
_MICRO = 1_000_000
_KEPT = 3_600 * _MICRO
"""Microseconds for which the row of a full bucket is kept."""
_SWEPT = 1_000
_NOW = {"sqlite": "{0}7", "postgres": "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)"}
_LATEST = {"sqlite": "max", "postgres": "greatest"}
_SET = """
    previous = diptych_rates.full_at, full_at = {latest}(diptych_rates.full_at + {0}3, {now} + {0}4),
    spent = diptych_rates.spent + {0}5, refused = diptych_rates.refused + {0}6, used_at = {now}
"""
"""What others have spent fills again first, and then what this process has: both have one rate together."""
_RETURNING = "RETURNING policy, owner, full_at, previous, full_at - {now} AS debt"
_ADD = f"""
    INSERT INTO diptych_rates (policy, owner, full_at, previous, spent, refused, used_at)
    VALUES ({{0}}1, {{0}}2, {{now}} + {{0}}4, NULL, {{0}}5, {{0}}6, {{now}})
    ON CONFLICT (policy, owner) DO UPDATE SET {_SET} {_RETURNING}
"""
_ADD_TO_KNOWN = f"UPDATE diptych_rates SET {_SET} WHERE policy = {{0}}1 AND owner = {{0}}2 {_RETURNING}"
_COUNT = "SELECT count(*) FROM diptych_rates"
_SWEEP = f"""
    DELETE FROM diptych_rates WHERE (policy, owner) IN (
      SELECT policy, owner FROM diptych_rates WHERE full_at < {{0}}1 LIMIT {_SWEPT} {{1}})
"""


class Spent(NamedTuple):
    """What a process has spent from a bucket: the seconds in which that fills again, and the seconds until the bucket
    is full as far as the process knows."""

    policy: str
    owner: str
    seconds: float
    debt: float
    units: int
    refused: int


class Shared(NamedTuple):
    """A bucket after that: when it is full again, what that was before, and the seconds until then."""

    full_at: int
    previous: int | None
    debt: float


class RateRow(Struct, frozen=True):
    """A row of the table."""

    policy: str
    owner: str
    full_at: int
    previous: int | None
    spent: int
    refused: int
    used_at: int


_RATES = Records("diptych_rates", RateRow)


def add_spent(dialect: Dialect, spent: Sequence[Spent], *, known_only: bool = False) -> Script[list[Shared | None]]:
    """Add what a process has spent, in an order that is the same in all processes. None if a bucket has no row, and
    gets none as there are too many."""
    now = _NOW[dialect.name].format(dialect.placeholder)
    latest = _LATEST[dialect.name]
    statement = (_ADD_TO_KNOWN if known_only else _ADD).format(dialect.placeholder, now=now, latest=latest)
    clock = [int(time.time() * _MICRO)] if dialect.name == "sqlite" else []
    many = [
        (policy, owner, math.ceil(seconds * _MICRO), math.ceil(debt * _MICRO), units, refused, *clock)
        for policy, owner, seconds, debt, units, refused in spent
    ]
    rows = yield Step(statement, (), many=many)  # sent in one go: others wait for these rows meanwhile
    shared = {
        (policy, owner): Shared(full_at, previous, max(0, debt) / _MICRO)
        for policy, owner, full_at, previous, debt in rows or ()
    }
    return [shared.get((spending.policy, spending.owner)) for spending in spent]


def sweep_rates(dialect: Dialect) -> Script[int]:
    """Delete rows of buckets that have long been full, a batch of them; returns how many rows are left."""
    before = int(time.time() * _MICRO) - _KEPT
    yield Step(_SWEEP.format(dialect.placeholder, "FOR UPDATE SKIP LOCKED" if dialect.lock else ""), (before,))
    row = yield Step(_COUNT, ())
    return 0 if row is None else int(row[0])


async def all_rates(store: Store) -> list[RateRow]:
    """All rows."""
    return await _RATES.all(store, "policy")
