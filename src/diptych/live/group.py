"""All who are told the same: what changed is evaluated once for them, and the bytes are given to each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from diptych.ask.bookmark import Bookmarks, Place
from diptych.asking import ASKER
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.sink import Sink
from diptych.watch import Change, Following, Found

PAGE = 200
"""Changes that are evaluated at a time."""
_MANY = 20
"""Changes at a time that are so many that one who reads in time may have no room for a moment."""
_PATIENCE = 0.1
"""Seconds for which a group waits then, before it goes on without those who have none."""
_SLICE = 250
"""Members that are told in a row, before others have their turn."""


class Subscription:
    """One follower: whose it is, and how far it was told. While history is told to it, it is in no group."""

    __slots__ = ("_leave", "asker", "caller", "closed", "group", "place", "sink", "slot")

    def __init__(self, sink: Sink, caller: Caller, place: Place, leave: Callable[[Subscription], None]) -> None:
        self.sink = sink
        self.caller = caller
        self.asker = ASKER.get()
        self.place = place
        self.group: Group | None = None
        self.closed = False
        self.slot = 0
        self._leave = leave

    def told(self) -> Place:
        """Up to where everything was told."""
        group = self.group
        if group is None:
            return self.place
        return group.before if self in group.untold else group.place

    def close(self) -> None:
        """Follow no longer."""
        if not self.closed:
            self.closed = True
            self._leave(self)


class Group:
    """Followers with equal keys, all told up to the same place; while a change is told, some up to the one before."""

    __slots__ = ("before", "failures", "following", "members", "place", "untold")

    def __init__(self, following: Following, place: Place) -> None:
        self.following = following
        self.place = self.before = place
        self.members: dict[Subscription, None] = {}
        self.untold: dict[Subscription, None] = {}
        self.failures = 0

    def drop(self, member: Subscription) -> None:
        """It is no member any more."""
        self.members.pop(member, None)
        self.untold.pop(member, None)

    async def tell(self, upto: Place, bookmarks: Bookmarks, apart: Callable[[Subscription], None]) -> None:
        """Tell every member what changed, up to this place. One that does not read as fast as that goes on `apart`."""
        at = self.place.position
        while at < upto.position and self.members:
            found = await self.following.changes(at, upto.position, PAGE)
            check_kept(at, found)
            patience = _PATIENCE if len(found.changes) >= _MANY else 0.0
            for change in found.changes:
                patience = await self._make_room(patience, apart)
                if not self.members:
                    return
                await self._tell(change, bookmarks.seal(change.place))
            at = found.upto
            if at == upto.position:
                self.place = upto

    async def _tell(self, change: Change, cursor: str) -> None:
        """Tell all members of one change, a slice of them at a time; all, also if whoever waits for it is cancelled."""
        body = change.body(cursor)
        self.before, self.place = self.place, change.place
        self.untold = self.members.copy()
        try:
            while self.untold:
                self._tell_some(cursor, body, _SLICE)
                await asyncio.sleep(0)
        finally:
            self._tell_some(cursor, body, len(self.untold))

    def _tell_some(self, cursor: str, body: bytes, most: int) -> None:
        for _ in range(most):
            if not self.untold:
                return
            member, _ = self.untold.popitem()
            member.sink.put(cursor, body)

    async def _make_room(self, patience: float, apart: Callable[[Subscription], None]) -> float:
        """Put those apart who have no room, after a moment in which they may read. What is left of that moment?"""
        full = [member for member in self.members if not member.sink.has_room()]
        if not full:
            return patience
        if patience > 0:
            loop = asyncio.get_running_loop()
            until = loop.time() + patience
            reading = [asyncio.ensure_future(member.sink.room()) for member in full]
            await asyncio.wait(reading, timeout=patience)
            for each in reading:
                each.cancel()
            patience = until - loop.time()
        for member in full:
            if member in self.members and not member.sink.has_room():
                apart(member)
        return patience


def check_kept(after: int, found: Found) -> None:
    """Refuse to go on where changes were trimmed before they were told."""
    if found.oldest > after + 1:
        raise gap()


def gap() -> Refusal:
    """What was changed after a cursor is no longer known."""
    return Refusal(Code.RESUME_GAP, "Not all changes after this cursor are kept: read anew, and follow from there.")
