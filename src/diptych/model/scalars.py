"""The one table of value types: Python ↔ JSON ↔ GraphQL ↔ OpenAPI ↔ SQLite ↔ PostgreSQL.

A row of the table is a Scalar. Going in, `parse` takes a JSON value (`parse_text` the text of a query
parameter) to the one canonical Python value, or raises ValueError with a sentence that ends "expected …".
Going out, the database itself writes the JSON: `sqlite_out` and `postgres_out` are templates over a column,
and `quoted` says that their text needs nothing but quotation marks around it. A column can hold more than its type
allows (SQLite keeps text in an INTEGER column, PostgreSQL has NaN): `sqlite_test` and `postgres_test` are conditions
that hold for values of the type alone, and what fails them is never written.

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
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import msgspec

EQUALITY = ("eq", "ne", "in", "isNull")
ORDERED = ("eq", "ne", "lt", "lte", "gt", "gte", "in", "isNull")
TEXTUAL = (*ORDERED, "contains", "startsWith")
MAX_SEARCHED = 4096
"""Characters of a text that a client searches for."""


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """One type of value. Scalars are compared by identity: there is one object for one type."""

    name: str
    python: type
    openapi: Mapping[str, Any]
    parse: Callable[[Any], Any]
    parse_text: Callable[[str], Any]
    sqlite: str
    postgres: str
    postgres_param: str = ""
    """The cast that a bound value takes in PostgreSQL, for example `text::uuid`."""
    sqlite_out: str = "{}"
    postgres_out: str = "{}::text"
    sqlite_test: str = ""
    """The test of a stored value {0}; empty where all that a column can hold can be written."""
    postgres_test: str = ""
    quoted: bool = False
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


_SURROGATE = re.compile("[\ud800-\udfff]")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_DECIMAL = re.compile(r"(-?)0*([0-9]{1,18})(?:\.([0-9]{1,18}))?", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_JSON_DEPTH = 64


def check_text(value: str) -> str:
    """Text that both databases take: Unicode without NUL and without lone surrogates."""
    if "\0" in value or (not value.isascii() and _SURROGATE.search(value)):
        raise ValueError("expected text without NUL and without lone surrogates")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return check_text(value)


def _whole(value: Any) -> Any:
    """An integer in JSON may be written as 1.0, too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _uuid(value: Any) -> str | None:
    """An ill-formed id names nothing: it is None, which equals no id."""
    if isinstance(value, str):
        return value if _UUID.fullmatch(value) else None
    value = _whole(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    raise ValueError("expected an id, which is a string")


def _integer_id(value: Any) -> int | None:
    value = _whole(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected an id, which is a string")
    text = str(value) if isinstance(value, str) or abs(value) < 2**64 else ""
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return number if 0 < number < 2**63 else None


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ValueError("expected an integer")
    if not -(2**31) <= value < 2**31:
        raise ValueError("expected an integer of 32 bits")
    return int(value)


def _int_text(value: str) -> int:
    if not _INTEGER.fullmatch(value):
        raise ValueError("expected an integer")
    return _int(int(value))


def _bigint(value: Any) -> int:
    value = int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else _whole(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected an integer in a string")
    if not -(2**63) <= value < 2**63:
        raise ValueError("expected an integer of 64 bits")
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


def _float_text(value: str) -> float:
    if not _NUMBER.fullmatch(value):
        raise ValueError("expected a number")
    return _float(float(value))


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _bool_text(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("expected true or false")
    return value == "true"


def _date(value: Any) -> str:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("expected a date such as 2026-01-31")
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("expected a date that exists") from None


def _datetime(value: Any) -> str:
    """RFC 3339, taken to UTC, always with six fraction digits, so that the text sorts as the time does."""
    found = _DATETIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected a time such as 2026-01-31T12:00:00Z, with at most six fraction digits")
    day, clock, fraction, sign, hours, minutes = found.groups()
    try:
        moment = dt.datetime.fromisoformat(f"{day}T{clock}")
        if sign:
            offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
            moment = moment - offset if sign == "+" else moment + offset
    except (ValueError, OverflowError):
        raise ValueError("expected a time that exists, between the years 1 and 9999") from None
    return f"{moment.isoformat()}.{(fraction or '').ljust(6, '0')}Z"


def _json(value: Any) -> Any:
    """Any JSON value that both databases keep as it is; looked through level by level, however deep it is."""
    level: list[Any] = [value]
    for _ in range(_JSON_DEPTH):
        level = [inner for part in level for inner in _json_parts(part)]
    for part in level:
        if isinstance(part, list | dict):
            raise ValueError(f"expected JSON of at most {_JSON_DEPTH} levels")
        _json_parts(part)
    return value


def _json_parts(part: Any) -> Iterable[Any]:
    match part:
        case None | bool():
            return ()
        case str():
            check_text(part)
        case int():
            if not -(2**63) <= part < 2**63:
                raise ValueError("expected JSON with integers of 64 bits")
        case float():
            if not math.isfinite(part):
                raise ValueError("expected JSON with finite numbers")
        case list():
            return part
        case dict():
            for key in part:
                _string(key)
            return part.values()
        case _:
            raise ValueError("expected JSON")
    return ()


def _json_text(value: str) -> Any:
    try:
        return _json(msgspec.json.decode(value))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise ValueError("expected JSON") from None


class JsonText(str):
    """JSON that is written already: unlike a list or an object, it can stand in an expression."""


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
"""The tests of JSON: strict parsers take no escape of half a character (a lone surrogate), which databases let pass."""
_FIRST, _LAST = "0001-01-01", "9999-12-31"

STRING = Scalar(
    "String", str, _table(type="string"), _string, _string, "TEXT", 'text COLLATE "C"', "text",
    sqlite_out=QUOTED, postgres_out="to_json({})::text", ops=TEXTUAL,
)  # fmt: skip
ID = Scalar(
    "ID", str, _table(type="string", format="uuid"), _uuid, _uuid, "TEXT", "uuid", "text::uuid",
    sqlite_out=QUOTED, quoted=True, ops=EQUALITY,
)  # fmt: skip
INTEGER_ID = Scalar(
    "IntegerID", int, _table(type="string", pattern="^[1-9][0-9]{0,18}$"), _integer_id, _integer_id,
    "INTEGER", "bigint", "bigint", sqlite_test=_WHOLE, quoted=True, ops=EQUALITY, graphql="ID",
)  # fmt: skip
INT = Scalar(
    "Int", int, _table(type="integer", format="int32", minimum=-(2**31), maximum=2**31 - 1),
    _int, _int_text, "INTEGER", "integer", "integer",
    sqlite_test=f"{{0}} BETWEEN {-(2**31)} AND {2**31 - 1} AND {_WHOLE}",
)  # fmt: skip
BIGINT = Scalar(
    "BigInt", int, _table(type="string", format="int64", pattern="^-?(0|[1-9][0-9]{0,18})$"),
    _bigint, _bigint, "INTEGER", "bigint", "bigint", sqlite_test=_WHOLE, quoted=True,
    description="An integer of 64 bits, as a string.",
)  # fmt: skip
FLOAT = Scalar(
    "Float", float, _table(type="number", format="double"), _float, _float_text,
    "REAL", "double precision", "double precision", sqlite_out="json_quote({})",
    sqlite_test=f"{{0}} BETWEEN {-sys.float_info.max!r} AND {sys.float_info.max!r}", postgres_test="{0} - {0} = 0",
)  # fmt: skip
BOOLEAN = Scalar(
    "Boolean", bool, _table(type="boolean"), _bool, _bool_text, "INTEGER", "boolean", "boolean",
    sqlite_out="CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END", sqlite_test="{0} IN (0, 1)", ops=EQUALITY,
    to_sqlite=int,
)  # fmt: skip
DATE = Scalar(
    "Date", dt.date, _table(type="string", format="date"), _date, _date, "TEXT", "date", "text::date",
    sqlite_out=QUOTED, postgres_out="to_char({}, 'YYYY-MM-DD')", quoted=True,
    postgres_test=f"{{0}} BETWEEN '{_FIRST}'::date AND '{_LAST}'::date", description="A day, as 2026-01-31.",
)  # fmt: skip
DATETIME = Scalar(
    "DateTime", dt.datetime, _table(type="string", format="date-time"), _datetime, _datetime,
    "TEXT", "timestamp with time zone", "text::timestamptz",
    sqlite_out=QUOTED, postgres_out="to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", quoted=True,
    postgres_test=f"{{0}} BETWEEN '{_FIRST}Z'::timestamptz AND '{_LAST} 23:59:59.999999Z'::timestamptz",
    description="A moment in UTC, as 2026-01-31T12:00:00.000000Z (RFC 3339).",
)  # fmt: skip
JSON = Scalar(
    "JSON", object, _table(), _json, _json_text, "TEXT", "json", "text::json", ops=("isNull",),
    sqlite_test=_WRITABLE["sqlite"], postgres_test=_WRITABLE["postgres"], sortable=False,
    to_sqlite=encode_json, to_postgres=encode_json, description="Any JSON value.",
)  # fmt: skip

PLAIN: Mapping[type, Scalar] = MappingProxyType(
    {str: STRING, int: INT, bool: BOOLEAN, float: FLOAT, dt.date: DATE, dt.datetime: DATETIME}
)
"""The scalars that a bare Python type means in a model file."""


@functools.cache
def decimal(precision: int, scale: int) -> Scalar:
    """A decimal number of at most `precision` digits, `scale` of them after the point."""
    parse = functools.partial(_decimal, precision, scale, Decimal(0).scaleb(-scale))
    out = "{}"
    if scale:
        parts = f"abs({{0}}) / {10**scale}, abs({{0}}) % {10**scale}"
        out = f"CASE WHEN {{0}} IS NOT NULL THEN format('%s%d.%0{scale}d', iif({{0}} < 0, '-', ''), {parts}) END"
    most = 10**precision - 1
    return Scalar(
        f"Decimal({precision},{scale})", Decimal,
        _table(type="string", format="decimal", pattern=_decimal_pattern(precision, scale)), parse, parse,
        "INTEGER", f"numeric({precision},{scale})", "text::numeric", sqlite_out=out, quoted=True,
        sqlite_test=f"{{0}} BETWEEN {-most} AND {most} AND {_WHOLE}", postgres_test="{0} <> 'NaN'::numeric",
        to_sqlite=lambda number: int(f"{number:f}".replace(".", "")), to_postgres=str, graphql="Decimal",
        description="A decimal number as a string, always with all its fraction digits.", digits=(precision, scale),
    )  # fmt: skip


def _decimal(precision: int, scale: int, zero: Decimal, value: Any) -> Decimal:
    value = _whole(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        value = str(value)
    found = _DECIMAL.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"expected a decimal number in a string, such as {zero:f}")
    sign, whole, fraction = found[1], found[2], found[3] or ""
    if len(fraction) > scale:
        raise ValueError(f"expected at most {scale} digits after the point")
    if whole != "0" and len(whole) > precision - scale:
        raise ValueError(f"expected at most {precision - scale} digits before the point")
    return Decimal(f"{sign}{whole}.{fraction.ljust(scale, '0')}") or zero


def _decimal_pattern(precision: int, scale: int) -> str:
    fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
    return rf"^-?[0-9]{{1,{precision - scale}}}{fraction}$" if precision > scale else rf"^-?0{fraction}$"


@functools.cache
def enumeration(kind: type[enum.Enum]) -> Scalar:
    """One of the values of an enum; stored and sent as the member's value."""
    choices = tuple(str(member.value) for member in kind)
    known = frozenset(choices)
    test = f"{{0}} IN ({', '.join(map(_literal, choices))})"

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return value

    return Scalar(
        kind.__name__, kind, _table(type="string", enum=list(choices)), parse, parse,
        "TEXT", 'text COLLATE "C"', "text", sqlite_test=test, postgres_test=test, quoted=True, choices=choices,
        description=own_doc(kind),
    )  # fmt: skip


def _literal(choice: str) -> str:
    """A value of an enum as a literal of SQL, in a template."""
    return "'" + choice.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def own_doc(kind: type) -> str:
    """The docstring of a class itself, not one that it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def as_json(value: Any) -> Any:
    """A value that a model file writes (a default, a constant of a rule) in the form that `parse` takes."""
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
    """The Python value of a model file's own code, from JSON that a database wrote, or from a canonical value.

    A moment is a datetime in UTC, a decimal a Decimal, an enum its member, an id text.
    """
    convert = _PYTHON.get(scalar)
    if convert is None and (scalar.choices or scalar.python is Decimal):
        convert = scalar.python
    return value if value is None or convert is None else convert(value)


def to_json(scalar: Scalar, value: Any) -> Any:
    """A value of a model file's own code as it stands on the wire, or a ValueError that says what was expected."""
    if value is None:
        return None
    canonical = scalar.parse(as_json(value))
    if isinstance(canonical, Decimal):
        return f"{canonical:f}"
    return str(canonical) if canonical is not None and scalar in (BIGINT, INTEGER_ID) else canonical


_PYTHON: Mapping[Scalar, Callable[[Any], Any]] = {
    BIGINT: int, FLOAT: float, INTEGER_ID: str, DATE: dt.date.fromisoformat, DATETIME: dt.datetime.fromisoformat,
}  # fmt: skip
"""How a value becomes one of Python, where it is not the same."""
