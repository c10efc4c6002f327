"""Reads the model's own viewer class: the fields that rules can use besides the id and roles.

    class Member(Viewer):
        tenant: Id | None = None                     viewer.tenant in a rule
        teams: tuple[Id, ...] = ()                   one_of(self.team.id, viewer.teams)

Every field has a default, which is its value for anonymous viewers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_origin

from msgspec.structs import replace

from diptych.model.declare.declared import MISSING, annotated, evaluate
from diptych.model.declare.roles import Viewer
from diptych.model.read.annotations import Annotation, Wrong, unwrap
from diptych.model.rules.expr import ViewerValue
from diptych.model.scalar_values import as_json
from diptych.model.scalars import Scalar

V = TypeVar("V", bound=Viewer)
ScalarOf = Callable[[Annotation, Wrong], Scalar | None]
_OWN = frozenset(field.name for field in dataclasses.fields(Viewer))
_MANY = (tuple, frozenset)
_TYPES = (
    "Use str, int, BigInt, bool, float, Decimal, date, datetime, time, timedelta, UUID, Id, an Enum, "
    "or a tuple of one of them"
)


def read_viewer(
    cls: type[Viewer], scalar_of: ScalarOf, wrong: Callable[[str, str, str], None]
) -> dict[str, ViewerValue]:
    """The fields that a viewer class adds, by name."""
    values: dict[str, ViewerValue] = {}
    for line in annotated(cls):
        if line.base is Viewer or line.is_class_variable:
            continue

        def report(cause: str, fix: str, attr: str = line.attr) -> None:
            wrong(attr, cause, fix)

        if line.attr in _OWN or hasattr(Viewer, line.attr):
            report("every viewer has this already", "Rename it")
        elif line.default is MISSING:
            report("an anonymous viewer has no value for it", f"Give it a default: {line.attr}: … = None")
        else:
            value = _value(line.attr, evaluate(line.hint, line.base, {}), scalar_of, report)
            values.update({line.attr: value} if value else {})
    return values


def _value(attr: str, hint: Any, scalar_of: ScalarOf, wrong: Wrong) -> ViewerValue | None:
    many = get_origin(hint) in _MANY
    if many:
        hint, *rest = get_args(hint)
        if rest not in ([], [...]):
            wrong("only a tuple of one type can be compared", f"Write {attr}: tuple[str, ...] = ()")
            return None
    scalar = scalar_of(unwrap(attr, hint, None), wrong)
    if scalar is not None and scalar.is_json:
        wrong(f"{scalar.name} cannot be compared", _TYPES)
    return None if scalar is None or scalar.is_json else ViewerValue(attr, scalar, many)


def canonical_viewer(viewer: V, values: Mapping[str, ViewerValue]) -> V:
    """The viewer with the canonical values of its own fields. Raises ValueError if one does not fit its type.

    An ill-formed id becomes None.
    """
    known = {name: _parsed(getattr(viewer, name), value) for name, value in values.items()}
    copy = dataclasses.replace(viewer)
    object.__setattr__(copy, "_known", MappingProxyType(known))
    return copy


def _parsed(value: Any, declared: ViewerValue) -> Any:
    if declared.many:  # sorted, since cursors are bound to it in every process, and the order of a set differs
        return sorted(parsed for one in value if (parsed := _parsed(one, replace(declared, many=False))) is not None)
    return None if value is None else declared.scalar.parse(as_json(value))
