"""Freshness of a read: the position in the feed that a request must see, and the one that it has seen.

A request that carries no read token has no Freshness: it sees all that was committed before it began.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from msgspec import Struct

from diptych.db.store import FeedHead


class SeenPosition(NamedTuple):
    """A position in the feed, and the mark of the change there."""

    position: int
    mark: int


class Freshness(Struct, eq=False):
    """What one request must see, and has seen."""

    required: SeenPosition | None = None
    """The position that its reads must have; None for the newest at the moment of the read."""
    seen: SeenPosition | None = None
    """The newest position that covers its reads."""
    is_covered: bool = True
    """Do `required` and `seen` cover all that it has read and written? If not, only the newest position does."""

    def note_read(self, seen: SeenPosition) -> None:
        """A read whose snapshot is covered by a position."""
        self.seen = seen if self.seen is None else max(self.seen, seen)

    def note_uncovered(self) -> None:
        """A read of changes that may have no position yet."""
        self.is_covered = False

    def note_write(self) -> None:
        """A commit: reads after it must see it."""
        self.required, self.is_covered = None, False

    @property
    def covers(self) -> SeenPosition | None:
        """The position that covers all that the request has seen; None if only the newest one does."""
        positions = [position for position in (self.required, self.seen) if position is not None]
        return max(positions) if positions and self.is_covered else None


FRESHNESS: ContextVar[Freshness | None] = ContextVar("FRESHNESS", default=None)
"""The Freshness of the request that runs; None if it carries no read token."""


def newest(head: FeedHead) -> SeenPosition:
    """The newest position of a feed."""
    return SeenPosition(head.position, head.mark)
