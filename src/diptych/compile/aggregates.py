"""SQL of measures and buckets, for both databases.

A measure is made of aggregates: templates over the value {0} of each row, and a template over these. So a sum in SQLite
is exact although it may not fit into 64 bits: it adds the quotients and the remainders of its values.

    avg of a Decimal(10,2)   sum(v / 1000000000), sum(v % 1000000000), count(v)   →   CAST(… AS REAL) / ({2} * 1e2)

A sum of more than SUM_DIGITS digits is refused when it is used: by a function in SQLite, and by a cast that fails in
PostgreSQL; `plan.too_many_digits` finds the field in the error.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.compile.fragment import label
from diptych.model.aggregates import SUM_DIGITS
from diptych.model.rules.expr import Bucket, Fn
from diptych.model.scalars import DATE, DATETIME, INT, Scalar

_HALF = 10**9
_FEW_DIGITS = 9
"""Numbers of so many digits have a sum of less than SUM_DIGITS, unless there are a thousand million of them."""
_SIMPLE: Mapping[Fn, str] = {
    "count": "count(*)",
    "distinct": "count(DISTINCT {0})",
    "min": "min({0})",
    "max": "max({0})",
}
_MIDNIGHT = "T00:00:00.000000Z"

_TIMES: Mapping[Bucket, tuple[int, str]] = {"year": (4, "-01-01"), "month": (7, "-01"), "day": (10, "")}
BUCKETS: Mapping[tuple[str, Scalar, Bucket], str] = {
    **{
        ("sqlite", scalar, by): f"(substr({{}}, 1, {length}) || '{rest}{end}')"
        for by, (length, rest) in _TIMES.items()
        for scalar, end in ((DATE, ""), (DATETIME, _MIDNIGHT))
    },
    ("sqlite", DATETIME, "hour"): "(substr({}, 1, 13) || ':00:00.000000Z')",
    **{("postgres", DATE, by): f"date_trunc('{by}', {{}}::timestamp)::date" for by in _TIMES},
    **{("postgres", DATETIME, by): f"date_trunc('{by}', {{}}, 'UTC')" for by in _TIMES},
    ("postgres", DATETIME, "hour"): "date_trunc('hour', {}, 'UTC')",
}
"""The first moment of the year, month, day or hour of a value."""


def measure_sql(dialect: str, fn: Fn, scalar: Scalar, name: str) -> tuple[tuple[str, ...], str]:
    """The aggregates of a measure over values of a type, and the template of it over them; `name` is the field."""
    if fn in _SIMPLE:
        return (_SIMPLE[fn],), "{0}"
    scale = scalar.digits[1] if scalar.digits else 0
    is_small = scalar is INT or (scalar.digits is not None and scalar.digits[0] <= _FEW_DIGITS)
    parts, whole = _sqlite_sum(is_small, name) if dialect == "sqlite" else _postgres_sum(is_small, scale, name)
    if fn == "sum":
        return parts, whole
    count = f"{{{len(parts)}}}"
    if dialect == "sqlite":
        return (*parts, "count({0})"), f"(CAST({whole} AS REAL) / ({count} * 1e{scale}))"
    one = 10**scale
    return (*parts, "count({0})"), f"((({whole}) * {one})::float8 / ({count}::numeric * {one})::float8)"


def _sqlite_sum(is_small: bool, name: str) -> tuple[tuple[str, ...], str]:
    if is_small:
        return ("sum({0})",), "{0}"
    whole = f"{{0}} * {_HALF} + {{1}}"
    fits = f"abs({{0}} + {{1}} / {_HALF}) <= {_HALF} AND abs({whole}) < {10**SUM_DIGITS}"
    refused = f"diptych_long_sum('{_checked(name)}')"
    parts = (f"sum({{0}} / {_HALF})", f"sum({{0}} % {_HALF})")
    return parts, f"(CASE WHEN {{0}} IS NULL THEN NULL WHEN {fits} THEN {whole} ELSE {refused} END)"


def _postgres_sum(is_small: bool, scale: int, name: str) -> tuple[tuple[str, ...], str]:
    if is_small:
        return ("sum({0})",), "{0}"
    refused = f"({{0}}::text || ' sum of {_checked(name)}')::numeric"
    fits = f"{{0}} IS NULL OR abs({{0}}) < {10 ** (SUM_DIGITS - scale)}"
    return ("sum({0})",), f"(CASE WHEN {fits} THEN {{0}} ELSE {refused} END)"


def _checked(name: str) -> str:
    """A name of the model, as text of SQL."""
    return label(name)[1:-2] if name else ""
