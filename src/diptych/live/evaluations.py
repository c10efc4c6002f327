"""The fair scheduler of evaluations: the caller who has used least runs next, one evaluation per caller at a time.

    evaluations.put(group)            queued under the member account that has used least
    evaluations.put_all(groups)       the same of many, a few at a time

Evaluations of one plan run together (`batches.py`), and each caller is charged for its part of the time.

A caller over its share waits until its budget refills; changes that are committed meanwhile are evaluated together
then. The event loop is never blocked for long: one task runs in time slices (`pace.py`) as long as it need not wait;
when it waits for a connection or a thread, another task takes over.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from diptych.fair.caller import CALLER
from diptych.fair.pace import Pace
from diptych.fair.semaphore import WAITED
from diptych.live.batches import EvaluationBatches
from diptych.live.shares import CallerAccount, Evaluation, Shares

T = TypeVar("T")
log = logging.getLogger("diptych")
LATEST = 60.0
"""Seconds for which work waits for the budget of its caller before it is given up."""
_MORE = 4
"""The factor on concurrency for callers with a full budget: most evaluations take no time."""
_LARGE = 2
"""Batches that take all of that concurrency."""
_CHUNK = 50
"""Works that are queued before the event loop may run something else."""


class SingleWork(Generic[T]):
    """A single evaluation for one caller, with a result."""

    __slots__ = ("_owner", "_shares", "_work", "account", "result", "since")

    def __init__(self, owner: CallerAccount, work: Callable[[], Awaitable[T]], shares: Shares) -> None:
        self.account: CallerAccount | None = None
        self.since = 0.0
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._owner = owner
        self._work = work
        self._shares = shares

    def owner(self) -> CallerAccount:
        return self._owner

    def batch_key(self) -> None:
        return None

    async def run_with(self, others: Sequence[Evaluation]) -> None:
        raise TypeError("it runs alone")

    async def run(self) -> None:
        try:
            result = await self._work()
        except Exception as error:
            self._end(error)
        else:
            if not self.result.done():
                self.result.set_result(result)

    def timed_out(self) -> None:
        self._end(self._shares.out_of_time(self._owner))

    def _end(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


class Evaluations:
    """The queued work of all callers; `at_once` limits concurrency."""

    def __init__(self, shares: Shares, at_once: int) -> None:
        self._shares = shares
        self._at_once = at_once
        self._heap: list[tuple[float, int, CallerAccount]] = []
        """Accounts with queued work and none running; the one who has used least first."""
        self._numbers = itertools.count()
        self._new: deque[Iterator[Evaluation]] = deque()
        self._runner: object | None = None
        """The task that takes the next work, if there is one."""
        self._is_inside = False
        """Is that task inside a work?"""
        self._checking = False
        self._under_way = 0
        self._batches = EvaluationBatches()
        self._batch_weight = max(1, _MORE * at_once // _LARGE)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        """When the timer fires: a timer of uvloop does not say."""
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, work: Evaluation) -> None:
        """Queue a work under its owner."""
        self._queue(work)
        self._kick()

    def put_all(self, works: Iterable[Evaluation]) -> None:
        """Queue many, a few at a time."""
        self._new.append(iter(works))
        self._kick()

    async def run_once(self, account: CallerAccount, work: Callable[[], Awaitable[T]]) -> T:
        """Queue a single evaluation, and wait for its result."""
        single = SingleWork(account, work, self._shares)
        self.put(single)
        try:
            return await single.result
        finally:
            self.drop(single)

    def move(self, work: Evaluation) -> None:
        """Requeue a work whose owner may have changed to one who has used less."""
        account = work.account
        if account is not None and work.owner() is not account:
            since = work.since
            self.drop(work)
            self._queue(work)
            work.since = since
            self._kick()

    def drop(self, work: Evaluation) -> None:
        """Remove a work from its queue."""
        account = work.account
        if account is not None:
            key = account.works.pop(work, None)
            if key is not None:
                self._batches.remove(key, work, account)
            work.account = None

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

    # scheduling

    def _queue(self, work: Evaluation) -> None:
        account = work.account = work.owner()
        work.since = time.monotonic()
        key = account.works[work] = work.batch_key()
        if key is not None:
            self._batches.add(key, work, account)
        self._enqueue(account)

    def _enqueue(self, account: CallerAccount) -> None:
        """Queue an account, if it has work and none running."""
        if account.works and not account.is_busy and not account.is_queued:
            account.is_queued = True
            heapq.heappush(self._heap, (account.due, next(self._numbers), account))

    def _next(self) -> CallerAccount | None:
        """The account to run next, or None."""
        while self._may_go_on():
            account = heapq.heappop(self._heap)[2]
            account.is_queued = False
            if account.works and not account.is_busy:
                return account
        return None

    def _may_go_on(self) -> bool:
        """May the first account run now? If it is over its share, a timer is set."""
        if not self._heap:
            return False
        account = self._heap[0][2]  # all others have used more
        if not account.works or account.is_busy:
            return True
        now = time.monotonic()
        if self._under_way >= (self._at_once if account.due > now else _MORE * self._at_once):
            return False
        wait = self._shares.until(account, now)
        if wait > 0:
            self._set_timer(wait)
        return wait <= 0

    def _set_timer(self, wait: float) -> None:
        """Set the timer, unless it fires earlier already."""
        loop = asyncio.get_running_loop()
        when = loop.time() + wait
        if self._timer is not None and self._timer_at > when:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer, self._timer_at = loop.call_at(when, self._timer_fired), when

    def _timer_fired(self) -> None:
        self._timer = None
        self._kick()

    # tasks

    def _kick(self) -> None:
        """Start a task, unless one takes work already, or nothing can run."""
        if self._runner is None and (self._new or self._may_go_on()):
            self._runner = runner = object()
            task = asyncio.get_running_loop().create_task(self._run(runner))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, me: object) -> None:
        """Run work until none is left, or another task takes over."""
        try:
            await self._singleoff(me)
        except Exception:
            log.exception("evaluation failed")
        finally:
            if self._runner is me:
                self._runner = None
        self._kick()

    async def _singleoff(self, me: object) -> None:
        """Run one work after another."""
        pace = Pace()
        while self._runner is me:
            if self._new:
                self._queue_some()
            elif (account := self._next()) is not None:
                await self._do(account, me)
                if self._runner is None:  # it had to wait, and no other task has taken over
                    self._runner = me
            else:
                return
            if pace.is_over():
                await pace.rest()

    def _queue_some(self) -> None:
        works = self._new[0]
        for _ in range(_CHUNK):
            work = next(works, None)
            if work is None:
                self._new.popleft()
                return
            self._queue(work)

    async def _do(self, account: CallerAccount, me: object) -> None:
        """Run the next work of a caller, with others of the same plan, and charge it."""
        work, key = next(iter(account.works.items()))
        if self._shares.time_share and work.since + LATEST < time.monotonic() < account.due:
            self.drop(work)
            self._enqueue(account)
            work.timed_out()
            return
        others = [] if key is None else self._batches.companions(key, work, self._may_join)
        counts = Counter([account, *(other.account for other in others if other.account is not None)])
        for each in (work, *others):
            self.drop(each)
        for each_account in counts:
            each_account.is_busy = True
        self._is_inside = True
        weight = self._batch_weight if others else 1
        self._under_way += weight
        self._check_soon()
        CALLER.set(account.name if len(counts) == 1 else "")  # what many share is charged to each of them below
        begun, waited = time.perf_counter(), WAITED.get()
        try:
            await (work.run_with(others) if others else work.run())
        finally:
            took = max(0.0, time.perf_counter() - begun - (WAITED.get() - waited))
            if key is not None:
                self._batches.adapt(key, 1 + len(others), took)
            self._under_way -= weight
            if self._runner is me:
                self._is_inside = False
            for each_account, many in counts.items():
                self._shares.spend(each_account, took * many / (1 + len(others)))
                each_account.is_busy = False
                self._enqueue(each_account)

    def _may_join(self, account: CallerAccount) -> bool:
        """May an evaluation of a caller run together with that of another now?"""
        return not account.is_busy and self._shares.until(account, time.monotonic()) <= 0

    def _check_soon(self) -> None:
        """Check in the next loop iteration whether the work has to wait."""
        if not self._checking:
            self._checking = True
            asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        self._checking = False
        if self._is_inside:
            self._is_inside = False
            self._runner = None
            self._kick()
