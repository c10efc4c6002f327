"""Decimal numbers with a fixed number of digits: an exact numeric in PostgreSQL, a scaled integer in SQLite."""

from __future__ import annotations

import functools
from decimal import Decimal

from diptych.model.scalar_parsers import parse_decimal
from diptych.model.scalars import WHOLE, Scalar, frozen


@functools.cache
def decimal(precision: int, scale: int) -> Scalar:
    """A decimal number of at most `precision` digits, `scale` of them after the point."""
    parse = functools.partial(parse_decimal, precision, scale, Decimal(0).scaleb(-scale))
    out = "{}"
    if scale:
        digits, one = f"%d.%0{scale}d", 10**scale
        out = f"CASE WHEN {{0}} >= 0 THEN format('{digits}', {{0}} / {one}, {{0}} % {one}) "
        out += f"WHEN {{0}} < 0 THEN format('-{digits}', -{{0}} / {one}, -{{0}} % {one}) END"
    most = 10**precision - 1
    return Scalar(
        f"Decimal({precision},{scale})",
        Decimal,
        frozen(type="string", format="decimal", pattern=_decimal_pattern(precision, scale)),
        parse,
        parse,
        "INTEGER",
        f"numeric({precision},{scale})",
        "text::numeric",
        sqlite_out=out,
        quoted=True,
        sqlite_test=f"{{0}} BETWEEN {-most} AND {most} AND {WHOLE}",
        postgres_test="{0} <> 'NaN'::numeric",
        to_sqlite=_scaled,
        to_postgres=str,
        graphql="Decimal",
        description="A decimal number as a string, always with all its fraction digits.",
        digits=(precision, scale),
    )


def _scaled(number: Decimal) -> int:
    """A number with all its digits after the point, as an integer. What has few of them is never written with an E."""
    text = str(number)
    return int((f"{number:f}" if "E" in text else text).replace(".", ""))


def _decimal_pattern(precision: int, scale: int) -> str:
    fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
    return rf"^-?[0-9]{{1,{precision - scale}}}{fraction}$" if precision > scale else rf"^-?0{fraction}$"
