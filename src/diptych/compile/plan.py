"""A Plan: one SQL statement, and what to bind to each of its placeholders.

The statement has one column for each Ask of the request, and returns one row: the JSON of each answer as bytes, or null
for a single row that does not exist. (If that is the only Ask, it may return no row at all, which means the same.) A
page that is the only Ask has several columns, which a PageLayout puts together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import repeat
from typing import Any, Literal

from msgspec import Struct, field

from diptych.ask.slots import SlotValues
from diptych.errors import Code, Refusal
from diptych.model.aggregates import SUM_DIGITS
from diptych.model.declare.roles import Viewer
from diptych.model.scalars import Scalar

_PLAN, _PER_CHARACTER, _PER_BIND = 4_000, 4, 1_200
"""Bytes of a plan, of a character of its SQL, and of a value that it binds, with all that belongs to them."""
MAX_ANSWER = 16 * 1024 * 1024
"""The largest answer to a read, in bytes. Its cost bounds the number of objects, but not the length of their texts."""


def too_long() -> Refusal:
    """The refusal of an answer that is larger."""
    return Refusal(Code.TOO_COMPLEX, f"The answer would have more than {MAX_ANSWER} bytes: ask for less at a time.")


_LONG_SUM = re.compile(r" sum of ([_A-Za-z][_0-9A-Za-z]*)\"?$", re.ASCII)


def long_sum(name: str) -> Refusal:
    """The refusal of a sum of too many digits."""
    cause = f"The sum of '{name}' has more than {SUM_DIGITS} digits."
    return Refusal(Code.BAD_REQUEST, cause, more={"field": name})


def raise_long_sum(name: str) -> None:
    raise long_sum(name)


def too_many_digits(message: str) -> Refusal | None:
    """The refusal for an error of PostgreSQL, if it is that of a sum."""
    match = _LONG_SUM.search(message)
    return long_sum(match[1]) if match else None


class SlotBind(Struct, frozen=True):
    """The value of a slot."""

    slot: int
    scalar: Scalar
    many: bool = False
    """Is the value a list, of elements of this scalar?"""


class KeyBind(Struct, frozen=True):
    """One key of a cursor that was given in a slot.

    Of a text that was truncated, `part` is its digest, or a bound of all texts with its prefix; a whole one has no
    digest and is its own bound.
    """

    slot: int
    key: int
    scalar: Scalar
    part: Literal["whole", "floor", "ceiling", "digest"] = "whole"


class ConstBind(Struct, frozen=True):
    """A constant of the model."""

    value: Any
    scalar: Scalar


class ViewerBind(Struct, frozen=True):
    """The viewer's id, as an id of this type; or a named value of the viewer, or a list of them."""

    scalar: Scalar
    name: str = ""
    many: bool = False


class SealBind(Struct, frozen=True):
    """The key that signs the cursors of the page whose size is in the slot."""

    page: int


class NowBind(Struct, frozen=True):
    """The current time, when the statement is bound; or so much later."""

    scalar: Scalar
    offset: timedelta = timedelta()


class GroupsBind(Struct, frozen=True):
    """Values of many runs of another plan, as one value of a batch (`compile/watch_batch.py`).

    `of` has the numbers of the values in that plan. `values` is the array of one; `items` has the items of all its
    lists, and `starts` and `ends` where each list is in there; `rows` is a JSON array of the rows of them all.
    """

    of: tuple[int, ...]
    form: Literal["values", "items", "starts", "ends", "rows"]


class ActBind(Struct, frozen=True):
    """Who makes a change, when the statement is bound."""


class PagePiece(Struct, frozen=True):
    """A part of a page that is known when its rows are.

    `more` says whether there are rows beyond the page, in the direction in which it is read, or else what the column
    says; a `column` without a number is `false`.
    """

    kind: Literal["rows", "startCursor", "endCursor", "more", "column"]
    column: int = 0


class PageLayout(Struct, frozen=True, eq=False):
    """How a page is put together from the columns of its statement (`engine/page.py`).

    The first column has the texts of the rows, and of one row more if there is one. A cursor holds values of a row:
    of those labels, separated by commas, or, without labels, what the second column has for each row.
    """

    pieces: tuple[bytes | PagePiece, ...]
    size: int
    """The slot of the page size."""
    backward: bool
    labels: str
    facts: Mapping[str, bytes | PagePiece] = field(default_factory=dict)
    """Of the pieces, what the page says of itself, by kind: `hasNextPage`, `totalCount` and so on."""


ROW_END = b"\x1e"
"""Between two rows of such a column: a control character, which JSON never holds as it is."""
UNREADABLE = b"\x1d"
"""In the place of a row in which a stored value is not allowed by its type, and before the keys of its cursor."""

Bind = SlotBind | KeyBind | ConstBind | ViewerBind | SealBind | NowBind | GroupsBind | ActBind
Getter = Callable[[SlotValues, Viewer, Mapping[int, bytes]], Any]


class Plan(Struct, frozen=True, eq=False):
    """A statement that is ready to run."""

    sql: str
    binds: tuple[Bind, ...] = ()
    getters: tuple[Getter, ...] = ()
    """How to get each bound value, in the dialect's own form, from the slots' values, the viewer and the keys."""
    columns: int = 1
    searches: bool = False
    """Does it search texts, or compare JSON? Then its time is not bounded by the number of its rows."""
    page: PageLayout | None = None
    """If its columns are parts of a page, how that is put together."""
    batches: bool = False
    """May it run in one transaction with those of other requests? A read may whose time is bounded by the number of its
    rows, and the creation of a row that is a change by itself and takes no number of a counter."""

    @property
    def size(self) -> int:
        return _PLAN + _PER_CHARACTER * len(self.sql) + _PER_BIND * len(self.binds)

    def parameters(self, values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> list[Any]:
        parameters = []
        for get in self.getters:  # a comprehension would be a function, with cells for these three
            parameters.append(get(values, viewer, keys))
        return parameters

    def parameters_of(self, runs: Sequence[SlotValues], viewer: Viewer) -> list[tuple[Any, ...]]:
        """The parameters of several runs at the same moment, which differ in the values of their slots only."""
        columns: list[Iterable[Any]] = []
        for bind, get in zip(self.binds, self.getters, strict=True):
            if isinstance(bind, SlotBind):
                columns.append([get(values, viewer, {}) for values in runs])
            else:
                columns.append(repeat(get(runs[0], viewer, {})))
        return list(zip(*columns, strict=False)) if columns else [()] * len(runs)
