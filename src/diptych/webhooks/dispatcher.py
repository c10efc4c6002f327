"""Delivers the changes of one webhook: at least once, in order for each row, whatever happens to other rows.

    feed → a page of changes → a few messages at a time, one for each row → position stored → the next page

A change that fails is stored as pending, and so is every later change of its row: they are sent in their order once the
first has been. All other rows go on. If nothing gets through any more, the webhook pauses as a whole (a circuit
breaker) and its changes stay in the feed; a single message is tried now and then.

Nothing is stored before it was sent: after a crash the next node sends the last page again, with the same ids.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from diptych.db.leases import LostLease
from diptych.db.store import Store
from diptych.engine.watch import BoundWatch, Change, ChangeBatch, WatchEngine
from diptych.errors import Code, Refusal
from diptych.fair.backoff import Backoff
from diptych.fair.caller import CALLER
from diptych.identity.owner import viewer_of
from diptych.live.tail import Tail
from diptych.webhooks.address import Resolver, parts_of
from diptych.webhooks.counts import MESSAGES
from diptych.webhooks.message import body_of, message_id, row_id_of, watch_of
from diptych.webhooks.post import PostOutcome, Sender
from diptych.webhooks.records import (
    GONE,
    WEBHOOKS,
    PendingDelivery,
    Progress,
    WebhookRecord,
    advance,
    deliveries_of,
    delivery_id,
)
from diptych.webhooks.signing import secrets_at, signed_headers

log = logging.getLogger("diptych")
BACKOFF = Backoff(first=5.0, factor=3.0, longest=21_600.0)
"""Between tries: about 5 s, 15 s, 45 s, 2 min, 7 min, 20 min, 1 h, 3 h, and every 6 h after that."""
RETRIED_FOR = 3 * 86_400
"""Seconds from the first try until a change is given up."""
IDLE = 5.0
"""Seconds between two looks at the feed without a wake-up."""
BROKEN = 3
"""Failures in a row after which the webhook pauses."""
MOST_PENDING = 1_000
"""Pending changes with which a webhook takes no new ones."""
_WIDTH = 4
"""Messages at a time to an endpoint that is quick."""
_FIRST_PAGE, _LARGEST_PAGE = 8, 100
_PAGE_BYTES = 1 << 20
_FRESH = 2.0
"""Seconds for which changes that were evaluated are sent: then the rules are asked again."""
_QUICK = 0.5
_RETRIES = 20
"""Pending changes that are tried in one round."""
_PASSING = (Code.UNAVAILABLE, Code.TIMEOUT)
_GONE = 410


class DispatcherHost(Protocol):
    """The services that all webhooks of a process share."""

    store: Store
    watch_engine: WatchEngine
    tail: Tail
    resolver: Resolver
    evaluating: asyncio.Semaphore
    node: str
    free: int
    """Messages that may be sent beyond one of each webhook."""


class Dispatcher:
    """Delivers one webhook while this node has its lease, which ends at `lease_until` of the monotonic clock."""

    def __init__(self, webhook: WebhookRecord, host: DispatcherHost, lease_until: float) -> None:
        self.webhook = webhook
        self.lease_until = lease_until
        self.table = ""
        self._host = host
        self._sender = Sender(parts_of(webhook.url), host.resolver)
        self._position = self._stored = webhook.position
        self._failures = webhook.failures
        self._next_at = webhook.next_at / 1000
        self._reason = webhook.reason
        self._delivered_at = webhook.delivered_at
        self._pending: dict[str, deque[PendingDelivery]] = {}
        """The changes of each row that are to be tried again, the oldest first."""
        self._unsaved: dict[str, PendingDelivery | None] = {}
        """What has become of deliveries, by their ids, since it was stored; None if one is done."""
        self._page, self._is_slow = _FIRST_PAGE, False
        self._retry_after = 0
        self._is_gone = False
        self._reloads = True
        self._woken = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    # control

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    @property
    def has_ended(self) -> bool:
        return self._task is None or self._task.done()

    @property
    def pending(self) -> int:
        """Changes that are to be tried again."""
        return sum(map(len, self._pending.values()))

    @property
    def behind(self) -> int:
        """Positions of the feed that it has not looked at yet."""
        return max(0, self._host.tail.head.position - self._position)

    def update(self, webhook: WebhookRecord) -> None:
        """Take over what was changed from outside: other secrets, or a replay."""
        if webhook.replays != self.webhook.replays:
            self._reloads, self._failures, self._next_at = True, 0, 0.0
            self.wake()
        self.webhook = webhook

    def wake(self) -> None:
        self._woken.set()

    async def stop(self, patience: float = 2.0) -> None:
        """Stop after the messages that are under way, or after `patience` seconds."""
        self._stopping = True
        self.wake()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=patience)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._sender.close()

    # rounds

    async def _run(self) -> None:
        CALLER.set(f"webhook:{self.webhook.id}")
        while not self._stopping:
            self._woken.clear()
            try:
                wait = await self._round()
            except LostLease:
                return
            except Exception as error:
                passing = isinstance(error, Refusal) and error.code in _PASSING
                log.warning("the webhook %s waits: %s", self.webhook.name, error, exc_info=None if passing else error)
                wait = 1.0
            if wait > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._woken.wait()

    async def _round(self) -> float:
        """Do what can be done now; returns the seconds until there may be more."""
        self._check_lease()
        if self._unsaved:  # it could not be stored
            await self._store()
        if self._reloads:
            await self._reload()
        now = time.time()
        if self._next_at > now:
            return min(self._next_at - now, IDLE)
        watch = await self._watch()
        if watch is None:
            await self._skip()
            return IDLE
        heads = sorted((queue[0] for queue in self._pending.values()), key=lambda delivery: delivery.position)
        probing = self._failures >= BROKEN
        due = heads[:1] if probing else [head for head in heads if head.next_at <= now * 1000][:_RETRIES]
        if due:
            await self._retry(due, watch)
            return 0.0
        if self._position < self._host.tail.head.position and self.pending < MOST_PENDING:
            await self._take(watch, 1 if probing else self._page)
            return 0.0
        soonest = min((head.next_at / 1000 for head in heads), default=now + IDLE)
        return min(max(soonest - now, 0.01), IDLE)

    def _check_lease(self) -> None:
        if time.monotonic() >= self.lease_until:
            raise LostLease

    async def _reload(self) -> None:
        self._reloads = False
        self._pending.clear()
        for delivery in await deliveries_of(self._host.store, self.webhook.id):
            if delivery.state == "pending":
                self._pending.setdefault(delivery.row_id, deque()).append(delivery)

    async def _watch(self) -> BoundWatch | None:
        """What the owner may follow now; None if that is nothing."""
        engine, webhook = self._host.watch_engine, self.webhook
        viewer = await viewer_of(webhook.owner, self._host.store, engine.engine.model)
        if viewer is None:
            return None
        try:
            watch = watch_of(engine, webhook.resource, webhook.query, viewer)
        except Refusal as refusal:
            if refusal.code in _PASSING:
                raise
            self._reason = f"its owner may not follow it: {refusal}"
            return None
        self.table = watch.resource.table
        return watch

    async def _skip(self) -> None:
        """The owner may see nothing now: what happens meanwhile is not for it."""
        head = self._host.tail.head.position
        if head > self._position or self._pending:
            self._position = max(head, self._position)
            self._unsaved |= {delivery.id: None for queue in self._pending.values() for delivery in queue}
            self._pending.clear()
            await self._store()

    # new changes

    async def _take(self, watch: BoundWatch, page: int) -> None:
        """Send a page of new changes."""
        async with self._host.evaluating:
            batch = await watch.changes(self._position, self._host.tail.head.position, page)
        if batch.oldest > self._position + 1:
            await self._note_gap(batch.oldest)
            return
        begun = time.monotonic()
        taken = await self._send_page(batch, begun + _FRESH)
        self._position = batch.upto if taken == len(batch.changes) else batch.changes[taken - 1].feed_position.position
        self._adapt(batch, taken, time.monotonic() - begun)
        if taken or self._position - self._stored > MOST_PENDING or self._position == self._host.tail.head.position:
            await self._store()

    async def _send_page(self, batch: ChangeBatch, until: float) -> int:
        """Send changes, those of one row one after another; returns how many were taken."""
        extra = 0 if self._is_slow else min(_WIDTH - 1, self._host.free)
        self._host.free -= extra
        running: dict[str, asyncio.Task[None]] = {}
        taken = 0
        try:
            for change in batch.changes:
                row = row_id_of(change)
                while row in running or len(running) > extra:
                    await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
                    running = {row: task for row, task in running.items() if not _is_done(task)}
                if taken and (time.monotonic() > until or self._failures >= BROKEN or self._stopping):
                    break
                taken += 1
                if row in self._pending:
                    self._wait_behind(change, row)
                    continue
                running[row] = asyncio.create_task(self._send_new(change, row))
            if running:
                await asyncio.wait(running.values())
                all(map(_is_done, running.values()))
        finally:
            self._host.free += extra
            for task in running.values():
                task.cancel()
        return taken

    async def _send_new(self, change: Change, row: str) -> None:
        outcome = await self._send(change)
        if not outcome.is_delivered:
            first = self._delivery(change, row, 1, outcome)
            self._unsaved[first.id] = first
            self._pending.setdefault(row, deque()).appendleft(first)

    def _wait_behind(self, change: Change, row: str) -> None:
        """A change that waits until earlier ones of its row were delivered."""
        delivery = self._delivery(change, row, 0, None)
        self._unsaved[delivery.id] = delivery
        self._pending[row].append(delivery)

    def _delivery(self, change: Change, row: str, attempts: int, outcome: PostOutcome | None) -> PendingDelivery:
        now = time.time()
        position = change.feed_position.position
        next_at = 0 if outcome is None else int((now + _delay(attempts, outcome.retry_after)) * 1000)
        last = "" if outcome is None else outcome.text
        id = delivery_id(self.webhook.id, position)
        return PendingDelivery(id, self.webhook.id, position, row, "pending", attempts, int(now), next_at, last)

    async def _note_gap(self, oldest: int) -> None:
        """Note that changes were trimmed before they were sent, and go on after them."""
        first, last = self._position + 1, oldest - 1
        text = f"changes were no longer kept before they could be sent: positions {first} to {last}"
        id, now = delivery_id(self.webhook.id, last), int(time.time())
        self._unsaved[id] = PendingDelivery(id, self.webhook.id, last, "", "gap", 0, now, 0, text)
        log.warning("the webhook %s has a gap: %s", self.webhook.name, text)
        self._position = last
        await self._store()

    def _adapt(self, batch: ChangeBatch, taken: int, seconds: float) -> None:
        """Choose the next page: as much as is sent while it is fresh, and fits into memory."""
        self._is_slow = seconds > _QUICK * max(1, taken) / _WIDTH
        if seconds > _FRESH / 2:
            self._page = max(1, self._page // 2)
        elif seconds < _FRESH / 4 and len(batch.changes) == self._page:
            self._page = min(_LARGEST_PAGE, self._page * 2)
        size = sum(len(piece) for change in batch.changes for piece in change.pieces)
        if size > _PAGE_BYTES:
            self._page = max(1, len(batch.changes) * _PAGE_BYTES // size)

    # pending changes

    async def _retry(self, due: Iterable[PendingDelivery], watch: BoundWatch) -> None:
        """Try the first pending change of some rows again."""
        until = time.monotonic() + _FRESH
        for delivery in due:
            changed = await self._try_again(delivery, watch)
            queue = self._pending[delivery.row_id]
            queue.popleft()
            self._unsaved[delivery.id] = changed
            if changed is not None and changed.state == "pending":
                queue.appendleft(changed)
            if not queue:
                del self._pending[delivery.row_id]
            if time.monotonic() > until or self._failures >= BROKEN or self._stopping:
                break
        await self._store()

    async def _try_again(self, delivery: PendingDelivery, watch: BoundWatch) -> PendingDelivery | None:
        """Send a pending change as its owner may see it now; None if it was delivered, or is not for it any more."""
        async with self._host.evaluating:
            batch = await watch.changes(delivery.position - 1, delivery.position, 1)
        if batch.oldest > delivery.position:
            return replace(delivery, state="gap", last="the change was no longer kept when it was tried again")
        if not batch.changes:
            return None
        outcome = await self._send(batch.changes[0])
        if outcome.is_delivered:
            return None
        now, attempts = time.time(), delivery.attempts + 1
        state = "dead" if now > delivery.first_at + RETRIED_FOR else "pending"
        MESSAGES["dead"] += state == "dead"
        next_at = int((now + _delay(attempts, outcome.retry_after)) * 1000)
        return replace(delivery, attempts=attempts, state=state, next_at=next_at, last=outcome.text)

    # messages

    async def _send(self, change: Change) -> PostOutcome:
        self._check_lease()
        webhook, engine = self.webhook, self._host.watch_engine
        now = int(time.time())
        id = message_id(webhook.id, engine.event_ids.of(change.feed_position))
        body = body_of(change, engine.engine.model.resources[webhook.resource].path)
        secrets = secrets_at(engine.engine.secret, webhook.id, webhook.generation, webhook.rotated_at, now)
        outcome = await self._sender.post(signed_headers(secrets, id, now, body), body)
        MESSAGES["delivered" if outcome.is_delivered else "failed"] += 1
        if outcome.is_delivered:
            self._failures, self._reason, self._delivered_at = 0, None, now
        else:
            self._failures, self._reason = self._failures + 1, outcome.text
            self._retry_after = outcome.retry_after
            self._is_gone = self._is_gone or outcome.status == _GONE
        return outcome

    async def _store(self) -> None:
        """Store how far it is, with all that is unsaved; the breaker opens if nothing got through lately."""
        self._next_at = 0.0
        if self._failures >= BROKEN:
            self._next_at = time.time() + _delay(self._failures - BROKEN + 1, self._retry_after)
        store, webhook = self._host.store, self.webhook
        next_at = int(self._next_at * 1000)
        progress = Progress(self._position, self._failures, next_at, self._reason, self._delivered_at)
        await store.write(lambda: advance(store.dialect, webhook.id, self._host.node, progress, self._unsaved))
        self._unsaved.clear()
        self._stored = self._position
        if self._is_gone:
            log.warning("the webhook %s is disabled: %s", webhook.name, GONE)
            gone = {"id": webhook.id, "lease_by": self._host.node}
            await store.write(lambda: WEBHOOKS.change(store.dialect, gone, disabled_at=int(time.time()), reason=GONE))
            raise LostLease


def _is_done(task: asyncio.Task[None]) -> bool:
    """Has a task ended? Raises what it raised."""
    if task.done():
        task.result()
    return task.done()


def _delay(attempts: int, retry_after: int) -> float:
    """Seconds until the next try, which is not before the receiver asked for it."""
    return max(BACKOFF.delay(attempts), float(retry_after))
