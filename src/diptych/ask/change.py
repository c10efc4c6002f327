"""A Write once the rules are joined to it: what the row becomes, and all that must hold for that.

`check` makes it, `compile` writes it as one statement, and whoever runs that learns from it why nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from diptych.ask.nodes import Read, Write
from diptych.model.expr import FALSE, TRUE, Expr


class Why(Enum):
    """Why a change is not made."""

    HIDDEN = auto()
    """There is no such row, or none that the viewer may read."""
    DENIED = auto()
    """The viewer may not change the row so."""
    STALE = auto()
    """The row has another version than the client saw."""
    DIFFERS = auto()
    """A replacement gives a read-only field another value than it has."""
    ABSENT = auto()
    """A replacement lacks a value that is required."""
    STATE = auto()
    """The state cannot move so."""
    DANGLING = auto()
    """A reference leads to no row, or to none that the viewer may read."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Something that must hold of the row as it is, or else of the row as it would become."""

    why: Why
    was: Expr = FALSE
    becomes: Expr = FALSE
    field: str = ""
    stored: bool = False
    """Is `becomes` about the row once it stands in its table, where rules that lead back to it find it?"""

    @property
    def holds(self) -> bool:
        """Does it hold of every row?"""
        return TRUE in (self.was, self.becomes)


@dataclass(frozen=True, slots=True)
class Changed:
    """A Write within what the view allows: the new values of the row, what guards them, and what is answered."""

    write: Write
    values: tuple[tuple[str, Expr], ...]
    guards: tuple[Guard, ...]
    answer: Read | None
    states: tuple[tuple[str, Expr], ...] = ()
    """The states that are to move, as the viewer sees them."""
