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
    Time        str              TEXT              time             "14:30:00.000000"

Scalars with parameters are made by `decimal_scalar`, `enum_scalar`, `list_scalar` and `value_scalar`; `scalar_values`
converts values between JSON and Python.
"""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field

from diptych.model.deprecation import Deprecation
from diptych.model.duration import duration_out, parse_duration, read_duration
from diptych.model.operators import EQUALITY, ORDERED, TEXTUAL
from diptych.model.scalar_parsers import (
    parse_bigint,
    parse_bool,
    parse_bool_text,
    parse_date,
    parse_datetime,
    parse_float,
    parse_float_text,
    parse_int,
    parse_int_text,
    parse_integer_id,
    parse_json_text,
    parse_json_value,
    parse_plain_uuid,
    parse_string,
    parse_text_id,
    parse_time,
    parse_uuid,
)


class Member(Struct, frozen=True, eq=False):
    """A member of a value object. An absent one has its default (a canonical value) or null."""

    name: str
    attr: str
    scalar: Scalar
    nullable: bool = False
    required: bool = False
    default: Any = None
    constraints: tuple[object, ...] = ()


class Scalar(Struct, frozen=True, eq=False):
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
    deprecated: Mapping[str, Deprecation] = field(default_factory=dict)
    """The choices that are deprecated."""
    digits: tuple[int, int] | None = None
    items: Scalar | None = None
    """The type of the elements of a list."""
    members: Mapping[str, Member] | None = None
    """The members of a value object."""
    description: str = ""
    graphql: str = field(default="")
    """The name of the GraphQL type, where it differs from `name`."""

    def __repr__(self) -> str:
        return self.name

    @property
    def is_json(self) -> bool:
        """Are values of this type stored as JSON? They have no order, and equal ones may differ as texts."""
        return self.items is not None or self.members is not None or self.name == "JSON"


class JsonText(str):
    """Encoded JSON: unlike a list or a dict it is hashable, so it can be part of an expression."""


def encode_json(value: Any) -> str:
    """Compact JSON as text, the form in which JSON is stored."""
    return str(value) if isinstance(value, JsonText) else msgspec.json.encode(value).decode()


def frozen(**entry: Any) -> Mapping[str, Any]:
    """A mapping that cannot change, for the JSON schema of a scalar."""
    return MappingProxyType(entry)


QUOTED = "json_quote(CAST({} AS TEXT))"
"""Any value of SQLite as a JSON string."""
WHOLE = "CAST({0} AS INTEGER) = {0}"
"""The test of an integer in SQLite."""
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
    frozen(type="string"),
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
    frozen(type="string", format="uuid"),
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
    frozen(type="string", pattern="^[1-9][0-9]{0,18}$"),
    parse_integer_id,
    parse_integer_id,
    "INTEGER",
    "bigint",
    "bigint",
    sqlite_test=WHOLE,
    quoted=True,
    ops=EQUALITY,
    graphql="ID",
)
TEXT_ID = Scalar(
    "TextID",
    str,
    frozen(type="string"),
    parse_text_id,
    parse_text_id,
    "TEXT",
    'text COLLATE "C"',
    "text",
    sqlite_out=QUOTED,
    postgres_out="to_json({})::text",
    ops=EQUALITY,
    graphql="ID",
)
IDS = (ID, INTEGER_ID, TEXT_ID)
"""The types of ids."""
INT = Scalar(
    "Int",
    int,
    frozen(type="integer", format="int32", minimum=-(2**31), maximum=2**31 - 1),
    parse_int,
    parse_int_text,
    "INTEGER",
    "integer",
    "integer",
    sqlite_test=f"{{0}} BETWEEN {-(2**31)} AND {2**31 - 1} AND {WHOLE}",
)
BIGINT = Scalar(
    "BigInt",
    int,
    frozen(type="string", format="int64", pattern="^-?(0|[1-9][0-9]{0,18})$"),
    parse_bigint,
    parse_bigint,
    "INTEGER",
    "bigint",
    "bigint",
    sqlite_test=WHOLE,
    quoted=True,
    description="An integer of 64 bits, as a string.",
)
FLOAT = Scalar(
    "Float",
    float,
    frozen(type="number", format="double"),
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
    frozen(type="boolean"),
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
    frozen(type="string", format="date"),
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
    frozen(type="string", format="date-time"),
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
UUID = Scalar(
    "UUID",
    uuid.UUID,
    frozen(type="string", format="uuid"),
    parse_plain_uuid,
    parse_plain_uuid,
    "TEXT",
    "uuid",
    "text::uuid",
    sqlite_out=QUOTED,
    quoted=True,
    description="A UUID in lower case.",
)
TIME = Scalar(
    "Time",
    dt.time,
    frozen(type="string", format="time-local", pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}$"),
    parse_time,
    parse_time,
    "TEXT",
    "time without time zone",
    "text::time",
    sqlite_out=QUOTED,
    postgres_out="to_char({}::interval, 'HH24:MI:SS.US')",
    postgres_test="{0} < '24:00'::time",
    quoted=True,
    description="A time of day, as 14:30:00.000000.",
)
DURATION = Scalar(
    "Duration",
    dt.timedelta,
    frozen(
        type="string", format="duration", pattern=r"^-?P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{1,6})?S)?)?$"
    ),
    parse_duration,
    parse_duration,
    "INTEGER",
    "bigint",
    "bigint",
    sqlite_out=duration_out("format('%06d', {})"),
    postgres_out=duration_out("lpad(({})::text, 6, '0')"),
    sqlite_test=f"{{0}} >= {-(2**63) + 1} AND {WHOLE}",
    postgres_test=f"{{0}} >= {-(2**63) + 1}",
    quoted=True,
    to_sqlite=read_duration,
    to_postgres=read_duration,
    description="A duration of ISO 8601 without months and years, as P1DT2H30M.",
)
JSON = Scalar(
    "JSON",
    object,
    frozen(),
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
    {
        str: STRING,
        int: INT,
        bool: BOOLEAN,
        float: FLOAT,
        dt.date: DATE,
        dt.datetime: DATETIME,
        dt.time: TIME,
        dt.timedelta: DURATION,
        uuid.UUID: UUID,
    }
)
"""The scalars of plain Python types in a model file."""
ALL = (STRING, *IDS, INT, BIGINT, FLOAT, BOOLEAN, DATE, DATETIME, TIME, DURATION, UUID, JSON)
"""The scalars without parameters."""
