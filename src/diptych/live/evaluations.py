"""What is to be evaluated, and whose turn it is: a fair queue by caller, and the tasks that work it off.

    evaluations.put(group)            queued under whoever of its members has used least
    evaluations.put_all(groups)       the same of many, a few at a time

Each caller has one evaluation at a time, and among callers it is the turn of the one who has used least. Whoever has
used up its share waits until there is some again; what is committed meanwhile is evaluated together then. The loop is
never kept for long: one task goes on as long as nothing makes it wait, and gives way every few milliseconds; when it
has to wait, for a connection or a thread, another one takes over.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Generic, TypeVar

from diptych.asking import ASKER
from diptych.db.turns import WAITED
from diptych.live.shares import Account, Shares, Work

T = TypeVar("T")
log = logging.getLogger("diptych")
LATEST = 60.0
"""Seconds for which work waits for the time of its caller, before it is given up."""
_SLICE = 0.001
"""Seconds after which others have their turn in the loop."""
_MORE = 4
"""So many times as many may be under way, if they are of callers who have used nothing lately: most take no time."""
_CHUNK = 50
"""Works that are queued in a row."""


class Turn(Generic[T]):
    """Something that is evaluated once, for one caller."""

    __slots__ = ("_owner", "_shares", "_work", "account", "result", "since")

    def __init__(self, owner: Account, work: Callable[[], Awaitable[T]], shares: Shares) -> None:
        self.account: Account | None = None
        self.since = 0.0
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._owner = owner
        self._work = work
        self._shares = shares

    def owner(self) -> Account:
        return self._owner

    async def run(self) -> None:
        try:
            found = await self._work()
        except Exception as error:
            self._end(error)
        else:
            if not self.result.done():
                self.result.set_result(found)

    def too_late(self) -> None:
        self._end(self._shares.out_of_time(self._owner))

    def _end(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


class Evaluations:
    """The works of all callers; of those who have used some time lately, so many are under way at a time."""

    def __init__(self, shares: Shares, at_once: int) -> None:
        self._shares = shares
        self._at_once = at_once
        self._heap: list[tuple[float, int, Account]] = []
        """Accounts that have works and none under way, by who has used least."""
        self._numbers = itertools.count()
        self._new: deque[Iterator[Work]] = deque()
        self._runner: object | None = None
        """Who goes on with the next work, if anyone does."""
        self._is_inside = False
        """Has it begun a work, and not ended it?"""
        self._looks = False
        self._under_way = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        """When that is: a timer of uvloop's does not tell."""
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, work: Work) -> None:
        """Have it done when it is the turn of its owner."""
        self._queue(work)
        self._kick()

    def put_all(self, works: Iterable[Work]) -> None:
        """The same of many."""
        self._new.append(iter(works))
        self._kick()

    async def turn(self, account: Account, work: Callable[[], Awaitable[T]]) -> T:
        """The result of something that is evaluated once, when it is the turn of its caller."""
        turn = Turn(account, work, self._shares)
        self.put(turn)
        try:
            return await turn.result
        finally:
            self.drop(turn)

    def move(self, work: Work) -> None:
        """It may have another owner now, who has used less."""
        account = work.account
        if account is not None and work.owner() is not account:
            since = work.since
            self.drop(work)
            self._queue(work)
            work.since = since
            self._kick()

    def drop(self, work: Work) -> None:
        """It is not to be done any more."""
        if work.account is not None:
            work.account.works.pop(work, None)
            work.account = None

    @property
    def is_idle(self) -> bool:
        """Is there nothing to do?"""
        return not self._under_way and not self._new and not any(account.works for *_, account in self._heap)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._new.clear()
        self._heap.clear()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # turns

    def _queue(self, work: Work) -> None:
        account = work.account = work.owner()
        work.since = time.monotonic()
        account.works[work] = None
        self._stand(account)

    def _stand(self, account: Account) -> None:
        """Stand in line, if it has something to do and nothing under way."""
        if account.works and not account.is_busy and not account.is_queued:
            account.is_queued = True
            heapq.heappush(self._heap, (account.due, next(self._numbers), account))

    def _next(self) -> Account | None:
        """Whose turn it is now, if anyone may have one."""
        while self._may_go_on():
            account = heapq.heappop(self._heap)[2]
            account.is_queued = False
            if account.works:
                return account
        return None

    def _may_go_on(self) -> bool:
        """Is there someone who need not wait for its share? Otherwise there is another look when that is so."""
        if not self._heap:
            return False
        account = self._heap[0][2]  # all others have used more
        if not account.works:
            return True
        now = time.monotonic()
        if self._under_way >= (self._at_once if account.due > now else _MORE * self._at_once):
            return False
        wait = self._shares.until(account, now)
        if wait > 0:
            self._look_later(wait)
        return wait <= 0

    def _look_later(self, wait: float) -> None:
        """Look again after so many seconds, unless that is so earlier already."""
        loop = asyncio.get_running_loop()
        when = loop.time() + wait
        if self._timer is not None and self._timer_at > when:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer, self._timer_at = loop.call_at(when, self._look_again), when

    def _look_again(self) -> None:
        self._timer = None
        self._kick()

    # tasks

    def _kick(self) -> None:
        """Go on, unless someone does, or nobody can."""
        if self._runner is None and (self._new or self._may_go_on()):
            self._runner = runner = object()
            task = asyncio.get_running_loop().create_task(self._run(runner))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, me: object) -> None:
        """Go on until nothing is left, or someone else does."""
        try:
            await self._work_off(me)
        except Exception:
            log.exception("what changed cannot be evaluated")
        finally:
            if self._runner is me:
                self._runner = None
        self._kick()

    async def _work_off(self, me: object) -> None:
        """Do one work after another."""
        begun = time.perf_counter()
        while self._runner is me:
            if self._new:
                self._queue_some()
            elif (account := self._next()) is not None:
                await self._do(account, me)
                if self._runner is None:  # it had to wait, and nobody goes on
                    self._runner = me
            else:
                return
            if time.perf_counter() - begun > _SLICE:
                await asyncio.sleep(0)
                begun = time.perf_counter()

    def _queue_some(self) -> None:
        works = self._new[0]
        for _ in range(_CHUNK):
            work = next(works, None)
            if work is None:
                self._new.popleft()
                return
            self._queue(work)

    async def _do(self, account: Account, me: object) -> None:
        """Do the next work of a caller, in its time."""
        work = next(iter(account.works))
        self.drop(work)
        if self._shares.time_share and work.since + LATEST < time.monotonic() < account.due:
            self._stand(account)
            work.too_late()
            return
        account.is_busy = self._is_inside = True
        self._under_way += 1
        self._look_soon()
        ASKER.set(account.name)
        begun, waited = time.perf_counter(), WAITED.get()
        try:
            await work.run()
        finally:
            self._shares.spend(account, max(0.0, time.perf_counter() - begun - (WAITED.get() - waited)))
            account.is_busy = False
            self._under_way -= 1
            if self._runner is me:
                self._is_inside = False
            self._stand(account)

    def _look_soon(self) -> None:
        """Once the loop goes on, see whether the work has to wait."""
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        self._looks = False
        if self._is_inside:
            self._is_inside = False
            self._runner = None
            self._kick()
