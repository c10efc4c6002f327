"""Limits of JSON as clients send it, in both styles, looked at before anyone walks through it.

(What a request may ask for is a matter of `check/limits.py`.)
"""

from __future__ import annotations

import re
from typing import Any

from diptych.errors import Code, Refusal

MAX_NESTING = 64
"""Levels of JSON: what reads it further on is recursive."""
MAX_VALUES = 10_000
"""Values of all objects and lists of one JSON text: what reads them further on looks at each."""
_TO_COMMA = re.compile(rb'[^",]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^",]*+)*+,', re.DOTALL)
"""All up to the next comma that stands in no string."""


def check_commas(text: bytes) -> None:
    """Refuse a text that has too many values, before it is parsed. (Commas in strings are no values.)"""
    if text.count(b",") < MAX_VALUES:
        return
    found = at = 0
    while part := _TO_COMMA.match(text, at):
        at = part.end()
        found += 1
        if found >= MAX_VALUES:
            raise Refusal(Code.TOO_COMPLEX, f"The JSON holds more than {MAX_VALUES} values.")


def check_nesting(value: Any, brackets: int) -> None:
    """Refuse JSON that is nested too deeply; `brackets` opened in its text, and few cannot nest deep."""
    if brackets <= MAX_NESTING:
        return
    deep = -1
    level: list[Any] = [value]
    while level:
        deep += 1
        level = [inner for part in level if isinstance(part, dict | list) for inner in _inside(part)]
    if deep > MAX_NESTING:
        raise Refusal(Code.TOO_DEEP, f"The JSON is nested {deep} levels deep; {MAX_NESTING} are allowed.")


def _inside(part: dict[str, Any] | list[Any]) -> list[Any]:
    """What a value holds; what is empty holds nothing, and is a level nonetheless."""
    return (list(part.values()) if isinstance(part, dict) else part) or [None]


def too_deep() -> Refusal:
    """JSON that is nested too deeply even to be parsed."""
    return Refusal(Code.TOO_DEEP, f"The JSON is nested too deeply to be read; {MAX_NESTING} levels are allowed.")
