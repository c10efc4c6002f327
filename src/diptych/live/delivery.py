"""Evaluates new changes for groups, one group alone or many of one plan together, and sends them.

Groups of one plan at one position differ only in values. They are evaluated by one statement, as many as the scheduler
puts together (`evaluations.py`). If that fails, each of them is evaluated alone next time, so that the fault of one is
its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from diptych.ask.change_cursor import FeedPosition
from diptych.engine.watch import Change, ChangeBatch
from diptych.engine.watch_batch import changes_together
from diptych.errors import Code, Refusal
from diptych.fair.pace import Pace
from diptych.live.evaluations import Evaluations
from diptych.live.group import PAGE, Group, Subscription, check_kept
from diptych.live.shares import Shares
from diptych.live.tail import Tail
from diptych.live.topics import Topics

log = logging.getLogger("diptych")
_FAILURES = 20
"""Failures in a row after which the subscriptions of a group are ended; while the database is away, they stay open."""
_AGAIN = 0.25
"""Seconds until the next attempt."""
_ROWS = 4_096
"""The most changes, of all groups together, that one statement evaluates."""


class Streams(Protocol):
    """The streams of a service."""

    is_closing: bool

    def end_stream(self, member: Subscription, refusal: Refusal | None) -> None: ...

    def detach(self, member: Subscription) -> None: ...

    def start_task(self, work: Coroutine[Any, Any, None]) -> None: ...


class Delivery:
    """The host of the groups of one service."""

    def __init__(self, tail: Tail, topics: Topics, evaluations: Evaluations, shares: Shares, streams: Streams) -> None:
        self.sent = 0
        """Changes that were sent to streams."""
        self._tail = tail
        self._topics = topics
        self._evaluations = evaluations
        self._shares = shares
        self._streams = streams

    async def evaluate(self, group: Group) -> None:
        """Evaluate new changes for a group, and send them."""
        at, upto = group.at, self._tail.end
        group.is_alone = False
        try:
            batch = await group.following.changes(at, upto.position, PAGE)
        except Exception as error:
            self._fail(group, error)
        else:
            self._deliver(group, batch, upto)

    async def evaluate_together(self, groups: Sequence[Group]) -> None:
        """Evaluate new changes for groups of one plan at one position, and send them."""
        at, upto = groups[0].at, self._tail.end
        most = max(1, min(PAGE, _ROWS // len(groups)))
        try:
            batches = await changes_together([group.following for group in groups], at, upto.position, most)
        except Exception as error:
            self._part(groups, error)
            return
        pace = Pace()
        for group, batch in zip(groups, batches, strict=True):
            self._deliver(group, batch, upto)
            if pace.is_over():
                await pace.rest()

    def _part(self, groups: Sequence[Group], error: Exception) -> None:
        """Evaluate each group alone after a failure of all, unless the database cannot answer anyway."""
        if not isinstance(error, Refusal):
            log.warning("changes cannot be evaluated together", exc_info=error)
        for group in groups:
            if isinstance(error, Refusal) and error.code is Code.UNAVAILABLE:
                self._fail(group, error)
            elif group.members:
                group.is_alone = True
                self._evaluations.put(group)

    def _deliver(self, group: Group, batch: ChangeBatch, upto: FeedPosition) -> None:
        """Send evaluated changes to a group."""
        try:
            check_kept(group.at, batch)
        except Refusal as error:
            self._fail(group, error)
            return
        group.failures = 0
        left = group.send_at_once(batch.changes, self._tail.change_cursors)
        if left:
            self._streams.start_task(self._send_all(group, left, batch.upto, upto))
        else:
            self._go_on(group, batch.upto, upto)

    async def _send_all(self, group: Group, changes: Sequence[Change], at: int, upto: FeedPosition) -> None:
        """Send many changes to a group, in a task of its own."""
        await group.send(changes, self._tail.change_cursors, self._streams.detach)
        self._go_on(group, at, upto)

    def _go_on(self, group: Group, at: int, upto: FeedPosition) -> None:
        """Advance a group to a position; it rests, or is scheduled again."""
        if not group.members:
            return
        group.at = at
        if at == upto.position:
            group.last_sent = upto
        if not self._topics.let_rest(group):
            self._evaluations.put(group)
        group.let_in()

    def _fail(self, group: Group, error: Exception) -> None:
        """Retry a failed group from its position, unless it keeps failing."""
        passing = isinstance(error, Refusal) and error.code in (Code.UNAVAILABLE, Code.TIMEOUT)
        group.failures += not (isinstance(error, Refusal) and error.code is Code.UNAVAILABLE)
        if passing and group.failures < _FAILURES:
            asyncio.get_running_loop().call_later(_AGAIN, self._again, group)
            return
        if not isinstance(error, Refusal):
            log.error("changes cannot be evaluated", exc_info=error)
            error = Refusal(Code.INTERNAL, "Something went wrong.")
        for member in tuple(group.members):
            self._streams.end_stream(member, error)

    def _again(self, group: Group) -> None:
        if group.members and not self._streams.is_closing:
            self._evaluations.put(group)

    def give_up(self, group: Group) -> None:
        """End a group none of whose callers has budget left."""
        for member in tuple(group.members):
            self._streams.end_stream(member, self._shares.out_of_time(member.account))
