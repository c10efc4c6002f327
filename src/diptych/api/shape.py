"""The shape of a JSON value: all of it that can change a statement."""

from __future__ import annotations

from typing import Any

VALUE = "value"
"""The shape of any plain value."""


def shape(value: Any) -> Any:
    """What of a JSON value can change a statement: its structure, its nulls and its booleans; no other value.

    >>> shape({"a": {"eq": "x"}, "b": {"in": [1, 2, 3]}, "c": {"isNull": True}})
    (('a', (('eq', 'value'),)), ('b', (('in', 'list'),)), ('c', (('isNull', True),)))
    """
    if isinstance(value, dict):
        return tuple([(key, VALUE if type(item) is str else shape(item)) for key, item in value.items()])
    if isinstance(value, list):
        plain = value and not any(isinstance(item, dict | list) for item in value)
        return "list" if plain else ("list", *map(shape, value))  # so that [] is not {}
    return value if value is None or isinstance(value, bool) else VALUE
