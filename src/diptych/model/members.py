"""What a resource class declares, with what it inherits: a later declaration of a name takes the place of an
earlier one, as everywhere in Python. So a rule that a subclass writes anew replaces the rule of its base.
"""

from __future__ import annotations

import datetime as dt
import enum
import inspect
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from diptych.model.actions import Offer, offers
from diptych.model.computed import Computed
from diptych.model.declared import Auto, Inverse, Through
from diptych.model.resource import Allowance, Resource, allowances

_VALUES = (str, int, float, Decimal, dt.date, enum.Enum, list, dict, tuple, type(None))


def rules(cls: type) -> Iterator[tuple[str, Any, Allowance]]:
    """Every rule: its name, its function, and what it allows."""
    for attr, member in _members(cls).items():
        for note in () if offers(member) else allowances(member):
            yield attr, member, note


def calls(cls: type) -> Iterator[tuple[str, Any, tuple[Offer, ...]]]:
    """Every action and query: its name, what stands in the class, and what is noted on it."""
    for attr, member in _members(cls).items():
        if noted := offers(member):
            yield attr, member, noted


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
