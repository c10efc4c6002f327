"""A Write with its guards: the new values of the row, and the conditions under which they are written.

`policy` makes it, `compile` turns it into one statement, and `engine` learns from the guard that failed why nothing
changed.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from diptych.ask.nodes import Read, Write
from diptych.model.rules.expr import FALSE, TRUE, Expr


class Why(Enum):
    """Why a write is refused."""

    HIDDEN = auto()
    """The row does not exist, or the viewer may not read it."""
    DENIED = auto()
    """The viewer may not make this change."""
    STALE = auto()
    """The row has another version than the one the client sent (optimistic locking)."""
    DIFFERS = auto()
    """A replacement has another value for a read-only field than the row."""
    NUMBERED = auto()
    """The field within which a counter numbered the row has another value."""
    ABSENT = auto()
    """A replacement lacks a required value."""
    STATE = auto()
    """This transition is not allowed from the current state."""
    BROKEN = auto()
    """The new row breaks a check of its class."""
    DANGLING = auto()
    """A reference points to a row that does not exist or that the viewer may not read."""


class Guard(Struct, frozen=True):
    """A condition of a write: `was` holds for the current row, or `becomes` for the new one."""

    why: Why
    was: Expr = FALSE
    becomes: Expr = FALSE
    field: str = ""
    """The field, or the check, that it is about."""
    stored: bool = False
    """Is `becomes` evaluated after the row is written, so that rules that query its table see the new row?"""

    @property
    def holds(self) -> bool:
        """Does the condition hold for every row?"""
        return TRUE in (self.was, self.becomes)


class GuardedWrite(Struct, frozen=True):
    """A Write restricted to the view: the new values of the row, their guards, and the Read of the answer."""

    write: Write
    values: tuple[tuple[str, Expr], ...]
    guards: tuple[Guard, ...]
    answer: Read | None
    states: tuple[tuple[str, Expr], ...] = ()
    """The state fields that change, each with its current value as the viewer sees it."""
