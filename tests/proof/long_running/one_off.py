"""A service that goes on one change too late: for the test that shows that this is found out."""

from __future__ import annotations

from diptych.ask.change_cursor import FeedPosition
from diptych.db.feed import mark_at
from diptych.demo.model import model
from diptych.live.service import LiveService

__all__ = ["model"]

_resumed = LiveService._resumed


async def _one_too_late(self: LiveService, cursor: str) -> FeedPosition:
    found = await _resumed(self, cursor)
    if found.position >= self.tail.head.position:
        return found
    mark = await mark_at(self._store, found.position + 1)
    assert mark is not None
    return FeedPosition(found.position + 1, mark)


LiveService._resumed = _one_too_late  # type: ignore[method-assign]  # a spy
