"""Converts values of the model's own code (defaults, constants, arguments, rows) between JSON and Python."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from diptych.model.declare.value import Value
from diptych.model.duration import duration_microseconds, read_duration, write_duration
from diptych.model.naming import camel
from diptych.model.scalars import BIGINT, DATE, DATETIME, DURATION, FLOAT, INTEGER_ID, TIME, UUID, Member, Scalar


def as_json(value: Any) -> Any:
    """Convert a value of the model's own code (a default, a constant of a rule, a row, what an action returns) to what
    `parse` accepts."""
    match value:
        case enum.Enum():
            return value.value
        case Decimal():
            return f"{value:f}"
        case dt.datetime(tzinfo=None):
            raise ValueError("expected a moment with a zone, such as datetime(2026, 1, 31, tzinfo=UTC)")
        case dt.datetime():
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"
        case dt.date():
            return value.isoformat()
        case dt.time(tzinfo=None):
            return value.isoformat()
        case dt.time():
            raise ValueError("expected a time of day without a zone, such as time(14, 30)")
        case dt.timedelta():
            return write_duration(duration_microseconds(value))
        case uuid.UUID():
            return str(value)
        case list():
            return [as_json(element) for element in value]
        case Value():
            return {camel(attr): as_json(part) for attr, part in vars(value).items()}
    return value


def from_json(scalar: Scalar, value: Any) -> Any:
    """Convert JSON from the database, or a canonical value, to a Python value for the model's own code.

    A moment is a datetime in UTC, a decimal a Decimal, an enum its member, an id a string.
    """
    if scalar.items is not None:
        return None if value is None else [from_json(scalar.items, element) for element in value]
    if scalar.members is not None:
        return None if value is None else _value(scalar, scalar.members, value)
    convert = _PYTHON.get(scalar)
    if convert is None and (scalar.choices or scalar.python is Decimal):
        convert = scalar.python
    return value if value is None or convert is None else convert(value)


def _value(scalar: Scalar, members: Mapping[str, Member], value: Any) -> Any:
    """A value object, from its members on the wire or in their canonical form."""
    return scalar.python(**{member.attr: from_json(member.scalar, value[name]) for name, member in members.items()})


def to_json(scalar: Scalar, value: Any) -> Any:
    """Convert a Python value of the model's own code to JSON. Raises ValueError "expected …" if it is not valid."""
    if value is None:
        return None
    canonical = scalar.parse(as_json(value))
    if scalar.items is not None:
        return [to_json(scalar.items, element) for element in canonical]
    if scalar.members is not None:
        return {name: to_json(scalar.members[name].scalar, part) for name, part in canonical.items()}
    if isinstance(canonical, Decimal):
        return f"{canonical:f}"
    return str(canonical) if canonical is not None and scalar in (BIGINT, INTEGER_ID) else canonical


_PYTHON: Mapping[Scalar, Callable[[Any], Any]] = {
    BIGINT: int,
    FLOAT: float,
    INTEGER_ID: str,
    DATE: dt.date.fromisoformat,
    DATETIME: dt.datetime.fromisoformat,
    TIME: dt.time.fromisoformat,
    DURATION: lambda text: dt.timedelta(microseconds=read_duration(text)),
    UUID: uuid.UUID,
}
"""Conversions of JSON values to Python, where they differ."""
