"""What a value must satisfy besides its type: for each marker a test, and the sentence if it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from diptych.model.markers import Key, Max, MaxLen, Min, MinLen, Pattern


@dataclass(frozen=True, slots=True)
class MaxBytes:
    """Text of at most so many bytes in UTF-8. No marker of a model: fields with an index have it by themselves."""

    length: int


INDEXED = MaxBytes(2_048)
"""The longest text that any index keeps: an entry of PostgreSQL's has 2,704 bytes at most, for it and the id."""


TEXT = (MinLen, MaxLen, Pattern)
NUMBER = (Min, Max)
VALUE = (*TEXT, *NUMBER)

Test = Callable[[Any], object]
_TESTS: dict[type[Any], tuple[Callable[[Any], Test], str]] = {
    MinLen: (lambda marker: lambda value: len(value) >= marker.length, "expected at least {0.length} characters"),
    MaxLen: (lambda marker: lambda value: len(value) <= marker.length, "expected at most {0.length} characters"),
    MaxBytes: (
        lambda marker: lambda value: len(value.encode()) <= marker.length,
        "expected at most {0.length} bytes, since the field has an index",
    ),
    Pattern: (lambda marker: re.compile(marker.regex).fullmatch, "expected a match of {0.regex}"),
    Key: (lambda marker: lambda value: value is not None, "expected an id"),
    Min: (lambda marker: lambda value: value >= marker.value, "expected {0.value} or more"),
    Max: (lambda marker: lambda value: value <= marker.value, "expected {0.value} or less"),
}


def tests_of(constraints: Iterable[object]) -> list[tuple[Test, str]]:
    """For each constraint a test of a canonical value, and what to say if it fails: "expected …"."""
    found = []
    for marker in constraints:
        make, sentence = _TESTS[type(marker)]
        found.append((make(marker), sentence.format(marker)))
    return found


def fault_of(value: Any, constraints: Iterable[object]) -> str:
    """What is wrong with a canonical value; nothing if it is fine."""
    return next((told for holds, told in tests_of(constraints) if not holds(value)), "")
