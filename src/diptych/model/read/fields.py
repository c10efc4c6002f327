"""Reads a field: a parsed annotation → FieldDef, with its type, default and state transitions."""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin

from diptych.model import scalars
from diptych.model.constraints import INDEXED, NUMBER, TEXT, VALUE, Each, MaxItems, MinItems, fault_of
from diptych.model.decimal_scalar import decimal
from diptych.model.declare import markers as mark
from diptych.model.declare.computed import Computed
from diptych.model.declare.declared import MISSING, Auto, FromViewer, Now
from diptych.model.declare.deprecated import DeprecatedMark
from diptych.model.declare.roles import Role
from diptych.model.defs import FieldDef
from diptych.model.list_scalar import list_of
from diptych.model.naming import camel
from diptych.model.read.annotations import Annotation, Wrong, check_bounds, check_markers, check_use, unwrap
from diptych.model.read.public_ages import seconds_of
from diptych.model.rules.expr import ViewerId, ViewerValue
from diptych.model.scalar_values import as_json

PYTHON_WEIGHT = 5
"""The default weight of a field that Python computes: the database reads about five objects in the time of one such
call."""
VALUES = (
    "Use str, int, BigInt, bool, float, Decimal, date, datetime, time, timedelta, UUID, an Enum or Json, or a list of "
    "one of them"
)
TYPES = VALUES.replace(" or Json", ", Json or a Resource")


def key_scalar(ids: str) -> scalars.Scalar:
    """The type of the ids of a resource."""
    return {"integer": scalars.INTEGER_ID, "number": scalars.INTEGER_ID, "text": scalars.TEXT_ID}.get(ids, scalars.ID)


def scalar_of(
    line: Annotation, enums: Mapping[type[enum.Enum], scalars.Scalar], wrong: Wrong, types: str = TYPES
) -> scalars.Scalar | None:
    """The scalar of an annotation; None, with a mistake reported, if its type has none."""
    if line.marker(mark.AnyJson):
        return scalars.JSON
    if (key := line.marker(mark.KeyMark)) is not None:
        return scalars.TEXT_ID if key.text else scalars.ID
    if line.type is int and line.marker(mark.Big):
        return scalars.BIGINT
    if line.type is Decimal:
        return _decimal(line, wrong)
    if line.is_enum:
        return enums[line.type]
    scalar = scalars.PLAIN.get(line.type) if isinstance(line.type, type) else None
    if scalar is None:
        shown = getattr(line.type, "__name__", str(line.type))
        wrong(f"the type {shown} has no form on the wire", types)
    return scalar


def _decimal(line: Annotation, wrong: Wrong) -> scalars.Scalar | None:
    digits = line.marker(mark.Digits)
    if digits is None:
        wrong("a Decimal without its digits", "Write Annotated[Decimal, Digits(12, 2)]")
        return None
    precision, scale = digits.precision, digits.scale
    if not (type(precision) is type(scale) is int and 0 <= scale <= precision <= 18 and precision):
        wrong(
            f"Digits({precision!r}, {scale!r}) cannot be kept exactly",
            "Use a precision of 1 to 18, and a scale not above it",
        )
        return None
    return decimal(precision, scale)


def read_field(line: Annotation, scalar: scalars.Scalar, restricted: frozenset[str], wrong: Wrong) -> FieldDef:
    """A plain field. `restricted` are the attributes with an `@allow("read", field=…)`."""
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
        name=camel(line.attr),
        attr=line.attr,
        column=column_of(line, line.attr),
        cast=mapped.type if (mapped := line.marker(mark.Column)) else "",
        scalar=scalar,
        nullable=line.optional,
        hideable=read_by is not None or line.attr in restricted,
        default=None if automatic or generated else default_of(line, scalar, wrong),
        generated=generated,
        ahead=line.default.offset if isinstance(line.default, Now) else dt.timedelta(),
        of_viewer=of_viewer(line, scalar, wrong),
        required=not automatic and line.default is MISSING and not line.optional,
        counts=_counts(line, scalar, wrong),
        unique=line.marker(mark.Unique) is not None,
        indexed=line.marker(mark.Index) is not None,
        constraints=(*constraints_of(line), *_index_bound(line, scalar)),
        read_roles=read_by,
        write_roles=line.roles(mark.WriteBy),
        moves=states.moves if states else (),
        weight=line.weight,
        public=line.public,
        example=_example(line, scalar, wrong),
        description=line.description,
        deprecated=line.deprecated,
        renamed_from=line.renamed_from,
    )


def column_of(line: Annotation, default: str) -> str:
    """The name of the column of a field: that of its Column, or the default."""
    mapped = line.marker(mark.Column)
    return mapped.name if mapped is not None and isinstance(mapped.name, str) else default


def _example(line: Annotation, scalar: scalars.Scalar, wrong: Wrong) -> Any:
    """The canonical value of an Example; None if there is none, or if it is not valid."""
    marker = line.marker(mark.Example)
    if marker is None:
        return None
    return _valid(marker.value, line, scalar, f"the example {marker.value!r}", wrong)


def of_viewer(line: Annotation, scalar: scalars.Scalar, wrong: Wrong) -> ViewerId | ViewerValue | None:
    """The value of the viewer that is the default, before `viewer_defaults.py` settles its type."""
    if not isinstance(line.default, FromViewer):
        return None
    name: Any = line.default.name
    if not isinstance(name, str):
        wrong(f"from_viewer({name!r}) names no field of the viewer", 'Write from_viewer(), or from_viewer("tenant")')
    return ViewerValue(name, scalar) if isinstance(name, str) and name else ViewerId()


def _counts(line: Annotation, scalar: scalars.Scalar, wrong: Wrong) -> str | None:
    """The `within` of a Counter; None if there is none."""
    marker = line.marker(mark.Counter)
    if marker is None:
        return None
    if not isinstance(marker.within, str):
        wrong(f"Counter({marker.within!r}) does not name a field", 'Write Counter("project") or Counter()')
        return None
    if scalar not in (scalars.INT, scalars.BIGINT) or line.optional or not isinstance(line.default, Auto):
        wrong("a counter is a whole number that the server sets", "Write Annotated[int, Counter(…)] = auto()")
    for useless in (mark.Unique, mark.Index, mark.WriteBy, mark.Min, mark.Max):
        if line.marker(useless):
            wrong(f"{useless.__name__} means nothing on a counter", "Remove it")
    return marker.within


def _generated(line: Annotation, scalar: scalars.Scalar, wrong: Wrong) -> Literal["", "now", "today", "viewer"]:
    """The kind of a generated default; empty if it is a value or absent."""
    if isinstance(line.default, FromViewer):
        return "viewer"
    if not isinstance(line.default, Now):
        return ""
    fits = {"now": scalars.DATETIME, "today": scalars.DATE}[line.default.kind]
    if scalar is not fits:
        wrong(f"{line.default.kind}() is no {scalar.name}", "Declare it as a datetime for now(), as a date for today()")
    if fits is scalars.DATE and line.default.offset % dt.timedelta(days=1):
        wrong("only whole days can be added to a date", "Write today() + timedelta(days=7)")
    if line.marker(mark.Unique):
        wrong(f"{line.default.kind}() gives rows of one moment the same value, and it is unique", "Remove Unique()")
    return line.default.kind


def constraints_of(line: Annotation) -> tuple[object, ...]:
    """The markers that constrain the value; those of a list, its number of elements and each of them."""
    own = tuple(marker for marker in line.markers if isinstance(marker, VALUE))
    if get_origin(line.type) is not list:
        return own
    of_elements = constraints_of(element_line(line))
    return (*map(_of_items, own), *((Each(of_elements),) if of_elements else ()))


def _of_items(marker: object) -> object:
    match marker:
        case mark.MinLen(length):
            return MinItems(length)
        case mark.MaxLen(length):
            return MaxItems(length)
    return marker


def element_line(line: Annotation) -> Annotation:
    """The annotation of the elements of a list."""
    (item,) = get_args(line.type)
    return unwrap(line.attr, item, MISSING)


def list_scalar(item: Annotation, scalar: scalars.Scalar, wrong: Wrong) -> scalars.Scalar | None:
    """The type of a list; None, with a mistake reported, if its elements cannot be such."""
    about = f"an element of type {scalar.name}"
    if item.optional:
        wrong("an element of a list is never null", "Remove `| None` from its type")
    if scalar.is_json:
        wrong(f"a list cannot hold {scalar.name}", "Declare the field as Json, which may be any list")
        return None
    check_markers(item, wrong)
    check_use(item, value_markers(scalar), about, wrong)
    check_bounds(item, wrong)
    return list_of(scalar)


def _index_bound(line: Annotation, scalar: scalars.Scalar) -> tuple[object, ...]:
    """The bound of indexed text, unless MaxLen is tighter: a character takes at most four bytes."""
    has_index = line.marker(mark.Unique) or line.marker(mark.Index)
    longest = line.marker(mark.MaxLen)
    if scalar is not scalars.STRING or not has_index or (longest and longest.length * 4 <= INDEXED.length):
        return ()
    return (INDEXED,)


def _markers_for(scalar: scalars.Scalar) -> tuple[type[Any], ...]:
    """The markers that are allowed on a field of this type."""
    common = (
        mark.ReadBy,
        mark.WriteBy,
        mark.States,
        mark.Weight,
        mark.Public,
        mark.Example,
        mark.Column,
        mark.RenamedFrom,
        DeprecatedMark,
    )
    if scalar.is_json:
        return (*common, *value_markers(scalar))
    counter = (mark.Counter,) if scalar in (scalars.INT, scalars.BIGINT) else ()
    return (*common, mark.Unique, mark.Index, *counter, *value_markers(scalar))


def value_markers(scalar: scalars.Scalar) -> tuple[type[Any], ...]:
    """The markers that describe values of this type."""
    if scalar.items is not None:
        return (mark.MinLen, mark.MaxLen)
    return _SPECIAL.get(scalar, _DECIMAL if scalar.python is Decimal else ())


_DECIMAL = (*NUMBER, mark.Digits)
_SPECIAL: Mapping[scalars.Scalar, tuple[type[Any], ...]] = {
    scalars.STRING: TEXT,
    scalars.INT: NUMBER,
    scalars.FLOAT: NUMBER,
    scalars.BIGINT: (*NUMBER, mark.Big),
    scalars.ID: (mark.KeyMark,),
    scalars.INTEGER_ID: (mark.KeyMark,),
    scalars.TEXT_ID: (mark.KeyMark,),
    scalars.JSON: (mark.AnyJson,),
}


def read_computed(
    line: Annotation, scalar: scalars.Scalar, computed: Computed[Any], restricted: frozenset[str], wrong: Wrong
) -> FieldDef:
    """A computed field, before it is traced and its needs are resolved."""
    check_markers(line, wrong)
    kinds = (mark.ReadBy, mark.Digits, mark.Big, mark.AnyJson, mark.KeyMark, mark.Example, DeprecatedMark)
    if line.marker(mark.Weight):
        wrong("Weight is not allowed in the type of a computed field", "Write @computed(weight=5)")
    if line.marker(mark.Public):
        wrong("Public is not allowed in the type of a computed field", "Write @computed(public=5)")
    check_use(line, (*kinds, mark.Weight, mark.Public), "a computed field", wrong)
    read_by = line.roles(mark.ReadBy)
    return FieldDef(
        name=camel(line.attr),
        attr=line.attr,
        column="",
        scalar=scalar,
        nullable=line.optional,
        hideable=read_by is not None or line.attr in restricted,
        read_roles=read_by,
        example=_example(line, scalar, wrong),
        python=None if computed.needs is None else computed.function,
        batch=computed.batch,
        description=line.description,
        deprecated=line.deprecated,
        weight=_weight(computed),
        public=seconds_of(computed.public),
    )


def _weight(computed: Computed[Any]) -> int:
    """The weight of a computed field: by default 0 in SQL, and PYTHON_WEIGHT in Python."""
    if isinstance(computed.weight, int):
        return computed.weight
    return 0 if computed.needs is None else PYTHON_WEIGHT


def each_row(default: Any) -> str:
    """The fix for a default that should be another value for each row."""
    if isinstance(default, dt.date):
        return "Write = now()" if isinstance(default, dt.datetime) else "Write = today()"
    return "A default is one value, or now() or today(); let the client send any other"


def is_the_clock(default: Any) -> bool:
    """Is it a time of the last minute with microseconds? Then it was read from the clock when the file was loaded."""
    if not isinstance(default, dt.datetime) or default.tzinfo is None or not default.microsecond:
        return False
    return dt.timedelta(0) <= dt.datetime.now(dt.UTC) - default < dt.timedelta(minutes=1)


def default_of(line: Annotation, scalar: scalars.Scalar, wrong: Wrong) -> Any:
    """The canonical value of a default; None if there is none, or if it is not valid."""
    if line.default is MISSING:
        return None
    if line.default is None:
        if not line.optional:
            wrong("the default is None and the type is not optional", "Write `| None` after the type")
        return None
    if isinstance(line.default, Now | FromViewer) or callable(line.default):
        made = "from_viewer()" if isinstance(line.default, FromViewer) else "a function"
        fault = f"{line.default.kind}()" if isinstance(line.default, Now) else made
        wrong(f"the default is {fault}, and not a value", each_row(None))
        return None
    return _valid(line.default, line, scalar, f"the default {line.default!r}", wrong)


def _valid(given: Any, line: Annotation, scalar: scalars.Scalar, what: str, wrong: Wrong) -> Any:
    """The canonical form of a value of the model file; None, with a mistake reported, if it does not fit the field."""
    foreign = line.is_enum and isinstance(given, enum.Enum) and not isinstance(given, line.type)
    try:
        value = scalar.parse(as_json(given))
        fault = "expected a member of its own Enum" if foreign else fault_of(value, constraints_of(line))
    except (ValueError, TypeError, re.error) as error:
        value, fault = None, str(error)
    if fault or value is None:
        wrong(f"{what} does not fit: {fault or 'expected an id'}", "Give one that fits")
    return value


def _check_states(line: Annotation, wrong: Wrong) -> None:
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
