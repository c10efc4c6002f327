"""The actor of changes that no request makes: who asked, by which channel, and in which run."""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct


class Actor(Struct, frozen=True):
    """Who makes a change: `owner` as in `identity/owner.py`, the channel, and the id of what runs there."""

    owner: str
    channel: str
    """`job`."""
    id: str


ACTOR: ContextVar[Actor | None] = ContextVar("ACTOR", default=None)
"""The actor of the current task; None in a request, whose caller is known otherwise."""
