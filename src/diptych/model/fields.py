"""From one annotated line of a resource class to its FieldDef or RelationDef.

    status: Annotated[Status, MaxLen(9)] | None = None
            └ the type ┘      └ markers ┘   └ optional └ default

`Line` is that line taken apart; `read_field` and `read_relation` understand it, and call `wrong(cause, fix)`
for every mistake instead of stopping at the first.
"""

from __future__ import annotations

import enum
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Union, get_args, get_origin

from diptych.model import markers as mark
from diptych.model.defs import FieldDef, RelationDef
from diptych.model.naming import camel
from diptych.model.resource import Auto, Inverse, Resource, Through
from diptych.model.roles import Role
from diptych.model.scalars import BIGINT, ID, INTEGER_ID, JSON, PLAIN, STRING, Scalar, decimal

Wrong = Callable[[str, str], None]
MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Line:
    """One annotated line of a class, taken apart."""

    attr: str
    type: Any
    optional: bool
    markers: tuple[Any, ...]
    default: Any
    description: str

    def marker(self, kind: type[Any]) -> Any:
        return next((marker for marker in self.markers if isinstance(marker, kind)), None)


def take_apart(attr: str, hint: Any, default: Any, description: str = "") -> Line:
    """Unwrap `Annotated` and `| None`, in whichever order they are nested."""
    found: list[Any] = []
    optional = False
    while True:
        if get_origin(hint) is Annotated:
            hint, *inner = get_args(hint)
            found.extend(inner)
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            rest = [part for part in get_args(hint) if part is not type(None)]
            hint, optional = (rest[0] if len(rest) == 1 else Union[tuple(rest)]), True  # noqa: UP007
        else:
            return Line(attr, hint, optional, tuple(found), default, description)


def scalar_of(line: Line, enums: Mapping[type[enum.Enum], Scalar], wrong: Wrong) -> Scalar | None:
    """The scalar that the type of a line means."""
    if line.marker(mark.AnyJson):
        return JSON
    if line.marker(mark.Key):
        return ID
    if line.type is int and line.marker(mark.Big):
        return BIGINT
    if line.type is Decimal:
        return _decimal(line, wrong)
    if isinstance(line.type, type) and issubclass(line.type, enum.Enum):
        return enums[line.type]
    scalar = PLAIN.get(line.type) if isinstance(line.type, type) else None
    if scalar is None:
        shown = getattr(line.type, "__name__", str(line.type))
        wrong(f"the type {shown} has no form on the wire", "Use str, int, BigInt, bool, float, Decimal, date, "
              "datetime, an Enum, Json or a Resource")  # fmt: skip
    return scalar


def _decimal(line: Line, wrong: Wrong) -> Scalar | None:
    digits = line.marker(mark.Digits)
    if digits is None:
        wrong("a Decimal without its digits", "Write Annotated[Decimal, Digits(12, 2)]")
        return None
    if not (isinstance(digits.precision, int) and 0 <= digits.scale <= digits.precision <= 18 and digits.precision):
        wrong(f"Digits({digits.precision}, {digits.scale}) cannot be kept exactly",
              "Use a precision of 1 to 18, and a scale not above it")  # fmt: skip
        return None
    return decimal(digits.precision, digits.scale)


def read_field(line: Line, scalar: Scalar, restricted: frozenset[str], wrong: Wrong) -> FieldDef:
    """A plain field. `restricted` names the attributes that an `@allow(field=…)` is about."""
    automatic = isinstance(line.default, Auto)
    _check_markers(line, scalar, wrong)
    default = None if automatic else _default(line, scalar, wrong)
    read_by = _roles(line, mark.ReadBy, wrong)
    states = line.marker(mark.States)
    if states is not None:
        _check_states(line, wrong)
    return FieldDef(
        name=camel(line.attr), attr=line.attr, column=line.attr, scalar=scalar, nullable=line.optional,
        hideable=read_by is not None or line.attr in restricted, default=default,
        required=not automatic and line.default is MISSING and not line.optional,
        unique=line.marker(mark.Unique) is not None,
        constraints=tuple(m for m in line.markers if isinstance(m, _VALUE_MARKERS)),
        read_roles=read_by, write_roles=_roles(line, mark.WriteBy, wrong),
        moves=states.moves if states else (), description=line.description,
    )  # fmt: skip


_VALUE_MARKERS = (mark.MinLen, mark.MaxLen, mark.Pattern, mark.Min, mark.Max)


def read_relation(line: Line, target: str, restricted: frozenset[str], wrong: Wrong) -> tuple[FieldDef, RelationDef]:
    """A to-one relation: the field of its id, and the way itself. (The key's type is set when all are known.)"""
    if line.default not in (MISSING, None):
        wrong("a relation cannot have a default", f"Remove '= {line.default!r}'")
    for marker in line.markers:
        if isinstance(marker, _VALUE_MARKERS):
            wrong(f"{type(marker).__name__} on a relation means nothing", "Remove it")
    on_delete = line.marker(mark.OnDelete) or mark.OnDelete("restrict")
    if on_delete.do == "set null" and not line.optional:
        wrong('OnDelete("set null") on a relation that must not be null', f"Declare it as {target} | None")
    read_by = _roles(line, mark.ReadBy, wrong)
    hideable = read_by is not None or line.attr in restricted
    name = camel(line.attr)
    field = FieldDef(
        name=name + "Id", attr=line.attr + "_id", column=line.attr + "_id", scalar=ID, nullable=line.optional,
        hideable=hideable, required=not line.optional, unique=line.marker(mark.Unique) is not None,
        read_roles=read_by, write_roles=_roles(line, mark.WriteBy, wrong), relation=name,
        description=f"The id of `{name}`.",
    )  # fmt: skip
    return field, RelationDef(
        name=name, attr=line.attr, kind="one", target=target, column=field.column, nullable=line.optional,
        hideable=hideable, on_delete=on_delete.do, description=line.description,
    )  # fmt: skip


def read_list(line: Line, resources: Mapping[str, type[Resource]], wrong: Wrong) -> RelationDef | None:
    """A to-many relation; `inverse` and `through` are resolved when all resources are known."""
    (item,) = get_args(line.type) or (None,)
    target = item.__name__ if isinstance(item, type) and item in resources.values() else ""
    if not target:
        wrong("a list can only hold resources of this model", "Write list[Post] = inverse(…), or Json for plain lists")
        return None
    if not isinstance(line.default, Inverse | Through):
        wrong("a list of resources does not say how they are related",
              'Write = inverse("author"), or = through("PostTag", "post", "tag")')  # fmt: skip
        return None
    if line.markers or line.optional:
        wrong("markers and None mean nothing on a to-many relation", "Remove them")
    way = line.default
    empty = RelationDef(camel(line.attr), line.attr, "many", target, column="", description=line.description)
    if isinstance(way, Inverse):
        return replace(empty, inverse=way.field)
    return replace(empty, kind="through", link=way.link, link_mine=way.mine, link_theirs=way.theirs)


def _default(line: Line, scalar: Scalar, wrong: Wrong) -> Any:
    if line.default is MISSING or line.default is None:
        if line.default is None and not line.optional:
            wrong("the default is None and the type is not optional", "Write `| None` after the type")
        return None
    value = line.default.value if isinstance(line.default, enum.Enum) else line.default
    try:
        return scalar.parse(str(value) if isinstance(value, Decimal) else value)
    except ValueError as error:
        wrong(f"the default {line.default!r} does not fit the type: {error}", "Give a default of the declared type")
        return None


def _roles(line: Line, kind: type[Any], wrong: Wrong) -> tuple[str, ...] | None:
    marker = line.marker(kind)
    if marker is None:
        return None
    for role in marker.roles:
        if not isinstance(role, Role):
            wrong(f"{kind.__name__}({role!r}) does not name a Role", f"Write {kind.__name__}(admin), admin = Role(…)")
    return tuple(role.name for role in marker.roles if isinstance(role, Role))


def _check_markers(line: Line, scalar: Scalar, wrong: Wrong) -> None:
    for marker in line.markers:
        name = type(marker).__name__
        if isinstance(marker, type) and marker.__module__ == mark.__name__:
            wrong(f"{marker.__name__} is not called", f"Write {marker.__name__}(…)")
        elif not isinstance(marker, mark.MARKERS):
            continue
        elif isinstance(marker, mark.MinLen | mark.MaxLen | mark.Pattern) and scalar is not STRING:
            wrong(f"{name} is for text, and this is {scalar.name}", "Remove it")
        elif isinstance(marker, mark.Min | mark.Max) and scalar.python not in (int, float, Decimal):
            wrong(f"{name} is for numbers, and this is {scalar.name}", "Remove it")
        elif isinstance(marker, mark.Unique) and scalar is JSON:
            wrong("Unique on JSON cannot be kept", "Remove it")
        elif isinstance(marker, mark.OnDelete):
            wrong("OnDelete is for relations", "Remove it")
        elif isinstance(marker, mark.Pattern):
            _check_pattern(marker, wrong)


def _check_pattern(marker: mark.Pattern, wrong: Wrong) -> None:
    try:
        re.compile(marker.regex)
    except re.error as error:
        wrong(f"the pattern {marker.regex!r} is no regular expression: {error}", "Mend the pattern")


def _check_states(line: Line, wrong: Wrong) -> None:
    if not (isinstance(line.type, type) and issubclass(line.type, enum.Enum)):
        wrong("States is for an enum field", "Declare the field as an Enum")
        return
    if not isinstance(line.default, line.type):
        wrong("a field with States has no initial state", f"Give a default: = {line.type.__name__}.…")
    for move in line.marker(mark.States).moves:
        for state in (move.source, move.target):
            if not isinstance(state, line.type):
                wrong(f"{state!r} is no state of {line.type.__name__}", "Use members of the field's own Enum")


def key_scalar(ids: str) -> Scalar:
    """The type of the ids of a resource."""
    return INTEGER_ID if ids == "integer" else ID
