"""What a value must satisfy besides its type: for each marker a test, and the sentence if it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from diptych.model.markers import Max, MaxLen, Min, MinLen, Pattern

TEXT = (MinLen, MaxLen, Pattern)
NUMBER = (Min, Max)
VALUE = (*TEXT, *NUMBER)

_TESTS: dict[type[Any], tuple[Callable[[Any, Any], object], str]] = {
    MinLen: (lambda value, marker: len(value) >= marker.length, "expected at least {0.length} characters"),
    MaxLen: (lambda value, marker: len(value) <= marker.length, "expected at most {0.length} characters"),
    Pattern: (lambda value, marker: re.fullmatch(marker.regex, value), "expected a match of {0.regex}"),
    Min: (lambda value, marker: value >= marker.value, "expected {0.value} or more"),
    Max: (lambda value, marker: value <= marker.value, "expected {0.value} or less"),
}


def fault_of(value: Any, constraints: Iterable[object]) -> str:
    """What is wrong with a canonical value, as a sentence that begins "expected …"; nothing if it is fine."""
    for marker in constraints:
        holds, sentence = _TESTS[type(marker)]
        if not holds(value, marker):
            return sentence.format(marker)
    return ""
