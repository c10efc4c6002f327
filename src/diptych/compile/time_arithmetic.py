"""Arithmetic with dates and times → SQL, exact to the microsecond on both databases.

    Shift(Col(("due",)), timedelta(days=-7))     a moment or a day, so much later; it stays within the years 1 to 9999
    Span(Moment(DATETIME), Col(("opened",)))     the time between two moments, or two days, in microseconds

SQLite has moments as text and no function that keeps microseconds: seconds and microseconds are added apart.
"""

from __future__ import annotations

import datetime as dt

from diptych.compile.fragment import Fragment, sql
from diptych.model.duration import duration_microseconds
from diptych.model.scalars import DATE, Scalar

_FIRST, _LAST = "0001-01-01", "9999-12-31"
_ENDS = {True: (_FIRST, _LAST), False: (f"{_FIRST}T00:00:00.000000Z", f"{_LAST}T23:59:59.999999Z")}
_SECOND = "strftime('%Y-%m-%dT%H:%M:%S', substr({{0}}, 1, 19), '{} seconds'{})"
_FRACTION = "(CAST(substr({{0}}, 21, 6) AS INTEGER) + {})"
_MICROSECONDS = "(CAST(strftime('%s', substr({0}, 1, 19)) AS INTEGER) * 1000000 + CAST(substr({0}, 21, 6) AS INTEGER))"


def shifted(of: Fragment, scalar: Scalar, delta: dt.timedelta, database: str) -> Fragment:
    """A day or a moment that is so much later; null if it is."""
    is_day = scalar is DATE
    first, last = _ENDS[is_day]
    if database == "sqlite":
        later = _sqlite_day(delta) if is_day else _sqlite_moment(delta)
        bounded = f"max(coalesce({later}, '{last}'), '{first}')"
    else:
        kind = "date" if is_day else "timestamptz"
        bounded = f"least(greatest({_postgres(delta, is_day)}, '{first}'::{kind}), '{last}'::{kind})"
    return sql(f"(CASE WHEN {{0}} IS NOT NULL THEN {bounded} END)", of)


def elapsed(left: Fragment, right: Fragment, scalar: Scalar, database: str) -> Fragment:
    """The time from the second to the first, in microseconds."""
    if database == "sqlite":
        if scalar is DATE:
            return sql("(CAST(julianday({}) - julianday({}) AS INTEGER) * 86400000000)", left, right)
        return sql("({} - {})", sql(_MICROSECONDS, left), sql(_MICROSECONDS, right))
    if scalar is DATE:
        return sql("(({} - {})::bigint * 86400000000)", left, right)
    return sql("((extract(epoch FROM {}) - extract(epoch FROM {})) * 1000000)::bigint", left, right)


def _sqlite_day(delta: dt.timedelta) -> str:
    return f"date({{0}}, '{delta.days} days')"


def _sqlite_moment(delta: dt.timedelta) -> str:
    seconds, rest = divmod(duration_microseconds(delta), 1_000_000)
    if not rest:
        return _SECOND.format(seconds, "") + " || substr({0}, 20)"
    fraction = _FRACTION.format(rest)
    carry = f", CASE WHEN {fraction} >= 1000000 THEN '1 seconds' ELSE '0 seconds' END"
    return _SECOND.format(seconds, carry) + f" || format('.%06dZ', {fraction} % 1000000)"


def _postgres(delta: dt.timedelta, is_day: bool) -> str:
    if is_day:
        return f"({{0}} + {delta.days})"
    seconds, rest = divmod(duration_microseconds(delta), 1_000_000)
    return f"({{0}} + {seconds} * interval '1 second' + {rest} * interval '1 microsecond')"
