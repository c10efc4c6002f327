"""The members of a resource class, with the inherited ones. A subclass overrides members of its bases, as everywhere in
Python; so a rule of the same name in a subclass replaces that of the base.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from diptych.model.declare.actions import Offer, offers
from diptych.model.declare.computed import Computed
from diptych.model.declare.declared import Auto, Inverse, Through
from diptych.model.declare.keys import DeclaredCheck, DeclaredKey, declared_check, partial_keys
from diptych.model.declare.resource import Allowance, Resource, allowances
from diptych.model.scalars import PLAIN

_VALUES = (*PLAIN, Decimal, enum.Enum, list, dict, tuple, type(None))


def rules_of(cls: type) -> Iterator[tuple[str, Any, Allowance]]:
    """All rules: the name, the function, and what it allows."""
    for attr, member in members_of(cls).items():
        for note in () if offers(member) else allowances(member):
            yield attr, member, note


def checks_of(cls: type) -> Iterator[tuple[str, Any, DeclaredCheck]]:
    """All checks: the name, the function, and its sentence."""
    for attr, member in members_of(cls).items():
        if noted := declared_check(member):
            yield attr, member, noted


def partial_keys_of(cls: type) -> Iterator[tuple[str, Any, DeclaredKey]]:
    """All partial keys: the name and the function of the condition, and the key."""
    for attr, member in members_of(cls).items():
        for key in partial_keys(member):
            yield attr, member, key


def calls(cls: type) -> Iterator[tuple[str, Any, tuple[Offer, ...]]]:
    """All actions and queries: the name, the member of the class, and its Offers."""
    for attr, member in members_of(cls).items():
        if noted := offers(member):
            yield attr, member, noted


def computed_fields(cls: type) -> dict[str, Computed[Any]]:
    return {attr: member for attr, member in members_of(cls).items() if isinstance(member, Computed)}


def untyped(cls: type) -> Iterator[str]:
    """Attributes that look like fields without a type. Constants are in capitals; None removes an inherited member."""
    for base in cls.__mro__:
        if issubclass(base, Resource):
            yield from (attr for attr, value in vars(base).items() if _is_untyped(base, attr, value))


def _is_untyped(base: type, attr: str, value: object) -> bool:
    ends = value is None and any(attr in vars(older) for older in base.__mro__[1:])
    if ends or attr in ("access", "keys", "search") or attr.startswith("_") or attr in inspect.get_annotations(base):
        return False
    return isinstance(value, Auto | Inverse | Through) or (attr.islower() and isinstance(value, _VALUES))


def members_of(cls: type) -> dict[str, Any]:
    """All members of a class by name, the inherited ones too."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not object:
            members.update(vars(base))
    return members
