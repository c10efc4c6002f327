"""Rows in which every value can be told from every other, and how to find such values in what a service says.

    planted(model, Planter())["Order"][0]["internalNote"]      "planted-Order-internalNote-731000042"
    marks(b'{"internalNote":"planted-Order-internalNote-731000042"}')      {"731000042"}

A mark is a number that no other value has, a day, a moment or an id. Every text, number, day, moment and JSON value
that the model's constraints leave room for carries one; flags and enums have too few values to carry any.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import itertools
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from diptych.model.constraints import fault_of
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import BIGINT, DATE, DATETIME, FLOAT, ID, INT, INTEGER_ID, JSON, STRING
from tests.support import edge_cases
from tests.support.proof_writes import kind

Rows = dict[str, list[dict[str, Any]]]
FIRST_VALUE, FIRST_ID = 731_000_000, 730_000_000
_MARKS = (
    re.compile(r"(?=(73[01]\d{6}))"),
    re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\.\d{6}Z)?"),
)
_PACKED = re.compile(r"[A-Za-z0-9_-]{20,}")
_SIGNATURE = 12
"""The bytes of a cursor before what it holds."""


def marks(text: str) -> set[str]:
    """The marks in a text, also in the cursors that stand in it."""
    found = {mark for pattern in _MARKS for mark in pattern.findall(text)}
    return found.union(*(marks(inner) for inner in unpacked(text)))


def unpacked(text: str) -> Iterator[str]:
    """What the cursors in a text hold."""
    for packed in _PACKED.findall(text):
        try:
            raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
            yield raw[_SIGNATURE:].decode()
        except (binascii.Error, UnicodeDecodeError):
            continue


def planted(model: Model, planter: Planter, seed: int = 1) -> Rows:
    """A small data set; its versions are small numbers, and the rest is marked."""
    plain = kind(model, edge_cases.rows(model, seed, 8))
    return {name: [planter.row(model.resources[name], row) for row in found] for name, found in plain.items()}


class Planter:
    """Makes values that nothing else has."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def row(self, resource: ResourceDef, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.like(resource, resource.fields[name], value) for name, value in row.items()}

    def like(self, resource: ResourceDef, field: FieldDef, value: Any) -> Any:
        """A marked value that rules take as they would take this one; what cannot be marked stays."""
        if value is None or field.name == "version" or field.scalar is ID:
            return value
        if field.scalar is INTEGER_ID:
            return FIRST_ID + value
        number = next(self._numbers)
        for marked in self._marked(f"planted-{resource.name}-{field.name}", field, value, number):
            if not fault_of(marked, field.constraints):
                return marked
        return value

    @staticmethod
    def _marked(told: str, field: FieldDef, value: Any, number: int) -> Iterator[Any]:
        scalar, mark = field.scalar, FIRST_VALUE + number
        if scalar is STRING:
            quote = "'" if "'" in value else ""
            yield f"{quote}{told}-{mark}"
            yield f"{told}-{mark}@x"
        elif scalar in (INT, BIGINT):
            yield -mark if value < 0 else mark
        elif scalar is FLOAT:
            yield mark + 0.5 if value >= 0 else -mark - 0.5
        elif scalar.python is Decimal:
            whole = scalar.name != "Decimal(18,18)"
            size = Decimal(mark) if whole else Decimal(mark).scaleb(-9)
            yield scalar.parse(format(-size if value < 0 else size, "f"))
        elif scalar is DATE:
            yield (dt.date(2100, 1, 1) + dt.timedelta(days=number)).isoformat()
        elif scalar is DATETIME:
            yield (dt.datetime(2100, 1, 1) + dt.timedelta(seconds=number)).isoformat() + ".731000Z"
        elif scalar is JSON:
            yield {"marked": f"{told}-{mark}"}
