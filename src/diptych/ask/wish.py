"""A Wish: a request, or a part of it, translated: its Asks, and where their values are."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.ask.nodes import Call, Read, Watch, Write
from diptych.ask.slots import Source
from diptych.errors import Code, Fault, Place
from diptych.model.expr import Slot


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What a request wants to read: Asks that one statement answers, with the slots and sources of their values."""

    asks: tuple[Read, ...]
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WatchWish:
    """The changes that a request wants to follow."""

    ask: Watch
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallWish:
    """A call of the model's own code that a request wants."""

    ask: Call
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    place: Place
    faults: tuple[Fault, ...] = ()
    code: Code = Code.BAD_USER_INPUT
    """What a fault is called."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteWish:
    """One change that a request wants. Faults of its shape are told together with those of its values."""

    ask: Write
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    place: Place
    """Where the values of the row stand in the request."""
    faults: tuple[Fault, ...] = ()
    code: Code = Code.BAD_USER_INPUT
