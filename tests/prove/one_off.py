"""A service that goes on one change too late: for the test that shows that this is found out."""

from __future__ import annotations

from diptych.ask.bookmark import Place
from diptych.default import model
from diptych.live.live import Live

__all__ = ["model"]

_resumed = Live._resumed


async def _one_too_late(self: Live, cursor: str) -> Place:
    found = await _resumed(self, cursor)
    if found.position >= self.tail.head.position:
        return found
    mark = await self._store.mark_at(found.position + 1)
    assert mark is not None
    return Place(found.position + 1, mark)


Live._resumed = _one_too_late  # type: ignore[method-assign]
