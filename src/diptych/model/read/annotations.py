"""Parses one annotation of a resource class, and checks its markers.

    status: Annotated[Status, States(…)] | None = None
            └ the type        └ markers    └ optional └ default

A check calls `wrong(cause, fix)` for every mistake, and does not stop at the first.
"""

from __future__ import annotations

import enum
import math
import re
import types
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct

from diptych.model.declare import markers as mark
from diptych.model.declare.deprecated import DeprecatedMark, deprecated
from diptych.model.declare.roles import Role
from diptych.model.deprecation import Deprecation
from diptych.model.naming import column_fault
from diptych.model.read.deprecations import deprecation_fault, deprecation_of
from diptych.model.read.public_ages import field_fault, seconds_of

Wrong = Callable[[str, str], None]
_NAMES: dict[type, str] = {DeprecatedMark: "deprecated"}
"""Names of markers in a model file, where they are not those of their classes."""


class Annotation(Struct, frozen=True):
    """A parsed annotation: its type, whether it is optional, its markers and its default."""

    attr: str
    type: Any
    optional: bool
    markers: tuple[Any, ...]
    default: Any
    description: str = ""

    def marker(self, kind: type[Any]) -> Any:
        for marker in self.markers:
            if isinstance(marker, kind):
                return marker
        return None

    def roles(self, kind: type[mark.ReadBy] | type[mark.WriteBy]) -> tuple[str, ...] | None:
        """The names of the roles in a ReadBy or WriteBy; None if there is none."""
        marker = self.marker(kind)
        return None if marker is None else tuple(role.name for role in marker.roles if isinstance(role, Role))

    @property
    def named_roles(self) -> list[Role]:
        """The roles that its markers name."""
        named: list[Any] = []
        for marker in self.markers:
            if isinstance(marker, mark.ReadBy | mark.WriteBy):
                named.extend(marker.roles)
            elif isinstance(marker, mark.States):
                named.extend(getattr(move, "to", None) for move in marker.moves)
        return [role for role in named if isinstance(role, Role)]

    @property
    def weight(self) -> int:
        """The amount of its Weight; 0 if it has none."""
        marker = self.marker(mark.Weight)
        return marker.amount if marker is not None and weight_fault(marker.amount) is None else 0

    @property
    def public(self) -> int | None:
        """The max-age of its Public marker in seconds; None if it has none."""
        marker = self.marker(mark.Public)
        return None if marker is None else seconds_of(marker.age)

    @property
    def deprecated(self) -> Deprecation | None:
        """Its deprecation; None if it has none."""
        return deprecation_of(self.marker(DeprecatedMark))

    @property
    def renamed_from(self) -> str:
        """The attribute that it was before; "" if it says nothing of that."""
        marker = self.marker(mark.RenamedFrom)
        return marker.name if marker is not None and isinstance(marker.name, str) else ""

    @property
    def is_enum(self) -> bool:
        return isinstance(self.type, type) and issubclass(self.type, enum.Enum)


def unwrap(attr: str, hint: Any, default: Any, description: str = "") -> Annotation:
    """Unwrap `Annotated` and `| None`, in whichever order they are nested."""
    markers: list[Any] = []
    optional = False
    while True:
        if get_origin(hint) is Annotated:
            hint, *inner = get_args(hint)
            markers.extend(inner)
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            rest = [part for part in get_args(hint) if part is not type(None)]
            hint, optional = (rest[0] if len(rest) == 1 else Union[tuple(rest)]), True  # noqa: UP007  # of a list of types
        else:
            return Annotation(attr, hint, optional, tuple(markers), default, description)


def check_markers(line: Annotation, wrong: Wrong) -> None:
    """Report faults of the markers themselves, whatever the type of the field."""
    for kind, count in Counter(map(type, line.markers)).items():
        if kind in mark.MARKERS and count > 1:
            wrong(f"{_NAMES.get(kind, kind.__name__)} is given {count} times", "Leave one")
    for marker in line.markers:
        if marker in mark.MARKERS or marker is deprecated:
            wrong(f"{marker.__name__} is not called", f"Write {marker.__name__}(…)")
        elif isinstance(marker, Role):
            wrong(f"the role {marker.name} is given without a marker", "Write ReadBy(…) or WriteBy(…)")
        elif type(marker) in mark.MARKERS:
            _check_marker(marker, wrong)
        elif type(marker).__module__.startswith("diptych."):
            wrong(f"{type(marker).__name__} is no marker", "Remove it from Annotated[…]")


def _check_marker(marker: Any, wrong: Wrong) -> None:
    name = type(marker).__name__
    match marker:
        case mark.MinLen(length) | mark.MaxLen(length) if type(length) is not int or length < 0:
            wrong(f"{name}({length!r}) is no length", f"Write {name}(80)")
        case mark.Weight(amount) if fault := weight_fault(amount):
            wrong(f"Weight({amount!r}) {fault}", "Write Weight(5)")
        case mark.Min(value) | mark.Max(value) if not _is_number(value):
            wrong(f"{name}({value!r}) is no number", f"Write {name}(0)")
        case mark.Pattern(regex):
            _check_pattern(regex, wrong)
        case mark.OnDelete(do) if do not in ("restrict", "cascade", "set null"):
            wrong(f"OnDelete({do!r}) is unknown", 'Write OnDelete("restrict"), "cascade" or "set null"')
        case mark.Column(column, kind) if named := column_fault(column, kind):
            wrong(*named)
        case mark.Columns(names=names) if len(names) < 2 or any(map(column_fault, names)):
            wrong(f"Columns{names!r} names no columns", 'Write Columns("list_id", "place")')
        case DeprecatedMark() if wrongly := deprecation_fault(marker):
            wrong(*wrongly)
        case mark.RenamedFrom(old) if renamed := _rename_fault(old):
            wrong(*renamed)
        case mark.Public(age) if aged := field_fault(age):
            wrong(f"Public({age!r}) {aged[0]}", f"Write Public(5){aged[1]}")
        case mark.ReadBy(roles=roles) | mark.WriteBy(roles=roles):
            _check_roles(name, roles, wrong)


def _check_roles(name: str, roles: tuple[Any, ...], wrong: Wrong) -> None:
    for role in roles:
        if not isinstance(role, Role):
            wrong(f"{name}({role!r}) does not name a Role", f"Write {name}(admin), admin = Role(…)")


def _rename_fault(old: Any) -> tuple[str, str] | None:
    if isinstance(old, str) and old.isidentifier():
        return None
    return f"RenamedFrom({old!r}) is no name of a field", 'Write RenamedFrom("title")'


def weight_fault(amount: Any) -> str | None:
    """The fault of a weight; None if it is valid."""
    if type(amount) is not int:  # True is an int to Python
        return "is no whole number"
    return "is less than nothing" if amount < 0 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)


def _check_pattern(regex: Any, wrong: Wrong) -> None:
    try:
        re.compile(regex if isinstance(regex, str) else "(")
    except re.error as error:
        reason = error if isinstance(regex, str) else "expected text"
        wrong(f"the pattern {regex!r} is no regular expression: {reason}", "Mend the pattern")


def check_use(line: Annotation, allowed: tuple[type[Any], ...], what: str, wrong: Wrong) -> None:
    """Report markers that have no effect here: a permission that is silently ignored would be a security hole."""
    for marker in line.markers:
        if type(marker) in mark.MARKERS and not isinstance(marker, allowed):
            name = _NAMES.get(type(marker), type(marker).__name__)
            wrong(f"{name} means nothing on {what}", "Remove it")


def check_bounds(line: Annotation, wrong: Wrong) -> None:
    """Report bounds that no value can satisfy."""
    for low, high, name in ((mark.MinLen, mark.MaxLen, "length"), (mark.Min, mark.Max, "value")):
        if len(line.markers) < 2:
            return
        least: Any = getattr(line.marker(low), name, None)
        most: Any = getattr(line.marker(high), name, None)
        if _is_number(least) and _is_number(most) and least > most:
            wrong(f"no value is within {low.__name__} and {high.__name__}", "Mend the bounds")
