"""A class of viewers of the model's own: its fields are what rules may ask of a viewer besides its id and roles.

    class Member(Viewer):
        tenant: Id | None = None                     viewer.tenant in a rule
        teams: tuple[Id, ...] = ()                   one_of(self.team.id, viewer.teams)

Every field has a default, which is what an anonymous viewer has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_origin

from diptych.model.declared import MISSING, annotated, evaluate
from diptych.model.expr import ViewerValue
from diptych.model.lines import Line, Wrong, take_apart
from diptych.model.roles import Viewer
from diptych.model.scalars import JSON, Scalar, as_json

V = TypeVar("V", bound=Viewer)
ScalarOf = Callable[[Line, Wrong], Scalar | None]
_OWN = frozenset(each.name for each in fields(Viewer))
_MANY = (tuple, frozenset)
_TYPES = "Use str, int, BigInt, bool, float, Decimal, date, datetime, Id, an Enum, or a tuple of one of them"


def read_viewer(
    cls: type[Viewer], scalar_of: ScalarOf, wrong: Callable[[str, str, str], None]
) -> dict[str, ViewerValue]:
    """The fields that a class of viewers adds, by their names."""
    found: dict[str, ViewerValue] = {}
    for each in annotated(cls):
        if each.base is Viewer or each.is_class_variable:
            continue

        def told(cause: str, fix: str, attr: str = each.attr) -> None:
            wrong(attr, cause, fix)

        if each.attr in _OWN or hasattr(Viewer, each.attr):
            told("every viewer has this already", "Rename it")
        elif each.default is MISSING:
            told("an anonymous viewer has no value for it", f"Give it a default: {each.attr}: … = None")
        else:
            value = _value(each.attr, evaluate(each.hint, each.base, {}), scalar_of, told)
            found.update({each.attr: value} if value else {})
    return found


def _value(attr: str, hint: Any, scalar_of: ScalarOf, wrong: Wrong) -> ViewerValue | None:
    many = get_origin(hint) in _MANY
    if many:
        hint, *rest = get_args(hint)
        if rest not in ([], [...]):
            wrong("only a tuple of one type can be compared", f"Write {attr}: tuple[str, ...] = ()")
            return None
    scalar = scalar_of(take_apart(attr, hint, None), wrong)
    if scalar is JSON:
        wrong("JSON cannot be compared", _TYPES)
    return None if scalar is None or scalar is JSON else ViewerValue(attr, scalar, many)


def settled(viewer: V, values: Mapping[str, ViewerValue]) -> V:
    """The viewer with its own values in the form in which rules compare them; ValueError if one is of another type.

    An ill-formed id names nothing.
    """
    known = {name: _parsed(getattr(viewer, name), each) for name, each in values.items()}
    found = replace(viewer)
    object.__setattr__(found, "_known", MappingProxyType(known))
    return found


def _parsed(value: Any, each: ViewerValue) -> Any:
    if each.many:  # in one order in every process, which a set has not: cursors are bound to it
        return sorted(parsed for one in value if (parsed := _parsed(one, replace(each, many=False))) is not None)
    return None if value is None else each.scalar.parse(as_json(value))
