"""Follows the end of the change feed: one poll for all subscriptions, soon after a commit.

A commit of this process wakes it at once, and it numbers what was committed. A node that has numbered something tells
all others in a notice (`db/notice.py`), which saves them from asking. A poll finds the rest: what other programs
commit, and what was committed by a node that died before it was numbered. It is a plain read, unless something waits to
be numbered; and it is put off by every notice of a new position, since one node numbers all that was committed.

Subscriptions do not query the database for the end of the feed. Without subscriptions, a node only numbers its own
commits, where other nodes could wait for that.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Set
from contextlib import suppress

from diptych.ask.change_cursor import ChangeCursors, FeedPosition
from diptych.db.feed import changed_rows
from diptych.db.notice import FeedNotice, Notices
from diptych.db.store import FeedHead, Store
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER

log = logging.getLogger("diptych")
_PAUSE = 1.0
"""Seconds until the next try, after one that failed."""
_FIRST_PATIENCE = 300.0
"""Seconds for which a start waits until changes are numbered. A million takes some ten of them."""
_QUIET = 0.05
"""Seconds for which commits are batched without subscriptions."""
_BREATH = 0.005
"""The least seconds between two polls; commits in between are batched."""
_TOUCHED = 1_000
"""The most changed rows that are tracked by id; with more, all groups are evaluated."""
_NOTICES = 1_000
"""The most notices that are kept for the next look; with more, the database is asked."""
_OVERTAKEN = 0.03
"""Seconds for which a notice that does not follow waits for the one before it, which a relay may bring later."""
Touched = Mapping[str, Set[str | bytes]] | None
"""The ids of changed rows, or their digests (`db/notice.py`), by table; None if there are too many."""
Advance = Callable[[FeedHead, FeedHead, Touched], None]


class Tail:
    """The end of one feed.

    `advance` is called with the old end, the new end and the rows that changed in between, at the moment when `head`
    changes; readers of `head` never wait for an evaluation.
    """

    def __init__(self, store: Store, secret: bytes, advance: Advance) -> None:
        self._store = store
        self._secret = secret
        self._advance = advance
        self._awake = asyncio.Event()
        self._polling = asyncio.Lock()
        self._begun = self._done = 0
        """The number of polls begun, and the last one that was completed."""
        self._task: asyncio.Task[None] | None = None
        self._followed = False
        self._polled_at = 0.0
        self._next_poll = 0.0
        self._must_number = False
        """Has this process committed something since the last poll, or heard something that it does not understand?"""
        self._heard: list[FeedNotice] = []
        self._gap_since: float | None = None
        """The time since when a notice waits for the one before it."""
        self.notices = Notices(secret)
        self.head = FeedHead("", 0, 0, 0)
        self.change_cursors = ChangeCursors(secret, "00" * 8)

    @property
    def end(self) -> FeedPosition:
        """The position of the newest change."""
        return FeedPosition(self.head.position, self.head.mark)

    async def start(self) -> None:
        self._take(await self._first_head())
        if self._store.numbers:
            self._begin()

    async def _first_head(self) -> FeedHead:
        """The head once all changes are numbered: others may have written very many while no service ran."""
        end = asyncio.get_running_loop().time() + _FIRST_PATIENCE
        while True:
            try:
                return await self._store.head()
            except Refusal as refusal:
                if refusal.code is not Code.UNAVAILABLE or asyncio.get_running_loop().time() > end:
                    raise
                log.info("waiting until the changes that others have made are numbered")
                await asyncio.sleep(_BREATH)

    async def stop(self) -> None:
        self._store.on_commit(None)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def follow(self, followed: bool) -> None:
        """Set whether there are subscriptions; with them, commits of other nodes are polled for."""
        self._followed = followed
        if followed and self._task is None:
            self._begin()
        elif not followed and not self._store.numbers and self._task is not None:
            self._store.on_commit(None)
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        """Number soon what was committed."""
        self._must_number = True
        self._awake.set()

    def hear(self, payload: str) -> bool:
        """Take a notice into account soon; returns whether it is valid."""
        notice = self.notices.read(payload)
        if notice is None:
            return False
        if len(self._heard) >= _NOTICES:
            self.wake()
        elif notice.head.position > self.head.position or notice.head.feed != self.head.feed:
            self._heard.append(notice)
            self._awake.set()
        return True

    async def refresh(self) -> None:
        """Wait for a poll that begins after this call and numbers, so that all earlier commits are known."""
        begun = self._begun
        async with self._polling:
            if self._done <= begun:
                self._begun += 1
                number = self._begun
                await self._poll(number=True)
                self._done = number

    async def settle(self) -> None:
        """Number what this process has committed, so that a cursor that is read next is not older than that."""
        if self._store.numbers and (self._must_number or self._polling.locked()):
            await self.refresh()

    def _begin(self) -> None:
        self._store.on_commit(self.wake, self.hear)
        self._task = asyncio.create_task(self._go_on())

    def _take(self, head: FeedHead) -> None:
        if head.feed != self.head.feed:
            self.change_cursors = ChangeCursors(self._secret, head.feed)
        self.head = head

    async def _go_on(self) -> None:
        failed = False
        while True:
            await self._woken()
            try:
                await self._look()
                failed = False
            except Exception as error:
                if not failed:
                    unforeseen = None if isinstance(error, Refusal) else error
                    log.warning("the feed cannot be read: %s", error, exc_info=unforeseen)
                failed = True
                await asyncio.sleep(_PAUSE)

    async def _look(self) -> None:
        """Take notices into account; poll, if they do not say it all, or if it is time to."""
        if self._must_number:
            await self.refresh()
        async with self._polling:
            heard, self._heard = sorted(self._heard, key=lambda notice: notice.before), []
            for index, notice in enumerate(heard):
                if not await self._take_notice(notice):
                    if self._is_overtaken(notice):
                        self._heard = heard[index:] + self._heard
                        break
                    await self._poll()
                    break
            else:
                self._gap_since = None
            if self._followed and asyncio.get_running_loop().time() >= self._next_poll:
                await self._poll()

    async def _take_notice(self, notice: FeedNotice) -> bool:
        """Advance to the position of a notice; returns False if that does not say all since the last."""
        before, after = self.head, notice.head
        if after.feed != before.feed or notice.before > before.position:
            return False
        if after.position > before.position:
            touched: Touched = {}
            if self._followed:
                touched = await self._find_touched(before, after) if notice.touched is None else notice.touched
            self._put_off_poll()
            self._advance(before, after, touched)
            self._take(after)
        return True

    def _is_overtaken(self, notice: FeedNotice) -> bool:
        """May the notice before this one still come? Then it is looked at again a moment later."""
        loop = asyncio.get_running_loop()
        if self._gap_since is None and notice.head.feed == self.head.feed:
            self._gap_since = loop.time()
            loop.call_later(_OVERTAKEN, self._awake.set)
            return True
        if self._gap_since is not None and loop.time() < self._gap_since + _OVERTAKEN:
            return True
        self._gap_since = None
        return False

    def _put_off_poll(self) -> None:
        """Set the time of the next poll: a while after the end of the feed was known, at another time on each node."""
        self._next_poll = asyncio.get_running_loop().time() + self._store.look_every * random.uniform(0.8, 1.0)

    async def _woken(self) -> None:
        """Wait for a commit, for a notice, or for the next poll."""
        if self._followed:
            wait = self._next_poll - asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait)):  # wait_for() may swallow a cancellation
                    await self._awake.wait()
        else:
            await self._awake.wait()
            await asyncio.sleep(_QUIET)
        early = self._polled_at + _BREATH - asyncio.get_running_loop().time()
        if early > 0:
            await asyncio.sleep(early)
        self._awake.clear()

    async def _poll(self, *, number: bool = False) -> None:
        """Poll once for all, as the service itself and not in the queue of the current caller."""
        self._polled_at = asyncio.get_running_loop().time()
        self._put_off_poll()
        token = CALLER.set("")
        try:
            before, after = self.head, await self._end_of_feed(number)
            touched = await self._find_touched(before, after) if self._followed else {}
        finally:
            CALLER.reset(token)
        self._advance(before, after, touched)
        self._take(after)

    async def _end_of_feed(self, number: bool) -> FeedHead:
        if not number:
            head, is_waiting = await self._store.peek()
            if not is_waiting:
                return head
        self._must_number = False
        try:
            return await self._store.head()
        except BaseException:
            self._must_number = True
            raise

    async def _find_touched(self, before: FeedHead, after: FeedHead) -> Touched:
        if after.position <= before.position:
            return {}
        pairs = await changed_rows(self._store, before.position, after.position, _TOUCHED)
        if pairs is None:
            return None
        touched: dict[str, set[str | bytes]] = {}
        for table, row in pairs:
            touched.setdefault(table, set()).add(row)
        return touched


def is_another(before: FeedHead, after: FeedHead) -> bool:
    """Was the database replaced by another one, or restored from an older copy?"""
    same = after.position != before.position or after.mark == before.mark
    return after.feed != before.feed or after.position < before.position or not same
