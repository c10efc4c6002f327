"""A Wish: a translated request, or a part of one: its Asks, and the sources of their values."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from diptych.ask.nodes import Call, Read, Watch, Write
from diptych.ask.slots import Source
from diptych.errors import Code, Fault, Path
from diptych.model.rules.expr import Slot


class Follows(NamedTuple):
    """What follows a Write in a nested write."""

    relations: frozenset[tuple[str, ...]] = frozenset()
    """The relations of its row that are written, as paths: rules of a new row that look through them are tested at the
    end."""
    again: bool = False
    """Can its own row be written again?"""


class Wish(Struct, frozen=True, eq=False):
    """The Reads of a request, answered by one statement, with the slots and sources of their values."""

    asks: tuple[Read, ...]
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    implied: bool = False
    """Is what it selects the default, since the request has no selection?"""


class WatchWish(Struct, frozen=True, eq=False):
    """The Watch of a request."""

    ask: Watch
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    implied: bool = False


class CallWish(Struct, frozen=True, eq=False):
    """The Call of a request: an action or a query of the model's own code."""

    ask: Call
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    path: Path
    faults: tuple[Fault, ...] = ()
    code: Code = Code.BAD_USER_INPUT
    """The error code of a fault."""
    implied: bool = False


class WriteWish(Struct, frozen=True, eq=False):
    """One Write of a request. Faults of its shape are reported together with those of its values."""

    ask: Write
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    path: Path
    """The path of the row's values in the request."""
    faults: tuple[Fault, ...] = ()
    code: Code = Code.BAD_USER_INPUT
    depth: int = 1
    """The levels of rows of the nested write that it is the head of."""
    follows: Follows | None = None
    """What follows in the nested write that it is part of, if that matters to its rules or its answer."""
    implied: bool = False


class NestWish(Struct, frozen=True, eq=False):
    """The Writes of a nested write, in their order; `head` is the index of the one that is answered."""

    parts: tuple[WriteWish, ...]
    head: int
