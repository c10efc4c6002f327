"""The shape of a JSON value: the part that can change a statement, as a cache key; and measures of JSON filters."""

from __future__ import annotations

from typing import Any

from diptych.ask.measures import RequestMeasures

PLAIN_VALUE = "value"
"""The shape of any plain value."""


def shape(value: Any) -> Any:
    """What of a JSON value can change a statement: its structure, its nulls and its booleans; no other value.

    >>> shape({"a": {"eq": "x"}, "b": {"in": [1, 2, 3]}, "c": {"isNull": True}})
    (('a', (('eq', 'value'),)), ('b', (('in', 'list'),)), ('c', (('isNull', True),)))
    """
    if isinstance(value, dict):
        return tuple([(key, PLAIN_VALUE if type(item) is str else shape(item)) for key, item in value.items()])
    if isinstance(value, list):
        plain = value and not any(isinstance(item, dict | list) for item in value)
        return "list" if plain else ("list", *map(shape, value))  # so that [] is not {}
    return value if value is None or isinstance(value, bool) else PLAIN_VALUE


def measure_filter(where: Any, measures: RequestMeasures) -> None:
    """Measure a filter: its comparisons, and its longest list."""
    terms = 0
    left: list[Any] = [where]
    while left:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        for value in inside:
            measures.listed = max(measures.listed, len(value) if isinstance(value, list) else 0)
            if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict | list)):
                left.append(value)
            else:
                terms += isinstance(part, dict)
    measures.filter_terms = max(measures.filter_terms, terms)
