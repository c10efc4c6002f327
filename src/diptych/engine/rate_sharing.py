"""Shares the spending of rate limits with other processes, through the database.

    sharing.start()
    if unshared.urgent …: await sharing.settle(buckets)         a request of a caller that has spent much unshared

One task adds what this process has spent to the rows of its buckets, many in one transaction, and learns what others
have spent. It runs when a bucket has spent a quarter of its slice, and every few seconds for what is less. So no
request waits for the database, unless its caller has spent half a slice within one round trip.

If the database does not take it, each process limits by what it knows alone, until the database is back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence

from diptych.db.rates import MOST_ROWS, Shared, Spent, add_spent, sweep_rates
from diptych.db.script import Violation
from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.fair.caller import CALLER
from diptych.fair.rate_bucket import RateBucket, Unshared

log = logging.getLogger("diptych")
EVERY = 5.0
"""Seconds after which also little is shared."""
_PAUSE = 0.02
"""Seconds between two rounds, at least: what is spent meanwhile is shared together."""
_AT_ONCE = 1_000
"""Buckets of one round."""
_PATIENCE = 1.0
"""Seconds for which a request waits until a bucket is shared."""
_SWEEP = 60.0
"""Seconds between two sweeps of the table."""


class RateSharing:
    """Shares the buckets of one process."""

    def __init__(self, store: Store, unshared: Unshared, clock: Callable[[], float] = time.perf_counter) -> None:
        self._store = store
        self._unshared = unshared
        self._clock = clock
        self._task = Background()
        self._round: asyncio.Task[None] | None = None
        """The last round, which goes on when the others end."""
        self._due = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._is_full = False
        """Has the table as many rows as it may have?"""
        self._next_sweep = 0.0
        self._is_started = False

    def start(self) -> None:
        """Share from now on; idempotent."""
        if not self._is_started:
            self._is_started = True
            self._unshared.wake = self._due.set
            self._task.start(self._rounds())

    async def stop(self) -> None:
        """End the rounds, and share what is left; of one that is under way, the outcome is waited for."""
        await self._task.stop()
        if self._round is not None:
            await asyncio.wait({self._round}, timeout=_PATIENCE)
            self._round.cancel()
        self._release()
        await self.share()

    async def settle(self, buckets: Collection[RateBucket]) -> None:
        """Wait until none of these buckets is urgent, for a second at most."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE
        while not self._unshared.urgent.isdisjoint(buckets) and (left := until - loop.time()) > 0:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.append(waiter)
            timer = loop.call_later(left, _wake, waiter)
            try:
                await waiter
            finally:
                timer.cancel()

    async def _rounds(self) -> None:
        CALLER.set("")  # work of the service, not of the caller whose request has started it
        while True:
            try:
                async with asyncio.timeout(EVERY):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            self._round = asyncio.create_task(self.share())
            await asyncio.shield(self._round)
            self._release()
            await asyncio.sleep(_PATIENCE if self._unshared.is_alone else _PAUSE)

    async def share(self) -> None:
        """One round: share all that is noted."""
        dirty = self._unshared.dirty
        chosen = list(dirty)[:_AT_ONCE]
        for bucket in chosen:
            del dirty[bucket]
        now = self._clock()
        chosen.sort(key=lambda bucket: (bucket.policy, bucket.owner))
        spent = [
            Spent(bucket.policy, bucket.owner, *bucket.spent(now), bucket.unshared, bucket.refused) for bucket in chosen
        ]
        try:
            if spent:
                dialect, known_only = self._store.dialect, self._is_full
                shared = await self._store.write(lambda: add_spent(dialect, spent, known_only=known_only))
                self._learn(chosen, spent, shared)
            if now >= self._next_sweep:
                self._next_sweep = now + _SWEEP
                self._is_full = await self._store.write(lambda: sweep_rates(self._store.dialect)) >= MOST_ROWS
        except Exception as error:
            for bucket in chosen:
                dirty[bucket] = None
            self._be_alone(error)
            return
        if dirty:
            self._due.set()
        if self._unshared.is_alone:
            self._unshared.is_alone = False
            log.warning("rate limits are shared with other processes again")

    def _learn(self, buckets: Sequence[RateBucket], spent: Sequence[Spent], shared: Sequence[Shared | None]) -> None:
        now = self._clock()
        for bucket, own, all_spent in zip(buckets, spent, shared, strict=True):
            if all_spent is None:
                bucket.shared(own.units, own.refused, None, 0, 0.0, now)
            else:
                full_at, previous, debt = all_spent
                bucket.shared(own.units, own.refused, previous, full_at, debt, now)

    def _be_alone(self, error: Exception) -> None:
        """Let no request wait for a database that is away."""
        self._unshared.urgent.clear()
        if not self._unshared.is_alone:
            self._unshared.is_alone = True
            if isinstance(error, Refusal | Violation):
                log.warning("rate limits are not shared with other processes now: %s", error)
            else:
                log.exception("rate limits are not shared with other processes now")

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _wake(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
