"""Constraints on values besides their type: for each marker a test, and the message if it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from diptych.model.declare.markers import KeyMark, Max, MaxLen, Min, MinLen, Pattern
from diptych.model.list_scalar import ElementError


class MaxBytes(Struct, frozen=True):
    """Maximum length of a text, in bytes of UTF-8. Not for model files: every text field with an index has it."""

    length: int


class MinItems(Struct, frozen=True):
    """Minimum number of elements: `MinLen` of a list."""

    length: int


class MaxItems(Struct, frozen=True):
    """Maximum number of elements: `MaxLen` of a list."""

    length: int


class Each(Struct, frozen=True):
    """Constraints on every element of a list."""

    constraints: tuple[object, ...]


INDEXED = MaxBytes(2_048)
"""The longest text that can be indexed: an index entry in PostgreSQL has at most 2,704 bytes, for it and the id."""


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
    MinItems: (lambda marker: lambda value: len(value) >= marker.length, "expected at least {0.length} elements"),
    MaxItems: (lambda marker: lambda value: len(value) <= marker.length, "expected at most {0.length} elements"),
    Each: (lambda marker: _each(tests_of(marker.constraints)), "expected valid elements"),
    KeyMark: (lambda marker: lambda value: value is not None, "expected an id"),
    Min: (lambda marker: lambda value: value >= marker.value, "expected {0.value} or more"),
    Max: (lambda marker: lambda value: value <= marker.value, "expected {0.value} or less"),
}


def _each(tests: list[tuple[Test, str]]) -> Test:
    def test(value: Any) -> bool:
        for index, element in enumerate(value):
            for holds, message in tests:
                if not holds(element):
                    raise ElementError((index,), message)
        return True

    return test


def tests_of(constraints: Iterable[object]) -> list[tuple[Test, str]]:
    """For each constraint a test of a canonical value, and the message if it fails: "expected …"."""
    tests = []
    for marker in constraints:
        make, sentence = _TESTS[type(marker)]
        tests.append((make(marker), sentence.format(marker)))
    return tests


def fault_of(value: Any, constraints: Iterable[object]) -> str:
    """The message of the first constraint that a canonical value violates; empty if there is none."""
    return next((message for holds, message in tests_of(constraints) if not holds(value)), "")
