"""The markers for `Annotated[...]` in a model file: constraints, field permissions, special types.

name: Annotated[str, MaxLen(80)]
email: Annotated[str, Unique(), ReadBy(admin)]
total: Annotated[Decimal, Digits(12, 2), Min(0)]
scan: Annotated[Json, Weight(5)]
nickname: Annotated[str, Example("Zoe")]
status: Annotated[Status, States(Move(Status.pending, Status.paid, to=staff))] = Status.pending
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Struct

from diptych.model.declare.deprecated import DeprecatedMark
from diptych.model.declare.roles import Role


class Unique(Struct, frozen=True):
    """A unique constraint: no two rows have the same value (except null)."""


class Index(Struct, frozen=True):
    """An index on the field."""


class Column(Struct, frozen=True):
    """The column of a field, or of the key of a relation, if it is not named after it.

    `type` is the type of the column where PostgreSQL converts no text to it by itself: that of an enum.
    """

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True, init=False)
class Columns:
    """The columns by which a relation refers to a row whose key has several, in the order of that key.

    line: Annotated[OrderLine, Columns("OrderID", "ProductID")]
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


class Counter(Struct, frozen=True):
    """A number that the server gives to a new row: 1, 2, 3 … in the rows that have the same `within`, or in all rows.

    number: Annotated[int, Counter("project")] = auto()
    """

    within: str = ""


class MinLen(Struct, frozen=True):
    """Minimum length of a text, in characters."""

    length: int


class MaxLen(Struct, frozen=True):
    """Maximum length of a text, in characters."""

    length: int


class Pattern(Struct, frozen=True):
    """Text that the regular expression matches as a whole."""

    regex: str


class Min(Struct, frozen=True):
    """A number of at least this."""

    value: int | float | Decimal


class Max(Struct, frozen=True):
    """A number of at most this."""

    value: int | float | Decimal


class Digits(Struct, frozen=True):
    """A decimal of at most `precision` (≤ 18) digits, `scale` of them after the point."""

    precision: int
    scale: int


class Big(Struct, frozen=True):
    """An integer of 64 bits; on the wire it is a string."""


class AnyJson(Struct, frozen=True):
    """Any JSON value."""


class KeyMark(Struct, frozen=True):
    """The id of a resource; `text` if it may be an id of any type, as text."""

    text: bool = False


class OnDelete(Struct, frozen=True):
    """What happens to this row when the row that it refers to is deleted."""

    do: Literal["restrict", "cascade", "set null"]


@dataclass(frozen=True, slots=True, init=False)
class ReadBy:
    """Only these roles may read the field (and where an `@allow("read", field=…)` allows it)."""

    roles: tuple[Role, ...]

    def __init__(self, *roles: Role) -> None:
        object.__setattr__(self, "roles", roles)


@dataclass(frozen=True, slots=True, init=False)
class WriteBy:
    """Only these roles may write the field."""

    roles: tuple[Role, ...]

    def __init__(self, *roles: Role) -> None:
        object.__setattr__(self, "roles", roles)


class Weight(Struct, frozen=True):
    """What selecting the field, or following the relation, adds to the price of an object."""

    amount: int


class Public(Struct, frozen=True):
    """The max-age (in seconds) for shared caches of answers that depend on the field, if less than the resource's.
    0 is never."""

    age: int | timedelta


class Example(Struct, frozen=True):
    """A value of the field as documents and pages that try the API show it."""

    value: Any


class RenamedFrom(Struct, frozen=True):
    """The name that the field had before, for the next migration: its values are kept."""

    name: str


class Move(Struct, frozen=True):
    """An allowed state transition, and the role that may make it."""

    source: enum.Enum
    target: enum.Enum
    to: Role | None = None
    """The role, as in `grant(…, to=role)`; None for every role that may write the field."""


@dataclass(frozen=True, slots=True, init=False)
class States:
    """The transitions of an enum field; its default is the initial state."""

    moves: tuple[Move, ...]

    def __init__(self, *moves: Move) -> None:
        object.__setattr__(self, "moves", moves)


MARKERS: tuple[type[Any], ...] = (
    Unique,
    Index,
    Column,
    Columns,
    Counter,
    MinLen,
    MaxLen,
    Pattern,
    Min,
    Max,
    Digits,
    Big,
    AnyJson,
    KeyMark,
    OnDelete,
    ReadBy,
    WriteBy,
    States,
    Weight,
    Public,
    Example,
    RenamedFrom,
    DeprecatedMark,
)
"""All markers. Anything else in `Annotated` is left to other libraries."""

Id = Annotated[str, KeyMark()]
BigInt = Annotated[int, Big()]
Json = Annotated[Any, AnyJson()]
