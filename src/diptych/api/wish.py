"""A Wish: one request, translated. Its Asks, where their values are, and the keys of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diptych.ask.nodes import Ask
from diptych.ask.slots import Source
from diptych.model.expr import Slot


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What a request wants: Asks that one statement answers, with the slots and sources of their values."""

    asks: tuple[Ask, ...]
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]


VALUE = "value"
"""The shape of any plain value."""


def shape(value: Any) -> Any:
    """What of a JSON value can change a statement: its structure, its nulls and its booleans; no other value.

    >>> shape({"a": {"eq": "x"}, "b": {"in": [1, 2, 3]}, "c": {"isNull": True}})
    (('a', (('eq', 'value'),)), ('b', (('in', 'list'),)), ('c', (('isNull', True),)))
    """
    if isinstance(value, dict):
        return tuple((key, shape(item)) for key, item in value.items())
    if isinstance(value, list):
        plain = value and not any(isinstance(item, dict | list) for item in value)
        return "list" if plain else ("list", *map(shape, value))  # so that [] is not {}
    return value if value is None or isinstance(value, bool) else VALUE
