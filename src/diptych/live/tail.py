"""Following the end of the feed: one look for all who follow, soon after a commit.

A commit of this process wakes it at once, one of another node by the database, and a look every now and then finds
what neither told of. Nobody who follows asks the database where its end is: they ask here. While nobody follows, a
node only sees to it that what it commits is numbered, where others could be waiting for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from diptych.ask.bookmark import Bookmarks, Place
from diptych.asking import ASKER
from diptych.db.feed import Head
from diptych.db.store import Store
from diptych.errors import Refusal

log = logging.getLogger("diptych")
_PAUSE = 1.0
"""Seconds until the next try, after one that failed."""
_QUIET = 0.05
"""Seconds for which commits are gathered while nobody follows here."""
_BREATH = 0.005
"""Seconds between two looks, at least: what is committed meanwhile is told together."""
_TOUCHED = 1_000
"""Rows whose changes are known by id; of more at a time, everyone is asked."""
Touched = Mapping[str, set[str]] | None
"""The ids of what was changed, by table; None if there are too many to tell."""
Advance = Callable[[Head, Head, Touched], None]


class Tail:
    """The end of one feed. `advance` is called with the end as it was and as it is, and with what changed in between,
    in the same moment in which that becomes known to all: whoever looks where the feed ends waits for no evaluation."""

    def __init__(self, store: Store, secret: bytes, advance: Advance) -> None:
        self._store = store
        self._secret = secret
        self._advance = advance
        self._awake = asyncio.Event()
        self._looking = asyncio.Lock()
        self._begun = self._done = 0
        """Looks that were begun, and the last of them that was done."""
        self._task: asyncio.Task[None] | None = None
        self._followed = False
        self._looked = 0.0
        self.head = Head("", 0, 0, 0)
        self.bookmarks = Bookmarks(secret, "00" * 8)

    @property
    def place(self) -> Place:
        """The newest change."""
        return Place(self.head.position, self.head.mark)

    async def start(self) -> None:
        self._take(await self._store.head())
        if self._store.numbers:
            self._begin()

    async def stop(self) -> None:
        self._store.on_commit(None)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def follow(self, followed: bool) -> None:
        """Does anyone follow? Then every commit is looked for, whoever made it."""
        self._followed = followed
        if followed and self._task is None:
            self._begin()
        elif not followed and not self._store.numbers and self._task is not None:
            self._store.on_commit(None)
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        """Look soon."""
        self._awake.set()

    async def refresh(self) -> None:
        """Wait for a look that begins after this: whatever was committed before is known then."""
        begun = self._begun
        async with self._looking:
            if self._done <= begun:
                await self._look()

    def _begin(self) -> None:
        self._store.on_commit(self._awake.set)
        self._task = asyncio.create_task(self._go_on())

    def _take(self, head: Head) -> None:
        if head.feed != self.head.feed:
            self.bookmarks = Bookmarks(self._secret, head.feed)
        self.head = head

    async def _go_on(self) -> None:
        failed = False
        while True:
            await self._woken()
            try:
                await self.refresh()
                failed = False
            except Exception as error:
                if not failed:
                    unforeseen = None if isinstance(error, Refusal) else error
                    log.warning("the feed cannot be read: %s", error, exc_info=unforeseen)
                failed = True
                await asyncio.sleep(_PAUSE)

    async def _woken(self) -> None:
        """Wait for a commit that was told of, or for the next look."""
        if self._followed:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._store.look_every):  # wait_for() may take no notice of being cancelled
                    await self._awake.wait()
        else:
            await self._awake.wait()
            await asyncio.sleep(_QUIET)
        early = self._looked + _BREATH - asyncio.get_running_loop().time()
        if early > 0:
            await asyncio.sleep(early)
        self._awake.clear()

    async def _look(self) -> None:
        """One look, for all: whoever happens to make it does not wait in line for it."""
        self._begun += 1
        turn = self._begun
        self._looked = asyncio.get_running_loop().time()
        asker = ASKER.set("")
        try:
            before, after = self.head, await self._store.head()
            touched = await self._find_touched(before, after) if self._followed else {}
        finally:
            ASKER.reset(asker)
        self._advance(before, after, touched)
        self._take(after)
        self._done = turn

    async def _find_touched(self, before: Head, after: Head) -> Touched:
        if after.position <= before.position:
            return {}
        pairs = await self._store.touched(before.position, after.position, _TOUCHED)
        if pairs is None:
            return None
        found: dict[str, set[str]] = {}
        for table, row in pairs:
            found.setdefault(table, set()).add(row)
        return found
