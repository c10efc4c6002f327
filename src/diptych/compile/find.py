"""A unique key → SQL: the row that has it, locked where others could change it meanwhile.

    SELECT _t0."id", (… IS TRUE) FROM "users" _t0 WHERE _t0."email" = ?1

The second column says whether the viewer may know of the row.
"""

from __future__ import annotations

from typing import Literal

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, sql
from diptych.compile.own_row import own_row
from diptych.compile.plan import Plan, SlotBind
from diptych.compile.read import Reads
from diptych.model.model import Model
from diptych.model.rules.expr import Expr, Slot
from diptych.model.scalars import TEXT_ID

Lock = Literal["", "KEY SHARE", "NO KEY UPDATE", "UPDATE"]


def compile_find(resource: str, has: Expr, seen: Expr, model: Model, dialect: Dialect, lock: Lock = "") -> Plan:
    """The statement that finds the row which `has` a key. One to keep is locked against deletion only."""
    reads = Reads(model, dialect, None)
    row = reads.open(resource)
    key = row.id if row.resource.key.python is int else sql(dialect.id_text, row.id)
    shown = sql(dialect.boolean, reads.condition(seen, row))
    locked = Fragment(f" FOR {lock} OF {row.alias}" if lock and dialect.lock else "")
    return dialect.plan(sql("SELECT {}, {} FROM {}{}{}", key, shown, reads.source(row), reads.all(row, has), locked))


def compile_rows(resource: str, where: Expr, most: Slot, model: Model, dialect: Dialect, lock: Lock) -> Plan:
    """The statement that locks rows in the order of their ids, one more than `most` at most, and gives their ids."""
    reads = Reads(model, dialect, None)
    row = reads.open(resource)
    size = dialect.value(SlotBind(most.index, most.scalar))
    locked = Fragment(f" FOR {lock} OF {row.alias}" if lock and dialect.lock else "")
    inner = sql(
        'SELECT {} AS "id" FROM {}{} ORDER BY {} LIMIT {} + 1{}',
        *(row.id, reads.source(row), reads.all(row, where), row.id, size, locked),
    )
    text = dialect.out(TEXT_ID) if row.resource.key is TEXT_ID else dialect.id_text
    return dialect.plan(sql("SELECT {} FROM ({}) _r", sql(dialect.gather, sql(text, Fragment('_r."id"'))), inner))


def compile_there(resource: str, key: Slot, model: Model, dialect: Dialect) -> Plan:
    """The statement that returns a row if the one with this id exists, for any viewer."""
    reads = Reads(model, dialect, None)
    row = reads.open(resource)
    return dialect.plan(sql("SELECT 1 FROM {} WHERE {}", reads.source(row), own_row(row, key, dialect)))
