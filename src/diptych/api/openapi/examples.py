"""Examples of values, as documents and pages that try an API show them: valid, and as real as a model allows.

    name: Annotated[str, Example("Zoe")]              "Zoe"              what the model says
    currency: Annotated[str, Pattern("[A-Z]{3}")]     "EUR"              a usual value for the name, if it fits
    code: Annotated[str, Pattern("[A-Z]{2}-[0-9]+")]  "AB-1"             made from the pattern
    total: Annotated[Decimal, Digits(12, 2), Min(5)]  "12.50"            by its type, within its bounds

A field for which no valid one is found, such as by a pattern without a portable form, has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from diptych.api.openapi.pattern import portable
from diptych.model import scalars
from diptych.model.call_defs import ArgumentDef
from diptych.model.constraints import Each, MinItems, fault_of
from diptych.model.declare.markers import Max, MaxLen, Min, MinLen, Pattern
from diptych.model.defs import FieldDef
from diptych.model.naming import spaced_words
from diptych.model.scalar_values import to_json
from diptych.model.scalars import (
    BIGINT,
    BOOLEAN,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    ID,
    INT,
    INTEGER_ID,
    JSON,
    STRING,
    TEXT_ID,
    TIME,
    Scalar,
)

UUID = "0197c2a4-7d31-7cc3-98c4-dc0c0c07398f"
_VALUES: dict[Scalar, Any] = {
    ID: UUID,
    INTEGER_ID: "42",
    TEXT_ID: "ALFKI",
    INT: 3,
    BIGINT: "3",
    FLOAT: 1.5,
    BOOLEAN: True,
    DATE: "2026-01-31",
    DATETIME: "2026-01-31T12:00:00.000000Z",
    TIME: "14:30:00.000000",
    DURATION: "PT1H30M",
    scalars.UUID: "9b2d7a3e-5c1f-4e8a-b6d0-2f4c8e1a7b93",
    JSON: {"key": "value"},
}
_TEXTS = {
    "name": "Zoe",
    "first name": "Zoe",
    "last name": "Miller",
    "email": "zoe@example.org",
    "mail": "zoe@example.org",
    "title": "Hello, world",
    "subject": "Hello, world",
    "slug": "hello-world",
    "body": "It began with a question.",
    "text": "It began with a question.",
    "description": "What it is, in a sentence.",
    "note": "Leave it at the door.",
    "comment": "Well said.",
    "currency": "EUR",
    "country": "NL",
    "language": "en",
    "city": "Utrecht",
    "street": "Oudegracht 1",
    "phone": "+31 30 000 0000",
    "url": "https://example.org",
    "website": "https://example.org",
    "color": "#336699",
    "word": "hello",
}
"""Usual values of fields by their name, or by the last words of it."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CANDIDATES = f"{_LETTERS}{_LETTERS.upper()}123456789 -_.,:;/+#@=&%!?*()[]{{}}<>|~^$'\"\\0\n\té"
_LONGEST = 200
"""No example is longer, in characters."""


def example_of(field: FieldDef | ArgumentDef) -> Any:
    """A valid value of a field or an argument, as on the wire; None if none is found."""
    if isinstance(field, FieldDef):
        if field.example is not None:
            return to_json(field.scalar, field.example)
        if field.name == "version":
            return 1
    if field.default is not None:
        return to_json(field.scalar, field.default)
    return next(filter(lambda value: _fits(field.scalar, value, field.constraints), _guesses(field)), None)


def _fits(scalar: Scalar, value: Any, constraints: Iterable[object]) -> bool:
    try:
        parsed = scalar.parse(value)
        return parsed is not None and not fault_of(parsed, constraints)
    except ValueError:
        return False


def _guesses(field: FieldDef | ArgumentDef) -> Iterator[Any]:
    scalar = field.scalar
    if scalar.members is not None:
        parts = {
            name: example_of(
                ArgumentDef(name, name, member.scalar, member.nullable, False, member.default, member.constraints)
            )
            for name, member in scalar.members.items()
        }
        yield parts
    elif scalar.items is not None:
        yield from _lists(field, scalar.items)
    elif scalar.choices:
        yield scalar.choices[0]
    elif scalar is STRING:
        yield from _texts(spaced_words(field.name), field.constraints)
    else:
        if scalar in _VALUES:
            yield _VALUES[scalar]
        if scalar.digits or scalar in (INT, BIGINT, FLOAT):
            yield from _numbers(scalar, field.constraints)


def _lists(field: FieldDef | ArgumentDef, item: Scalar) -> Iterator[Any]:
    of_elements = next((part.constraints for part in field.constraints if isinstance(part, Each)), ())
    least = next((part.length for part in field.constraints if isinstance(part, MinItems)), 1)
    name = field.name.removesuffix("s")
    element = example_of(ArgumentDef(name, name, item, constraints=of_elements))
    if element is not None:
        yield [element] * max(1, least)
    yield []


def _numbers(scalar: Scalar, constraints: Iterable[object]) -> Iterator[Any]:
    bounds = [marker.value for marker in constraints if isinstance(marker, Min | Max)]
    whole, scale = (scalar.digits[0] - scalar.digits[1], scalar.digits[1]) if scalar.digits else (10, 0)
    usual = [Decimal("12.5"), Decimal("0.5"), Decimal(0)] if scale else [Decimal(12), Decimal(3), Decimal(0)]
    for value in [*usual, *bounds, *(bound + 1 for bound in bounds), *(bound - 1 for bound in bounds)]:
        if scalar in (INT, FLOAT):
            yield int(value) if scalar is INT else float(value)
        elif abs(value) < 10**whole:
            yield f"{Decimal(value):.{scale}f}"


def _texts(name: str, constraints: Iterable[object]) -> Iterator[str]:
    """Texts that may fit: usual ones, one that says what it is, and one made from the pattern."""
    parts = name.split()
    usual = (" ".join(parts[index:]) for index in range(len(parts)))
    texts = [_TEXTS[key] for key in usual if key in _TEXTS]
    texts.append(f"Some {name}")
    limits = {type(marker): marker for marker in constraints}
    pattern = limits.get(Pattern)
    if isinstance(pattern, Pattern) and (plain := portable(pattern.regex)):
        texts.append(_Sampler(plain).alternatives())
    least, most = limits.get(MinLen), limits.get(MaxLen)
    for text in texts:
        yield text
        if isinstance(most, MaxLen):
            yield text[: most.length].strip()
        if isinstance(least, MinLen) and text and least.length <= _LONGEST:
            yield (f"{text} " * (least.length // len(text) + 1))[: least.length]


class _Sampler:
    """Makes a text that matches a portable pattern: the first alternative of each choice, and few repetitions."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0

    def alternatives(self) -> str:
        found = self._sequence()
        while self._take("|"):
            self._sequence()
        return found

    def _take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += 1
            return True
        return False

    def _sequence(self) -> str:
        parts = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            choices = self._atom()
            parts += [choices[index % len(choices)] for index in range(self._times())]
        return "".join(parts)

    def _atom(self) -> list[str]:
        """The parts that may occur here, each any number of times."""
        if self._take("("):
            inner = self.alternatives()
            self._take(")")
            return [inner]
        start = self.at
        self.at += 1
        if self.text[start] == "[":
            self.at += self.text[self.at] == "^"
            while self.text[self.at] != "]":
                self.at += 1 + (self.text[self.at] == "\\")
            self.at += 1
        elif self.text[start] == "\\":
            self.at += 5 if self.text[self.at] == "u" else 1
        elif self.text[start] in "^$":
            return [""]
        one = re.compile(self.text[start : self.at])
        return [sign for sign in _CANDIDATES if one.fullmatch(sign)] or [""]

    def _times(self) -> int:
        counted = re.compile(r"\{(\d+)(?:,\d*)?\}").match(self.text, self.at)
        times = 1
        if counted:
            self.at = counted.end()
            times = int(counted[1])
        elif self.at < len(self.text) and self.text[self.at] in "*+?":
            times = int(self.text[self.at] != "?")
            self.at += 1
        self._take("?")
        return min(times, _LONGEST)
