"""What a resource class declares, with what it inherits: a later declaration of a name takes the place of an
earlier one, as everywhere in Python. So a rule that a subclass writes anew replaces the rule of its base.
"""

from __future__ import annotations

import datetime as dt
import enum
import inspect
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from diptych.model.resource import Allowance, Auto, Computed, Inverse, Resource, Through, allowances

MISSING: Any = object()
"""The default of a line that has none."""
_VALUES = (str, int, float, Decimal, dt.date, enum.Enum, list, dict, tuple, type(None))


@dataclass(frozen=True, slots=True)
class Declared:
    """One annotated line: its name, its type as it is written, its default, the class in which it stands."""

    attr: str
    hint: Any
    default: Any
    base: type


def annotated(cls: type) -> list[Declared]:
    """Every annotated line of a class and of the classes that it inherits from."""
    found: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for attr, hint in inspect.get_annotations(base).items():
            if not (attr.startswith("__") and attr.endswith("__")):
                found[attr] = Declared(_written(attr, base), hint, vars(base).get(attr, MISSING), base)
    return list(found.values())


def _written(attr: str, base: type) -> str:
    """The name as it is written in the class: Python takes `__x` in T for `_T__x`."""
    return attr.removeprefix("_" + base.__name__) if attr.startswith(f"_{base.__name__}__") else attr


def rules(cls: type) -> Iterator[tuple[str, Any, Allowance]]:
    """Every rule: its name, its function, and what it allows."""
    for attr, member in _members(cls).items():
        for note in allowances(member):
            yield attr, member, note


def computed_fields(cls: type) -> dict[str, Computed[Any]]:
    """Every computed field by its name."""
    return {attr: member for attr, member in _members(cls).items() if isinstance(member, Computed)}


def untyped(cls: type) -> Iterator[str]:
    """What looks like a field and has no type. A constant is written in capitals; None ends what is inherited."""
    for base in cls.__mro__:
        if issubclass(base, Resource):
            yield from (attr for attr, value in vars(base).items() if _is_untyped(base, attr, value))


def _is_untyped(base: type, attr: str, value: object) -> bool:
    ends = value is None and any(attr in vars(older) for older in base.__mro__[1:])
    if ends or attr == "access" or attr.startswith("_") or attr in inspect.get_annotations(base):
        return False
    return isinstance(value, Auto | Inverse | Through) or (attr.islower() and isinstance(value, _VALUES))


def _members(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(vars(base))
    return found


def evaluate(hint: Any, base: type, known: Mapping[str, Any]) -> Any:
    """The type that an annotation means, also where it, or a part of it, is still a string."""
    module = sys.modules.get(base.__module__)
    holder = type(base.__name__, (), {"__annotations__": {"it": hint}, "__module__": base.__module__})
    names = {**known, **(vars(module) if module else {})}
    return typing.get_type_hints(holder, names, include_extras=True)["it"]
