"""A Plan: one SQL statement, and what to bind to each of its places.

The statement has one column for each Ask of the request, and gives one row: the JSON of each answer as bytes,
or null where a single row was asked for and none is there. (Where that is all that was asked for, it may give
no row at all, which means the same.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from diptych.errors import Code, Refusal
from diptych.model.roles import Viewer
from diptych.model.scalars import Scalar

_PLAN, _PER_CHARACTER, _PER_BIND = 4_000, 4, 1_200
"""Bytes of a plan, of a character of its SQL, and of a value that it binds, with all that belongs to them."""
MAX_ANSWER = 16 * 1024 * 1024
"""Bytes that the answer to a read may have. Its price bounds the objects in it, and not how long their texts are."""


def too_long() -> Refusal:
    """An answer that has more."""
    return Refusal(Code.TOO_COMPLEX, f"The answer would have more than {MAX_ANSWER} bytes: ask for less at a time.")


@dataclass(frozen=True, slots=True)
class SlotBind:
    """The value of a slot."""

    slot: int
    scalar: Scalar
    many: bool = False


@dataclass(frozen=True, slots=True)
class KeyBind:
    """One key of a cursor that was given in a slot.

    Of a text that was cut, `part` is its digest, or a bound of all texts that begin like it; a whole one has no digest
    and is its own bound.
    """

    slot: int
    key: int
    scalar: Scalar
    part: Literal["whole", "floor", "ceiling", "digest"] = "whole"


@dataclass(frozen=True, slots=True)
class ConstBind:
    """A constant of the model."""

    value: Any
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class ViewerBind:
    """The viewer's id, as an id of the given type; or a value of the viewer that has a name, or many of them."""

    scalar: Scalar
    name: str = ""
    many: bool = False


@dataclass(frozen=True, slots=True)
class SealBind:
    """The key that signs the cursors of the page whose size is in the slot."""

    page: int


@dataclass(frozen=True, slots=True)
class NowBind:
    """The moment at which the statement is bound."""

    scalar: Scalar


Bind = SlotBind | KeyBind | ConstBind | ViewerBind | SealBind | NowBind
Values = Sequence[Any]
Getter = Callable[[Values, Viewer, Mapping[int, bytes]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A statement that is ready to run."""

    sql: str
    binds: tuple[Bind, ...]
    getters: tuple[Getter, ...]
    """How to get each bound value, in the dialect's own form, from the slots' values, the viewer and the keys."""
    columns: int = 1
    searches: bool = False
    """Does it search texts, or compare JSON? Then its time is not bounded by the number of its rows."""

    @property
    def size(self) -> int:
        """About how many bytes it takes, with the Ask that it was made of and what gets its values."""
        return _PLAN + _PER_CHARACTER * len(self.sql) + _PER_BIND * len(self.binds)

    def parameters(self, values: Values, viewer: Viewer, keys: Mapping[int, bytes]) -> list[Any]:
        return [get(values, viewer, keys) for get in self.getters]
