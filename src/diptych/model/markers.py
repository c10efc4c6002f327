"""What may stand inside `Annotated[...]` in a model file: constraints, field rules, special types.

    name: Annotated[str, MaxLen(80)]
    email: Annotated[str, Unique(), ReadBy(admin)]
    total: Annotated[Decimal, Digits(12, 2), Min(0)]
    scan: Annotated[Json, Weight(5)]
    status: Annotated[Status, States(Move(Status.pending, Status.paid, to=staff))] = Status.pending
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from diptych.model.roles import Role


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows have the same value (null aside)."""


@dataclass(frozen=True, slots=True)
class Index:
    """Rows are found by this value without looking at all of them."""


@dataclass(frozen=True, slots=True)
class MinLen:
    """Text of at least so many characters."""

    length: int


@dataclass(frozen=True, slots=True)
class MaxLen:
    """Text of at most so many characters."""

    length: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text that the regular expression matches from its beginning to its end."""

    regex: str


@dataclass(frozen=True, slots=True)
class Min:
    """A number of at least this."""

    value: int | float | Decimal


@dataclass(frozen=True, slots=True)
class Max:
    """A number of at most this."""

    value: int | float | Decimal


@dataclass(frozen=True, slots=True)
class Digits:
    """A decimal of at most `precision` (≤ 18) digits, `scale` of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Big:
    """An integer of 64 bits; on the wire it is a string."""


@dataclass(frozen=True, slots=True)
class AnyJson:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Key:
    """The id of a resource."""


@dataclass(frozen=True, slots=True)
class OnDelete:
    """What happens to this row when the row that it refers to is deleted."""

    do: Literal["restrict", "cascade", "set null"]


@dataclass(frozen=True, slots=True, init=False)
class ReadBy:
    """The field exists only for these roles (and where an `@allow("read", field=…)` says so)."""

    roles: tuple[Role, ...]

    def __init__(self, *roles: Role) -> None:
        object.__setattr__(self, "roles", roles)


@dataclass(frozen=True, slots=True, init=False)
class WriteBy:
    """Only these roles may write the field."""

    roles: tuple[Role, ...]

    def __init__(self, *roles: Role) -> None:
        object.__setattr__(self, "roles", roles)


@dataclass(frozen=True, slots=True)
class Weight:
    """What the field, or following the relation, adds to the price of every object that has it selected."""

    amount: int


@dataclass(frozen=True, slots=True)
class Public:
    """For how long (in seconds) anyone may keep an answer that depends on the field, if that is less than its resource
    allows. 0 is never."""

    age: int | timedelta


@dataclass(frozen=True, slots=True)
class Move:
    """One allowed transition of a state, and who may make it."""

    source: enum.Enum
    target: enum.Enum
    to: Role | None = None


@dataclass(frozen=True, slots=True, init=False)
class States:
    """The transitions of an enum field; its default is the initial state."""

    moves: tuple[Move, ...]

    def __init__(self, *moves: Move) -> None:
        object.__setattr__(self, "moves", moves)


MARKERS: tuple[type[Any], ...] = (
    Unique, Index, MinLen, MaxLen, Pattern, Min, Max, Digits, Big, AnyJson, Key, OnDelete, ReadBy, WriteBy, States,
    Weight, Public,
)  # fmt: skip
"""Every marker. All else that stands in `Annotated` belongs to others."""

Id = Annotated[str, Key()]
BigInt = Annotated[int, Big()]
Json = Annotated[Any, AnyJson()]
