"""A page of the change log, as `GET /posts/changes` answers it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from diptych.engine.watch import Change


class LogPage(Struct, frozen=True):
    """A page of the change log: changes with cursors, the cursor of the next page, and the last cursor covered.

    `bare` has the same changes without cursors.
    """

    changes: tuple[bytes, ...]
    next: str | None
    last: str
    bare: tuple[bytes, ...]


def log_page(bodies: Sequence[bytes], changes: Sequence[Change], following: str | None, last: str) -> LogPage:
    """The page of these changes, whose bodies have cursors."""
    return LogPage(tuple(bodies), following, last, tuple(change.body("") for change in changes))
