"""A group of subscriptions with the same watch and rights: changes are evaluated once, and sent to all members."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import islice, takewhile
from typing import Protocol, cast

from msgspec import Struct

from diptych.ask.change_cursor import ChangeCursors, FeedPosition
from diptych.engine.watch import BoundWatch, Change, ChangeBatch, WatchMemory
from diptych.errors import Code, Refusal
from diptych.fair.pace import Pace
from diptych.identity.viewer import Caller
from diptych.live.shares import BatchKey, CallerAccount, Evaluation
from diptych.live.sink import Sink
from diptych.live.topics import RestingGroups, Topics

PAGE = 200
"""Changes that are evaluated at a time."""
_MANY = 20
"""A batch of this many changes may briefly fill the queue of a client that reads in time."""
_PATIENCE = 0.1
"""Seconds for which a group waits for room then, before slow readers are detached."""
_AT_ONCE = 50
"""Messages that are sent without yielding to the event loop."""
_IN_A_ROW = 10
"""Messages between two looks at the clock."""
_ASKED = 32
"""Callers that are compared to find the one who has used least."""


class Subscription(Struct, eq=False):
    """One subscription: its caller and its position. While it replays, it has no group."""

    sink: Sink
    caller: Caller
    reached: FeedPosition
    account: CallerAccount
    held: WatchMemory
    leave: Callable[[Subscription], None]
    group: Group | None = None
    closed: bool = False
    slot: int = 0

    def sent_up_to(self) -> FeedPosition:
        """The position up to which all changes were sent."""
        group = self.group
        if group is None:
            return self.reached
        return group.before if self in group.pending else group.position

    def close(self) -> None:
        """Unsubscribe."""
        if not self.closed:
            self.closed = True
            self.leave(self)


class Host(Protocol):
    """Evaluates groups: the live service."""

    sent: int
    """Changes that were sent."""

    async def evaluate(self, group: Group) -> None: ...

    async def evaluate_together(self, groups: Sequence[Group]) -> None: ...

    def give_up(self, group: Group) -> None: ...


class Group:
    """Subscriptions with equal keys at the same position; while a change is sent, some are at the one before.

    It rests, or it is scheduled, or it is being evaluated and sent.
    """

    __slots__ = (
        "_host",
        "_topics",
        "account",
        "at",
        "before",
        "failures",
        "following",
        "is_alone",
        "last_sent",
        "members",
        "pending",
        "rest",
        "since",
        "topic",
        "waiting",
        "wanting",
    )

    def __init__(self, following: BoundWatch, position: FeedPosition, topics: Topics, host: Host) -> None:
        self.following = following
        self.members: dict[Subscription, None] = {}
        self.pending: dict[Subscription, None] = {}
        self.waiting: list[asyncio.Future[None]] = []
        """Replays that are ahead of the group, and wait for it to catch up."""
        self.wanting: dict[CallerAccount, int] = {}
        """Number of members and waiting replays, by account."""
        self.failures = 0
        self.is_alone = False
        """Is it evaluated alone next time, since it could not be together with others?"""
        self._host = host
        self._topics = topics
        # its position
        self.topic = topics.add(following.resource.table, following.only)
        self.rest: RestingGroups | None = None
        self.last_sent = self.before = position
        self.at = position.position
        # as a Work
        self.account: CallerAccount | None = None
        self.since = 0.0

    @property
    def position(self) -> FeedPosition:
        return self._topics.position_of(self)

    # members

    def want(self, account: CallerAccount) -> None:
        """Count one more subscription of an account."""
        self.wanting[account] = self.wanting.get(account, 0) + 1

    def unwant(self, account: CallerAccount) -> None:
        """Count one less."""
        left = self.wanting.pop(account) - 1
        if left:
            self.wanting[account] = left

    def join(self, member: Subscription) -> None:
        """Add a member, which is at the position of the group."""
        self.members[member] = None
        self.want(member.account)
        member.group = self

    def drop(self, member: Subscription) -> None:
        """Remove a member."""
        del self.members[member]
        self.pending.pop(member, None)
        self.unwant(member.account)
        member.group = None

    def let_in(self) -> None:
        """Wake the replays that wait for this group."""
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # as a Work

    def owner(self) -> CallerAccount:
        """The account that has used least, among the first few; accounts over their share come last."""
        now = time.monotonic()
        for account in tuple(takewhile(lambda account: account.must_wait(now), self.wanting)):
            self.wanting[account] = self.wanting.pop(account)
        return min(islice(self.wanting, _ASKED), key=lambda account: account.standing(now))

    def batch_key(self) -> BatchKey | None:
        plan = self.following.batch_key
        return None if plan is None or self.is_alone else BatchKey(plan, self.at)

    async def run(self) -> None:
        await self._host.evaluate(self)

    async def run_with(self, others: Sequence[Evaluation]) -> None:
        await self._host.evaluate_together([self, *cast("Sequence[Group]", others)])  # nothing else has such a key

    def timed_out(self) -> None:
        self._host.give_up(self)

    # changes

    def send_at_once(self, changes: Sequence[Change], change_cursors: ChangeCursors) -> Sequence[Change]:
        """Send changes to every member while they are few and have room; returns the changes not sent."""
        most = _AT_ONCE // max(1, len(self.members))
        for index, change in enumerate(changes):
            if index >= most or not all(member.sink.has_room() for member in self.members):
                return changes[index:]
            cursor, body = self._begin(change, change_cursors)
            self._send_some(cursor, body, len(self.pending))
        return ()

    async def send(
        self, changes: Sequence[Change], change_cursors: ChangeCursors, apart: Callable[[Subscription], None]
    ) -> None:
        """Send changes to every member, in time slices; a change goes to all members, also on cancellation.

        Slow readers are detached by `apart`.
        """
        patience = _PATIENCE if len(changes) >= _MANY else 0.0
        pace = Pace()
        for change in changes:
            patience = await self._make_room(patience, apart)
            cursor, body = self._begin(change, change_cursors)
            try:
                while self.pending:
                    self._send_some(cursor, body, _IN_A_ROW)
                    if pace.is_over():
                        await pace.rest()
            finally:
                self._send_some(cursor, body, len(self.pending))

    def _begin(self, change: Change, change_cursors: ChangeCursors) -> tuple[str, bytes]:
        self.before, self.last_sent = self.last_sent, change.feed_position
        self.pending = self.members.copy()
        return change.sealed(change_cursors)

    def _send_some(self, cursor: str, body: bytes, most: int) -> None:
        for _ in range(most):
            if not self.pending:
                return
            member, _ = self.pending.popitem()
            member.sink.put(cursor, body)
            self._host.sent += 1

    async def _make_room(self, patience: float, apart: Callable[[Subscription], None]) -> float:
        """Detach members without room, after waiting for at most `patience` seconds; returns what is left of them."""
        full = [member for member in self.members if not member.sink.has_room()]
        if not full:
            return patience
        if patience > 0:
            loop = asyncio.get_running_loop()
            until = loop.time() + patience
            reading = [asyncio.ensure_future(member.sink.room()) for member in full]
            await asyncio.wait(reading, timeout=patience)
            for future in reading:
                future.cancel()
            patience = until - loop.time()
        for member in full:
            if member in self.members and not member.sink.has_room():
                apart(member)
        return patience


def check_kept(after: int, batch: ChangeBatch) -> None:
    """Raise RESUME_GAP if changes were trimmed before they were sent."""
    if batch.oldest > after + 1:
        raise gap()


def gap() -> Refusal:
    """The refusal for a cursor whose later changes are no longer retained."""
    return Refusal(Code.RESUME_GAP, "Not all changes after this cursor are kept: read anew, and follow from there.")
