"""The scalar types: one table of Python ↔ JSON ↔ GraphQL ↔ OpenAPI ↔ SQLite ↔ PostgreSQL.

An entry is a Scalar. For input, `parse` converts a JSON value (`parse_text` the text of a query parameter) to the
canonical Python value, or raises ValueError with a message "expected …". For output, the database itself writes the
JSON: `sqlite_out` and `postgres_out` are templates over a column, and `quoted` says that their text needs quotation
marks only, no escapes. A column can hold values that its type does not allow (SQLite keeps text in an INTEGER column,
PostgreSQL has NaN): `sqlite_test` and `postgres_test` are conditions that only values of the type satisfy; other values
are never output.

    Scalar      canonical        SQLite            PostgreSQL       on the wire
    ID          str | None       TEXT              uuid             "01890a5d-…"
    Int         int              INTEGER           integer          42
    Decimal     Decimal          INTEGER (scaled)  numeric(p,s)     "12.50"
    DateTime    str              TEXT              timestamptz      "2026-01-02T03:04:05.000000Z"
"""

from __future__ import annotations

import datetime as dt
import enum
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import msgspec

from diptych.model.scalar_parsers import (
    parse_bigint,
    parse_bool,
    parse_bool_text,
    parse_date,
    parse_datetime,
    parse_decimal,
    parse_float,
    parse_float_text,
    parse_int,
    parse_int_text,
    parse_integer_id,
    parse_json_text,
    parse_json_value,
    parse_string,
    parse_uuid,
)

EQUALITY = ("eq", "ne", "in", "isNull")
ORDERED = ("eq", "ne", "lt", "lte", "gt", "gte", "in", "isNull")
SEARCHES = ("contains", "startsWith")
"""Operators that search a text; what is searched for has at most MAX_SEARCHED characters."""
TEXTUAL = (*ORDERED, *SEARCHES)
MAX_SEARCHED = 256
"""The longest text in a search (`contains`, `startsWith`), in characters."""


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A scalar type. Scalars are compared by identity: there is one object for each type."""

    name: str
    python: type
    openapi: Mapping[str, Any]
    parse: Callable[[Any], Any]
    parse_text: Callable[[str], Any]
    sqlite: str
    postgres: str
    postgres_param: str = ""
    """The cast of a bound value in PostgreSQL, for example `text::uuid`."""
    sqlite_out: str = "{}"
    postgres_out: str = "{}::text"
    sqlite_test: str = ""
    """The test of a stored value {0}; empty if every value that the column can hold is valid."""
    postgres_test: str = ""
    quoted: bool = False
    is_text: bool = False
    """Text of any length and content, which can be searched and cut."""
    ops: tuple[str, ...] = ORDERED
    sortable: bool = True
    to_sqlite: Callable[[Any], Any] | None = None
    to_postgres: Callable[[Any], Any] | None = None
    choices: tuple[str, ...] = ()
    digits: tuple[int, int] | None = None
    description: str = ""
    graphql: str = field(default="")
    """The name of the GraphQL type, where it differs from `name`."""

    def __repr__(self) -> str:
        return self.name


class JsonText(str):
    """Encoded JSON: unlike a list or a dict it is hashable, so it can be part of an expression."""


def encode_json(value: Any) -> str:
    """Compact JSON as text, the form in which JSON is stored."""
    return str(value) if isinstance(value, JsonText) else msgspec.json.encode(value).decode()


def _table(**entry: Any) -> Mapping[str, Any]:
    return MappingProxyType(entry)


QUOTED = "json_quote(CAST({} AS TEXT))"
"""Any value of SQLite as a JSON string."""
_WHOLE = "CAST({0} AS INTEGER) = {0}"
_PAIRS = r"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F].."
_WRITABLE = {
    "sqlite": r"json_valid({0}) AND (instr({0}, '\ud') + instr({0}, '\uD') = 0 OR diptych_has_no_half({0}))",
    "postgres": rf"(strpos({{0}}::text, '\ud') + strpos({{0}}::text, '\uD') = 0 "
    rf"OR regexp_replace({{0}}::text, '{_PAIRS}', '', 'g') !~ '\\u[dD][89a-fA-F]')",
}
"""The tests of JSON: strict parsers reject the escape of a lone surrogate, which databases accept."""
_FIRST, _LAST = "0001-01-01", "9999-12-31"

STRING = Scalar(
    "String",
    str,
    _table(type="string"),
    parse_string,
    parse_string,
    "TEXT",
    'text COLLATE "C"',
    "text",
    sqlite_out=QUOTED,
    postgres_out="to_json({})::text",
    is_text=True,
    ops=TEXTUAL,
)
ID = Scalar(
    "ID",
    str,
    _table(type="string", format="uuid"),
    parse_uuid,
    parse_uuid,
    "TEXT",
    "uuid",
    "text::uuid",
    sqlite_out=QUOTED,
    quoted=True,
    ops=EQUALITY,
)
INTEGER_ID = Scalar(
    "IntegerID",
    int,
    _table(type="string", pattern="^[1-9][0-9]{0,18}$"),
    parse_integer_id,
    parse_integer_id,
    "INTEGER",
    "bigint",
    "bigint",
    sqlite_test=_WHOLE,
    quoted=True,
    ops=EQUALITY,
    graphql="ID",
)
INT = Scalar(
    "Int",
    int,
    _table(type="integer", format="int32", minimum=-(2**31), maximum=2**31 - 1),
    parse_int,
    parse_int_text,
    "INTEGER",
    "integer",
    "integer",
    sqlite_test=f"{{0}} BETWEEN {-(2**31)} AND {2**31 - 1} AND {_WHOLE}",
)
BIGINT = Scalar(
    "BigInt",
    int,
    _table(type="string", format="int64", pattern="^-?(0|[1-9][0-9]{0,18})$"),
    parse_bigint,
    parse_bigint,
    "INTEGER",
    "bigint",
    "bigint",
    sqlite_test=_WHOLE,
    quoted=True,
    description="An integer of 64 bits, as a string.",
)
FLOAT = Scalar(
    "Float",
    float,
    _table(type="number", format="double"),
    parse_float,
    parse_float_text,
    "REAL",
    "double precision",
    "double precision",
    sqlite_out="json_quote({})",
    sqlite_test=f"{{0}} BETWEEN {-sys.float_info.max!r} AND {sys.float_info.max!r}",
    postgres_test="{0} - {0} = 0",
)
BOOLEAN = Scalar(
    "Boolean",
    bool,
    _table(type="boolean"),
    parse_bool,
    parse_bool_text,
    "INTEGER",
    "boolean",
    "boolean",
    sqlite_out="CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END",
    sqlite_test="{0} IN (0, 1)",
    ops=EQUALITY,
    to_sqlite=int,
)
DATE = Scalar(
    "Date",
    dt.date,
    _table(type="string", format="date"),
    parse_date,
    parse_date,
    "TEXT",
    "date",
    "text::date",
    sqlite_out=QUOTED,
    postgres_out="to_char({}, 'YYYY-MM-DD')",
    quoted=True,
    postgres_test=f"{{0}} BETWEEN '{_FIRST}'::date AND '{_LAST}'::date",
    description="A day, as 2026-01-31.",
)
DATETIME = Scalar(
    "DateTime",
    dt.datetime,
    _table(type="string", format="date-time"),
    parse_datetime,
    parse_datetime,
    "TEXT",
    "timestamp with time zone",
    "text::timestamptz",
    sqlite_out=QUOTED,
    postgres_out="to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    quoted=True,
    postgres_test=f"{{0}} BETWEEN '{_FIRST}Z'::timestamptz AND '{_LAST} 23:59:59.999999Z'::timestamptz",
    description="A moment in UTC, as 2026-01-31T12:00:00.000000Z (RFC 3339).",
)
JSON = Scalar(
    "JSON",
    object,
    _table(),
    parse_json_value,
    parse_json_text,
    "TEXT",
    "json",
    "text::json",
    ops=("isNull",),
    sqlite_test=_WRITABLE["sqlite"],
    postgres_test=_WRITABLE["postgres"],
    sortable=False,
    to_sqlite=encode_json,
    to_postgres=encode_json,
    description="Any JSON value.",
)

PLAIN: Mapping[type, Scalar] = MappingProxyType(
    {str: STRING, int: INT, bool: BOOLEAN, float: FLOAT, dt.date: DATE, dt.datetime: DATETIME}
)
"""The scalars of plain Python types in a model file."""


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
        _table(type="string", format="decimal", pattern=_decimal_pattern(precision, scale)),
        parse,
        parse,
        "INTEGER",
        f"numeric({precision},{scale})",
        "text::numeric",
        sqlite_out=out,
        quoted=True,
        sqlite_test=f"{{0}} BETWEEN {-most} AND {most} AND {_WHOLE}",
        postgres_test="{0} <> 'NaN'::numeric",
        to_sqlite=lambda number: int(f"{number:f}".replace(".", "")),
        to_postgres=str,
        graphql="Decimal",
        description="A decimal number as a string, always with all its fraction digits.",
        digits=(precision, scale),
    )


def _decimal_pattern(precision: int, scale: int) -> str:
    fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
    return rf"^-?[0-9]{{1,{precision - scale}}}{fraction}$" if precision > scale else rf"^-?0{fraction}$"


_FEW = 8
"""So many values SQLite compares one by one in less time than by a list, for which it makes a table in every run."""


@functools.cache
def enumeration(kind: type[enum.Enum]) -> Scalar:
    """One of the values of an enum; stored and sent as the member's value."""
    choices = tuple(str(member.value) for member in kind)
    known = frozenset(choices)
    test = f"{{0}} IN ({', '.join(map(_literal, choices))})"
    few = f"CASE {{0}} {' '.join(f'WHEN {_literal(choice)} THEN 1' for choice in choices)} END"

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return value

    return Scalar(
        kind.__name__,
        kind,
        _table(type="string", enum=list(choices)),
        parse,
        parse,
        "TEXT",
        'text COLLATE "C"',
        "text",
        sqlite_test=few if len(choices) <= _FEW else test,
        postgres_test=test,
        quoted=True,
        choices=choices,
        description=own_doc(kind),
    )


def _literal(choice: str) -> str:
    """A value of an enum as an SQL literal in a template."""
    return "'" + choice.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def own_doc(kind: type) -> str:
    """The docstring of a class itself, not one that it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def as_json(value: Any) -> Any:
    """Convert a Python value of a model file (a default, a constant of a rule) to what `parse` accepts."""
    match value:
        case enum.Enum():
            return value.value
        case Decimal():
            return f"{value:f}"
        case dt.datetime(tzinfo=None):
            raise ValueError("expected a time with a zone, such as datetime(2026, 1, 31, tzinfo=UTC)")
        case dt.datetime():
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"
        case dt.date():
            return value.isoformat()
    return value


def from_json(scalar: Scalar, value: Any) -> Any:
    """Convert JSON from the database, or a canonical value, to a Python value for the model's own code.

    A time is a datetime in UTC, a decimal a Decimal, an enum its member, an id a string.
    """
    convert = _PYTHON.get(scalar)
    if convert is None and (scalar.choices or scalar.python is Decimal):
        convert = scalar.python
    return value if value is None or convert is None else convert(value)


def to_json(scalar: Scalar, value: Any) -> Any:
    """Convert a Python value of the model's own code to JSON. Raises ValueError "expected …" if it is not valid."""
    if value is None:
        return None
    canonical = scalar.parse(as_json(value))
    if isinstance(canonical, Decimal):
        return f"{canonical:f}"
    return str(canonical) if canonical is not None and scalar in (BIGINT, INTEGER_ID) else canonical


_PYTHON: Mapping[Scalar, Callable[[Any], Any]] = {
    BIGINT: int,
    FLOAT: float,
    INTEGER_ID: str,
    DATE: dt.date.fromisoformat,
    DATETIME: dt.datetime.fromisoformat,
}
"""Conversions of JSON values to Python, where they differ."""
