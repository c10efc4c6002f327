"""Purges the trash: deletes rows for good whose time to be restored is over, a few at a time.

On PostgreSQL one process does it at a time: who finds the lock taken deletes nothing. A row that others, also deleted
ones, still refer to by `restrict` stays until these are gone.
"""

from __future__ import annotations

import datetime as dt
from typing import Any
from zlib import crc32

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import identifier
from diptych.db.feed import sqlite_time
from diptych.db.script import Script, Step, Violation
from diptych.model.defs import ResourceDef

_DUE = "SELECT deleted_at, id FROM {table} WHERE {due} ORDER BY deleted_at, id LIMIT {most}"
_LAST = "SELECT deleted_at, id FROM ({found}) AS due{where} ORDER BY deleted_at DESC, id DESC LIMIT 1"
_LAST_IN_TURN = (
    "WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(736122048, {number}) AS mine) "
    + _LAST.replace("{where}", " WHERE (SELECT mine FROM turn)")
)
_DELETE = "DELETE FROM {table} WHERE {due} AND (deleted_at, id) <= ({sign}{number}, {sign}{next})"
_COUNTED = "WITH gone AS ({delete} RETURNING 1) SELECT count(*) FROM gone"


class Purged(Struct, frozen=True):
    """What was deleted for good."""

    rows: int
    """How many rows; -1 if others refer to one of them, so that none was."""
    last: tuple[Any, Any] | None
    """The moment and the id of the last of them; None if there was none."""


def purge(resource: ResourceDef, dialect: Dialect, most: int, after: tuple[Any, Any] | None = None) -> Script[Purged]:
    """Delete the rows that were deleted first, or first after a moment and an id."""
    before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=resource.trash)
    table, sign = identifier(resource.table).text, dialect.placeholder
    values: tuple[Any, ...] = (before if dialect.lock else sqlite_time(before), *(after or ()))
    due = f"deleted_at < {sign}1" + f" AND (deleted_at, id) > ({sign}2, {sign}3)" * (after is not None)
    last = _LAST_IN_TURN if dialect.lock else _LAST
    found = _DUE.format(table=table, due=due, most=most)
    row = yield Step(last.format(found=found, where="", number=crc32(resource.table.encode()) - 2**31), values)
    if row is None:
        return Purged(0, None)
    key = (row[0], row[1])
    delete = _DELETE.format(table=table, due=due, sign=sign, number=len(values) + 1, next=len(values) + 2)
    try:
        if dialect.lock:
            row = yield Step(_COUNTED.format(delete=delete), (*values, *key))
        else:
            yield Step(delete, (*values, *key))
            row = yield Step("SELECT changes()", ())
    except Violation:
        return Purged(-1, key)
    return Purged(int(row[0]) if row else 0, key)
