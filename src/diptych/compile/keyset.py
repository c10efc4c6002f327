"""Keyset pagination: the rows after, or before, the row whose sort keys a cursor holds.

With keys a, b and the id, "after" is (a, b, id) > (?, ?, ?) where all go the same way and none can be null;
else it is spelled out, key by key. Nulls sort last in both directions: after a null comes no value, and every
value comes before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, join, sql
from diptych.model.scalars import Scalar


class SortColumn(Struct, frozen=True):
    """One key of a sort, as SQL."""

    value: Fragment
    scalar: Scalar
    descending: bool
    nullable: bool


class KeysetBound(NamedTuple):
    """A key of a cursor, as SQL: its value, and a cheaper expression that is null where the value is."""

    value: Fragment
    null_probe: Fragment


def keyset(
    dialect: Dialect, keys: Sequence[SortColumn], bounds: Sequence[KeysetBound], *, after: bool, inclusive: bool = False
) -> Fragment:
    """The rows on one side of a cursor, whose keys are the bounds; with `inclusive`, the cursor's own row too."""
    if not any(key.nullable for key in keys) and len({key.descending for key in keys}) == 1:
        sign = (">" if after != keys[0].descending else "<") + ("=" if inclusive else "")
        if len(keys) == 1:
            return sql(f"{{}} {sign} {{}}", keys[0].value, bounds[0].value)
        row = join(", ", (key.value for key in keys))
        return sql(f"({{}}) {sign} ({{}})", row, join(", ", (bound.value for bound in bounds)))
    return sql("({})", _spelled(dialect, list(zip(keys, bounds, strict=True)), after, inclusive))


def _spelled(dialect: Dialect, pairs: list[tuple[SortColumn, KeysetBound]], after: bool, inclusive: bool) -> Fragment:
    (key, bound), *rest = pairs
    beyond = _beyond(key, bound, after)
    same = sql(dialect.same if key.nullable else "{} = {}", key.value, bound.value)
    if rest:
        return sql("{} OR ({} AND ({}))", beyond, same, _spelled(dialect, rest, after, inclusive))
    return sql("{} OR {}", beyond, same) if inclusive else beyond


def _beyond(key: SortColumn, bound: KeysetBound, after: bool) -> Fragment:
    """Strictly on one side, by this key alone."""
    compared = sql("{} > {}" if after != key.descending else "{} < {}", key.value, bound.value)
    if not key.nullable:
        return compared
    if after:
        return sql("({} OR ({} IS NULL AND {} IS NOT NULL))", compared, key.value, bound.null_probe)
    return sql("({} OR ({} IS NOT NULL AND {} IS NULL))", compared, key.value, bound.null_probe)
