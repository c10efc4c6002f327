"""From one line of a resource class to its FieldDef: the type, the default, the states."""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from diptych.model import markers as mark
from diptych.model.age import seconds_of
from diptych.model.computed import Computed
from diptych.model.constraints import INDEXED, NUMBER, TEXT, VALUE, fault_of
from diptych.model.declared import MISSING, Auto, Now
from diptych.model.defs import FieldDef
from diptych.model.lines import Line, Wrong, check_bounds, check_markers, check_use
from diptych.model.naming import camel
from diptych.model.roles import Role
from diptych.model.scalars import (
    BIGINT,
    DATE,
    DATETIME,
    FLOAT,
    ID,
    INT,
    INTEGER_ID,
    JSON,
    PLAIN,
    STRING,
    Scalar,
    as_json,
    decimal,
)

PYTHON_WEIGHT = 5
"""What a field that Python computes adds to the price of an object, if the model does not say: about so many objects
are read in the time in which one row goes through Python."""
VALUES = "Use str, int, BigInt, bool, float, Decimal, date, datetime, an Enum or Json"
TYPES = VALUES.replace(" or Json", ", Json or a Resource")


def key_scalar(ids: str) -> Scalar:
    """The type of the ids of a resource."""
    return INTEGER_ID if ids == "integer" else ID


def scalar_of(
    line: Line, enums: Mapping[type[enum.Enum], Scalar], wrong: Wrong, types: str = TYPES
) -> Scalar | None:
    """The scalar that the type of a line means."""
    if line.marker(mark.AnyJson):
        return JSON
    if line.marker(mark.Key):
        return ID
    if line.type is int and line.marker(mark.Big):
        return BIGINT
    if line.type is Decimal:
        return _decimal(line, wrong)
    if line.is_enum:
        return enums[line.type]
    scalar = PLAIN.get(line.type) if isinstance(line.type, type) else None
    if scalar is None:
        shown = getattr(line.type, "__name__", str(line.type))
        wrong(f"the type {shown} has no form on the wire", types)
    return scalar


def _decimal(line: Line, wrong: Wrong) -> Scalar | None:
    digits = line.marker(mark.Digits)
    if digits is None:
        wrong("a Decimal without its digits", "Write Annotated[Decimal, Digits(12, 2)]")
        return None
    precision, scale = digits.precision, digits.scale
    if not (type(precision) is type(scale) is int and 0 <= scale <= precision <= 18 and precision):
        wrong(f"Digits({precision!r}, {scale!r}) cannot be kept exactly",
              "Use a precision of 1 to 18, and a scale not above it")  # fmt: skip
        return None
    return decimal(precision, scale)


def read_field(line: Line, scalar: Scalar, restricted: frozenset[str], wrong: Wrong) -> FieldDef:
    """A plain field. `restricted` names the attributes that an `@allow("read", field=…)` is about."""
    automatic, generated = isinstance(line.default, Auto), _generated(line, scalar, wrong)
    check_markers(line, wrong)
    check_use(line, _markers_for(scalar), scalar.name, wrong)
    check_bounds(line, wrong)
    if line.marker(mark.Unique) and line.marker(mark.Index):
        wrong("a unique value has an index already", "Remove Index()")
    states = line.marker(mark.States)
    if states is not None:
        _check_states(line, wrong)
    read_by = line.roles(mark.ReadBy)
    return FieldDef(
        name=camel(line.attr), attr=line.attr, column=line.attr, scalar=scalar, nullable=line.optional,
        hideable=read_by is not None or line.attr in restricted,
        default=None if automatic or generated else default_of(line, scalar, wrong), generated=generated,
        required=not automatic and line.default is MISSING and not line.optional,
        unique=line.marker(mark.Unique) is not None, indexed=line.marker(mark.Index) is not None,
        constraints=(*constraints_of(line), *_index_bound(line, scalar)),
        read_roles=read_by, write_roles=line.roles(mark.WriteBy),
        moves=states.moves if states else (), weight=line.weight, public=line.public, description=line.description,
    )  # fmt: skip


def _generated(line: Line, scalar: Scalar, wrong: Wrong) -> Literal["", "now", "today"]:
    """What fills it, if that is another value for each row."""
    if not isinstance(line.default, Now):
        return ""
    fits = {"now": DATETIME, "today": DATE}[line.default.kind]
    if scalar is not fits:
        wrong(f"{line.default.kind}() is no {scalar.name}", "Declare it as a datetime for now(), as a date for today()")
    if line.marker(mark.Unique):
        wrong(f"{line.default.kind}() gives rows of one moment the same value, and it is unique", "Remove Unique()")
    return line.default.kind


def constraints_of(line: Line) -> tuple[object, ...]:
    """The markers that a value is held against."""
    return tuple(marker for marker in line.markers if isinstance(marker, VALUE))


def _index_bound(line: Line, scalar: Scalar) -> tuple[object, ...]:
    """The bound of text that has an index, where its own could be wider: a character takes four bytes at most."""
    has_index = line.marker(mark.Unique) or line.marker(mark.Index)
    longest = line.marker(mark.MaxLen)
    if scalar is not STRING or not has_index or (longest and longest.length * 4 <= INDEXED.length):
        return ()
    return (INDEXED,)


def _markers_for(scalar: Scalar) -> tuple[type[Any], ...]:
    """The markers that mean something on a field of this type."""
    common = (mark.ReadBy, mark.WriteBy, mark.States, mark.Weight, mark.Public)
    if scalar is JSON:
        return (*common, *value_markers(scalar))
    return (*common, mark.Unique, mark.Index, *value_markers(scalar))


def value_markers(scalar: Scalar) -> tuple[type[Any], ...]:
    """The markers that say what a value of this type may be."""
    return _SPECIAL.get(scalar, _DECIMAL if scalar.python is Decimal else ())


_DECIMAL = (*NUMBER, mark.Digits)
_SPECIAL: Mapping[Scalar, tuple[type[Any], ...]] = {
    STRING: TEXT, INT: NUMBER, FLOAT: NUMBER, BIGINT: (*NUMBER, mark.Big), ID: (mark.Key,),
    INTEGER_ID: (mark.Key,), JSON: (mark.AnyJson,),
}  # fmt: skip


def read_computed(
    line: Line, scalar: Scalar, each: Computed[Any], restricted: frozenset[str], wrong: Wrong
) -> FieldDef:
    """A computed field, before it is traced, or before it is known what it needs."""
    check_markers(line, wrong)
    kinds = (mark.ReadBy, mark.Digits, mark.Big, mark.AnyJson, mark.Key)
    if line.marker(mark.Weight):
        wrong("Weight stands in the type of a computed field", "Write @computed(weight=5)")
    if line.marker(mark.Public):
        wrong("Public stands in the type of a computed field", "Write @computed(public=5)")
    check_use(line, (*kinds, mark.Weight, mark.Public), "a computed field", wrong)
    read_by = line.roles(mark.ReadBy)
    return FieldDef(
        name=camel(line.attr), attr=line.attr, column="", scalar=scalar, nullable=line.optional,
        hideable=read_by is not None or line.attr in restricted, read_roles=read_by,
        python=None if each.needs is None else each.function, batch=each.batch, description=line.description,
        weight=_weight(each), public=seconds_of(each.public),
    )  # fmt: skip


def _weight(each: Computed[Any]) -> int:
    """What it adds to a price. SQL has a row at hand anyway; Python is called for it."""
    if isinstance(each.weight, int):
        return each.weight
    return 0 if each.needs is None else PYTHON_WEIGHT


def each_row(default: Any) -> str:
    """What to write for a default that is to be another value for each row."""
    if isinstance(default, dt.date):
        return "Write = now()" if isinstance(default, dt.datetime) else "Write = today()"
    return "A default is one value, or now() or today(); let whoever writes give any other"


def is_the_clock(default: Any) -> bool:
    """Is it a moment just past, to the microsecond? Then it was taken from the clock, wherever that stands."""
    if not isinstance(default, dt.datetime) or default.tzinfo is None or not default.microsecond:
        return False
    return dt.timedelta(0) <= dt.datetime.now(dt.UTC) - default < dt.timedelta(minutes=1)


def default_of(line: Line, scalar: Scalar, wrong: Wrong) -> Any:
    """The canonical value of a default; None if there is none."""
    if line.default is MISSING:
        return None
    if line.default is None:
        if not line.optional:
            wrong("the default is None and the type is not optional", "Write `| None` after the type")
        return None
    if isinstance(line.default, Now) or callable(line.default):
        told = f"{line.default.kind}()" if isinstance(line.default, Now) else "a function"
        wrong(f"the default is {told}, and not a value", each_row(None))
        return None
    try:
        value = scalar.parse(as_json(line.default))
        told = "expected a member of its own Enum" if _foreign(line) else fault_of(value, constraints_of(line))
    except (ValueError, TypeError, re.error) as error:
        value, told = None, str(error)
    if told or value is None:
        wrong(f"the default {line.default!r} does not fit: {told or 'expected an id'}", "Give one that fits")
    return value


def _foreign(line: Line) -> bool:
    return line.is_enum and isinstance(line.default, enum.Enum) and not isinstance(line.default, line.type)


def _check_states(line: Line, wrong: Wrong) -> None:
    if not line.is_enum:
        return wrong("States is for an enum field", "Declare the field as an Enum")
    if not isinstance(line.default, line.type):
        wrong("a field with States has no initial state", f"Give a default: = {line.type.__name__}.…")
    if line.optional:
        wrong("a state is never null", "Remove `| None`")
    for move in line.marker(mark.States).moves:
        if not isinstance(move, mark.Move):
            wrong(f"{move!r} is no Move", "Write Move(Status.a, Status.b, to=admin)")
            continue
        for state in (move.source, move.target):
            if not isinstance(state, line.type):
                wrong(f"{state!r} is no state of {line.type.__name__}", "Use members of the field's own Enum")
        if not isinstance(move.to, Role | None):
            wrong(f"to={move.to!r} is no Role", "Write to=admin, with admin = Role(…)")
    return None
