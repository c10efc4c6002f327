"""The condition that a row is the one with an id of the request.

    AlbumId                    _t0."AlbumId" = ?1
    PlaylistId, TrackId        _t0."PlaylistId" = ?1 AND _t0."TrackId" = ?2       of the one id "7,12"

So a key of several columns is found by its index: each part of the id is bound as a value of its own column.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, join, sql
from diptych.compile.plan import SlotBind
from diptych.compile.table_ref import TableRef
from diptych.model.rules.expr import Slot
from diptych.model.scalars import TEXT_ID, Scalar


def own_row(row: TableRef, id: Slot, dialect: Dialect, columns: Sequence[str] = ()) -> Fragment:
    """The condition that a row has this id, or refers to the row that has it by these columns."""
    columns = columns or row.resource.key_columns
    if len(columns) == 1:
        return _equal(row.id, dialect.value(SlotBind(id.index, id.scalar)), id.scalar, row, dialect)
    scalars = {field.column: field.scalar for field in row.resource.fields.values() if field.stored}
    kinds = [_part_of(scalars[name], place, len(columns)) for place, name in enumerate(columns)]
    values = (dialect.value(SlotBind(id.index, kind)) for kind in kinds)
    parts = (
        _equal(row.column(name), value, scalars[name], row, dialect)
        for name, value in zip(columns, values, strict=True)
    )
    return sql("({})", join(" AND ", parts))


def _equal(column: Fragment, value: Fragment, scalar: Scalar, row: TableRef, dialect: Dialect) -> Fragment:
    """Is a column of a key this value? A text of a table that exists is compared by its index, whatever that takes for
    equal, and then by its characters."""
    same = sql("{} = {}", column, value)
    if row.resource.managed or not (scalar is TEXT_ID or scalar.is_text):
        return same
    return sql("{} AND {} = {}", same, sql(dialect.plain_text, column), value)


@functools.lru_cache(maxsize=1_024)
def _part_of(scalar: Scalar, place: int, count: int) -> Scalar:
    """The type of a column of a key, which takes its value from the whole id: null if that is malformed."""

    def part(id: Any) -> Any:
        texts = str(id).split(",")
        if len(texts) != count:
            return None
        try:
            return scalar.parse_text(texts[place].replace("%2C", ",").replace("%25", "%"))
        except ValueError:
            return None

    def converted(convert: Any) -> Any:
        def take(id: Any) -> Any:
            value = part(id)
            return value if value is None or convert is None else convert(value)

        return take

    return replace(scalar, to_sqlite=converted(scalar.to_sqlite), to_postgres=converted(scalar.to_postgres))
