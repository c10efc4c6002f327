"""All who are told the same: what changed is evaluated once for them, and the bytes are given to each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import islice, takewhile
from typing import Protocol

from diptych.ask.bookmark import Bookmarks, Place
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.shares import Account, Held
from diptych.live.sink import Sink
from diptych.live.topics import Rest, Topics
from diptych.watch import Change, Following, Found

PAGE = 200
"""Changes that are evaluated at a time."""
_MANY = 20
"""Changes at a time that are so many that one who reads in time may have no room for a moment."""
_PATIENCE = 0.1
"""Seconds for which a group waits then, before it goes on without those who have none."""
_SLICE = 250
"""Members that are told in a row, before others have their turn."""
_ASKED = 32
"""Callers among whom the one is looked for who has used least."""


class Subscription:
    """One follower: whose it is, and how far it was told. While history is told to it, it is in no group."""

    __slots__ = ("_leave", "account", "caller", "closed", "group", "held", "place", "sink", "slot")

    def __init__(
        self, sink: Sink, caller: Caller, place: Place, account: Account, held: Held,
        leave: Callable[[Subscription], None],
    ) -> None:  # fmt: skip
        self.sink = sink
        self.caller = caller
        self.account = account
        self.held = held
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


class Host(Protocol):
    """Who has groups evaluated."""

    async def evaluate(self, group: Group) -> None: ...

    def give_up(self, group: Group) -> None: ...


class Group:
    """Followers with equal keys, all told up to the same place; while a change is told, some up to the one before.

    It rests, or it waits for its turn, or it is evaluated and told.
    """

    __slots__ = (
        "_host", "_topics", "account", "at", "before", "failures", "following", "members", "rest", "since", "stands",
        "topic", "untold", "waiting", "wanting",
    )  # fmt: skip

    def __init__(self, following: Following, place: Place, topics: Topics, host: Host) -> None:
        self.following = following
        self.members: dict[Subscription, None] = {}
        self.untold: dict[Subscription, None] = {}
        self.waiting: list[asyncio.Future[None]] = []
        """Followers who were told more than it, and wait until it has come so far."""
        self.wanting: dict[Account, int] = {}
        """Whose followers they are: its members, and those who wait."""
        self.failures = 0
        self._host = host
        self._topics = topics
        # where it stands
        self.topic = topics.add(following.resource.table, following.only)
        self.rest: Rest | None = None
        self.stands = self.before = place
        self.at = place.position
        # as a Work
        self.account: Account | None = None
        self.since = 0.0

    @property
    def place(self) -> Place:
        """Up to where it was told."""
        return self._topics.place(self)

    # who follows

    def want(self, account: Account) -> None:
        """One more follower of a caller."""
        self.wanting[account] = self.wanting.get(account, 0) + 1

    def unwant(self, account: Account) -> None:
        """One less."""
        left = self.wanting.pop(account) - 1
        if left:
            self.wanting[account] = left

    def join(self, member: Subscription) -> None:
        """One more member, told up to where the group stands."""
        self.members[member] = None
        self.want(member.account)
        member.group = self

    def drop(self, member: Subscription) -> None:
        """It is no member any more."""
        del self.members[member]
        self.untold.pop(member, None)
        self.unwant(member.account)
        member.group = None

    def let_in(self) -> None:
        """Those who wait look again whether it has come so far."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    # as a Work

    def owner(self) -> Account:
        """Who of its followers has used least: of some of them, but those who must wait are asked last."""
        now = time.monotonic()
        for account in tuple(takewhile(lambda each: each.must_wait(now), self.wanting)):
            self.wanting[account] = self.wanting.pop(account)
        return min(islice(self.wanting, _ASKED), key=lambda each: each.standing(now))

    async def run(self) -> None:
        await self._host.evaluate(self)

    def too_late(self) -> None:
        self._host.give_up(self)

    # changes

    def tell_at_once(self, changes: Sequence[Change], bookmarks: Bookmarks) -> Sequence[Change]:
        """Tell every member of changes, if they are few and have room; gives those that were not told."""
        most = _SLICE // max(1, len(self.members))
        for index, change in enumerate(changes):
            if index >= most or not all(member.sink.has_room() for member in self.members):
                return changes[index:]
            cursor = self._begin(change, bookmarks)
            self._tell_some(cursor, change.body(cursor), len(self.untold))
        return ()

    async def tell(
        self, changes: Sequence[Change], bookmarks: Bookmarks, apart: Callable[[Subscription], None]
    ) -> None:
        """Tell every member of changes, a slice of them at a time; all of a change, also if this is cancelled. One that
        does not read as fast as that goes on `apart`."""
        patience = _PATIENCE if len(changes) >= _MANY else 0.0
        for change in changes:
            patience = await self._make_room(patience, apart)
            cursor = self._begin(change, bookmarks)
            body = change.body(cursor)
            try:
                while self.untold:
                    self._tell_some(cursor, body, _SLICE)
                    await asyncio.sleep(0)
            finally:
                self._tell_some(cursor, body, len(self.untold))

    def _begin(self, change: Change, bookmarks: Bookmarks) -> str:
        self.before, self.stands = self.stands, change.place
        self.untold = self.members.copy()
        return bookmarks.seal(change.place)

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
