"""The parsers of scalar values: JSON, or the text of a query parameter, to the canonical Python value.

Each raises ValueError with a message "expected …".
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

_SURROGATE = re.compile("[\ud800-\udfff]")
_HEX = bytes(ord("x") if byte in b"0123456789abcdef" else byte if byte == ord("-") else 0 for byte in range(256))
_UUID = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
"""A UUID, translated by _HEX: a third of the time of a regular expression."""
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_DECIMAL = re.compile(r"(-?)0*([0-9]{1,18})(?:\.([0-9]{1,18}))?", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_TIME = re.compile(r"((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_JSON_DEPTH = 64


def check_text(value: str) -> str:
    """Check that both databases accept the text: Unicode without NUL and without lone surrogates."""
    if "\0" in value or (not value.isascii() and _SURROGATE.search(value)):
        raise ValueError("expected text without NUL and without lone surrogates")
    return value


def parse_string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value if value.isascii() and "\0" not in value else check_text(value)


def _whole(value: Any) -> Any:
    """Convert a float without fraction, since an integer in JSON may be written as 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parse_uuid(value: Any) -> str | None:
    """A UUID; None if it is ill-formed, since that equals no id."""
    if isinstance(value, str):
        is_uuid = len(value) == len(_UUID) and value.isascii() and value.encode().translate(_HEX) == _UUID
        return value if is_uuid else None
    value = _whole(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    raise ValueError("expected an id, which is a string")


def parse_integer_id(value: Any) -> int | None:
    value = _whole(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected an id, which is a string")
    text = str(value) if isinstance(value, str) or abs(value) < 2**64 else ""
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return number if 0 < number < 2**63 else None


def parse_text_id(value: Any) -> str | None:
    """The text of a natural key; None if no database holds such a text."""
    value = _whole(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected an id, which is a string")
    try:
        return check_text(str(value)) or None
    except ValueError:
        return None


def parse_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ValueError("expected an integer")
    if not -(2**31) <= value < 2**31:
        raise ValueError("expected an integer of 32 bits")
    return int(value)


def parse_int_text(value: str) -> int:
    if not _INTEGER.fullmatch(value):
        raise ValueError("expected an integer")
    return parse_int(int(value))


def parse_bigint(value: Any) -> int:
    value = int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else _whole(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected an integer in a string")
    if not -(2**63) <= value < 2**63:
        raise ValueError("expected an integer of 64 bits")
    return value


def parse_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


def parse_float_text(value: str) -> float:
    if not _NUMBER.fullmatch(value):
        raise ValueError("expected a number")
    return parse_float(float(value))


def parse_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def parse_bool_text(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("expected true or false")
    return value == "true"


def parse_date(value: Any) -> str:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("expected a date such as 2026-01-31")
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("expected a date that exists") from None


def parse_datetime(value: Any) -> str:
    """A moment of RFC 3339, converted to UTC with six fraction digits, so that the text sorts by time."""
    matched = _DATETIME.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        raise ValueError("expected a moment such as 2026-01-31T12:00:00Z, with at most six fraction digits")
    day, clock, fraction, sign, hours, minutes = matched.groups()
    try:
        moment = dt.datetime.fromisoformat(f"{day}T{clock}")
        if sign:
            offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
            moment = moment - offset if sign == "+" else moment + offset
    except (ValueError, OverflowError):
        raise ValueError("expected a moment that exists, between the years 1 and 9999") from None
    return f"{moment.isoformat()}.{(fraction or '').ljust(6, '0')}Z"


def parse_plain_uuid(value: Any) -> str:
    """A UUID that is a value, not the id of a row: an ill-formed one is an error."""
    lower = value.lower() if isinstance(value, str) else ""
    if parse_uuid(lower) is None:
        raise ValueError("expected a UUID such as 0197c2a4-7d31-7cc3-98c4-dc0c0c07398f")
    return lower


def parse_time(value: Any) -> str:
    """A time of day, with six fraction digits, so that the text sorts by time."""
    matched = _TIME.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        raise ValueError("expected a time of day such as 14:30:00, with at most six fraction digits")
    minutes, seconds, fraction = matched.groups()
    return f"{minutes}:{seconds or '00'}.{(fraction or '').ljust(6, '0')}"


def parse_json_value(value: Any) -> Any:
    """Check that both databases can store the JSON value; traversed level by level, without recursion."""
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
                parse_string(key)
            return part.values()
        case _:
            raise ValueError("expected JSON")
    return ()


def parse_json_text(value: str) -> Any:
    try:
        return parse_json_value(msgspec.json.decode(value))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise ValueError("expected JSON") from None


def parse_decimal(precision: int, scale: int, zero: Decimal, value: Any) -> Decimal:
    if not isinstance(value, str):
        value = _whole(value)
        value = str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18 else ""
    matched = _DECIMAL.fullmatch(value)
    if matched is None:
        raise ValueError(f"expected a decimal number in a string, such as {zero:f}")
    sign, whole, fraction = matched.groups("")
    if len(fraction) > scale:
        raise ValueError(f"expected at most {scale} digits after the point")
    if whole != "0" and len(whole) > precision - scale:
        raise ValueError(f"expected at most {precision - scale} digits before the point")
    return Decimal(f"{sign}{whole}.{fraction.ljust(scale, '0')}") or zero
