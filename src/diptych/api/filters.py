"""How long a filter is that came as JSON, in either style, and the lists in it."""

from __future__ import annotations

from typing import Any

from diptych.ask.asked import Asked


def measure_filter(where: Any, asked: Asked) -> None:
    """Count the comparisons of a filter that came as JSON."""
    terms = 0
    left: list[Any] = [where]
    while left:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        for value in inside:
            asked.listed = max(asked.listed, len(value) if isinstance(value, list) else 0)
            if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict | list)):
                left.append(value)
            else:
                terms += isinstance(part, dict)
    asked.filter_terms = max(asked.filter_terms, terms)
