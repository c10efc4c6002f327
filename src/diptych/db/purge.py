"""Purges the trash: deletes rows for good whose time to be restored is over, a few at a time.

On PostgreSQL one process does it at a time: who finds the lock taken deletes nothing. A row that others, also deleted
ones, still refer to by `restrict` stays until these are gone.
"""

from __future__ import annotations

import datetime as dt
from zlib import crc32

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import identifier
from diptych.db.feed import sqlite_time
from diptych.db.script import Script, Step, Violation
from diptych.model.defs import ResourceDef

_OLDEST = "SELECT id FROM {table} WHERE deleted_at < {before} ORDER BY deleted_at, id LIMIT {most} OFFSET {skip}"
_SQLITE = f"DELETE FROM {{table}} WHERE id IN ({_OLDEST})"
_POSTGRES = f"""
    WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(736122048, {{number}}) AS mine),
      gone AS (DELETE FROM {{table}} WHERE (SELECT mine FROM turn) AND id IN ({_OLDEST}) RETURNING 1)
    SELECT count(*) FROM gone
"""


def purge(resource: ResourceDef, dialect: Dialect, most: int, skip: int = 0) -> Script[int]:
    """Delete the rows that were deleted first, without the first `skip`; returns how many, or -1 if others refer to
    one of them."""
    before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=resource.trash)
    table = identifier(resource.table).text
    try:
        if dialect.lock:
            number = crc32(resource.table.encode()) - 2**31
            statement = _POSTGRES.format(table=table, number=number, before="$1::timestamptz", most=most, skip=skip)
            row = yield Step(statement, (before,))
        else:
            yield Step(_SQLITE.format(table=table, before="?1", most=most, skip=skip), (sqlite_time(before),))
            row = yield Step("SELECT changes()", ())
    except Violation:
        return -1
    return int(row[0]) if row else 0
