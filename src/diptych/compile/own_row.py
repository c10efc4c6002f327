"""The condition that a row is the one with an id of the request.

    AlbumId                    _t0."AlbumId" = ?1
    PlaylistId, TrackId        _t0."PlaylistId" = ?1 AND _t0."TrackId" = ?2       of the one id "7,12"

So a key of several columns is found by its index: each part of the id is bound as a value of its own column.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, join, sql
from diptych.compile.plan import SlotBind
from diptych.compile.table_ref import TableRef
from diptych.model.rules.expr import Slot
from diptych.model.scalars import BOOLEAN, DATETIME, TEXT_ID, Scalar


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


_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?:\+00)?", re.ASCII)
"""A moment as PostgreSQL writes it."""
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
"""A boolean or a decimal as SQLite stores it."""


@functools.lru_cache(maxsize=1_024)
def _part_of(scalar: Scalar, place: int, count: int) -> Scalar:
    """The type of a column of a key, which takes its value from the whole id: null if that is malformed.

    A part has the text that its database makes of the value: SQLite has numbers for booleans and decimals.
    """
    is_number = scalar is BOOLEAN or scalar.digits is not None

    def text_of(id: Any) -> str:
        texts = str(id).split(",")
        if len(texts) != count:
            raise ValueError("another number of columns")
        return texts[place].replace("%2C", ",").replace("%25", "%")

    def to_sqlite(id: Any) -> Any:
        text = text_of(id)
        if not is_number:
            return _converted(scalar.parse_text(text), scalar.to_sqlite)
        return int(text) if _NUMBER.fullmatch(text) else None

    def to_postgres(id: Any) -> Any:
        text = text_of(id)
        moment = _MOMENT.fullmatch(text) if scalar is DATETIME else None
        text = text if moment is None else f"{moment[1]}T{moment[2]}Z"
        return _converted(scalar.parse_text(text), scalar.to_postgres)

    return replace(scalar, to_sqlite=_or_null(to_sqlite), to_postgres=_or_null(to_postgres))


def _converted(value: Any, convert: Callable[[Any], Any] | None) -> Any:
    return value if convert is None else convert(value)


def _or_null(take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def part(id: Any) -> Any:
        try:
            return take(id)
        except ValueError:
            return None

    return part
