"""The webhooks of one process: which of them it delivers, by leases in the database.

Every second it reads the table of webhooks, leases those that nobody delivers, and renews its leases. So one node
delivers a webhook at a time; another takes over at once when that one stops, and within LEASE seconds when it dies.
While there is no webhook, it looks every five seconds only: a service without webhooks pays nothing for them.
Every webhook may send one message at any time, so that none waits for another; more are taken from what all share.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Collection

from diptych.config import Config
from diptych.db.violations import is_moved
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.fair.caller import CALLER
from diptych.live.service import LiveService
from diptych.live.tail import Touched
from diptych.webhooks.address import RefusedAddress, Resolver
from diptych.webhooks.dispatcher import Dispatcher
from diptych.webhooks.manage import declare_webhooks
from diptych.webhooks.message import check_known
from diptych.webhooks.records import (
    DELIVERIES,
    LEASES,
    MOST,
    WEBHOOKS,
    WebhookRecord,
)
from diptych.webhooks.rows import follow_rows, tables_of

log = logging.getLogger("diptych")
LEASE = 10.0
"""Seconds for which a node delivers a webhook without renewing its lease."""
EVERY, RARELY = 1.0, 5.0
"""Seconds between two looks at the table, and while there is no webhook."""
_SHARED = 64
"""Messages at a time beyond one of each webhook."""
_KEPT = 30 * 86_400
"""Seconds for which deliveries that were given up are kept."""
_SWEEP = 3_600.0


class WebhookService:
    """Delivers webhooks."""

    def __init__(self, live: LiveService, config: Config) -> None:
        self.watch_engine = live.watch_engine
        self.store = live.watch_engine.engine.store
        self.tail = live.tail
        self.resolver = Resolver(config.webhook_networks)
        self._allowed = config.webhook_networks
        self.evaluating = asyncio.Semaphore(max(1, self.store.places // 4))
        self.node = secrets.token_hex(8)
        self.free = _SHARED
        self._live = live
        self._dispatchers: dict[str, Dispatcher] = {}
        self._renewed_at = self._swept_at = 0.0
        self._has_tables = any(tables_of(live.watch_engine.engine.model))
        """Are there resources whose rows are webhooks?"""
        self._pause = EVERY
        self._judged: dict[str, int | None] = {}
        """For `follow_rows`."""
        self._left = 0
        """Rows that are no webhooks, since there are too many."""
        self._going = Background()

    @property
    def dispatchers(self) -> Collection[Dispatcher]:
        """The dispatchers of the webhooks that this process delivers."""
        return self._dispatchers.values()

    async def start(self) -> None:
        """Store the webhooks that the model declares, and begin to deliver."""
        if self.watch_engine.engine.model.webhooks:  # what is wrong with them is reported at the start
            await declare_webhooks(self.watch_engine, self._allowed)
        self._going.start(self._rounds())

    async def stop(self) -> None:
        """Finish the messages that are under way, and leave the webhooks to other nodes."""
        await self._going.stop()
        self._live.listen(None)
        had = bool(self._dispatchers)
        await asyncio.gather(*(dispatcher.stop() for dispatcher in self._dispatchers.values()))
        self._dispatchers.clear()
        self.resolver.close()
        if had:
            try:
                await self.store.write(lambda: LEASES.release(self.store.dialect, self.node))
            except Refusal as refusal:
                log.warning("the leases of webhooks end by themselves: %s", refusal)

    async def _rounds(self) -> None:
        CALLER.set("webhooks")
        failed = is_declared = False
        while True:
            await asyncio.sleep(self._pause * random.uniform(0.8, 1.2))
            try:
                if not is_declared:
                    await declare_webhooks(self.watch_engine, self._allowed)
                    is_declared = True
                await self.look()
                failed = False
            except Exception as error:
                if is_moved(error):  # another process delivers, from there
                    return
                if not failed:
                    unforeseen = None if isinstance(error, Refusal) else error
                    log.warning("webhooks cannot be read: %s", error, exc_info=unforeseen)
                failed = True

    async def look(self) -> None:
        """Read the table once, and deliver what this node has leased."""
        await self._renew()
        left = await follow_rows(self.watch_engine, self._allowed, self._judged)
        if left and not self._left:
            log.warning("there are %d webhooks already; rows that send nothing: %d", MOST, left)
        self._left = left
        webhooks = {webhook.id: webhook for webhook in await WEBHOOKS.all(self.store, "id")}
        self._pause = EVERY if webhooks or self._has_tables else RARELY
        ended = list[Dispatcher]()
        for id, dispatcher in tuple(self._dispatchers.items()):
            webhook = webhooks.get(id)
            if webhook is not None and self._goes_on(dispatcher, webhook):
                dispatcher.update(webhook)
            else:
                ended.append(self._dispatchers.pop(id))
        await asyncio.gather(*(dispatcher.stop() for dispatcher in ended))  # the leases of the others are not renewed
        for webhook in webhooks.values():
            if webhook.id in self._dispatchers or webhook.disabled_at is not None:
                continue
            if await self._knows(webhook):
                await self._take(webhook)
        self._live.listen(self._changed if self._dispatchers else None)
        if webhooks and time.monotonic() > self._swept_at + _SWEEP:
            self._swept_at = time.monotonic()
            before = int(time.time()) - _KEPT
            await self.store.write(lambda: DELIVERIES.sweep(self.store.dialect, "first_at", before))

    def _goes_on(self, dispatcher: Dispatcher, webhook: WebhookRecord) -> bool:
        then = dispatcher.webhook
        same = all(getattr(webhook, name) == getattr(then, name) for name in ("url", "resource", "query", "owner"))
        mine = webhook.lease_by == self.node and webhook.disabled_at is None
        return same and mine and not dispatcher.has_ended

    async def _renew(self) -> None:
        """Renew the leases, counted from before the statement: ours ends before that in the database."""
        begun = time.monotonic()
        if not self._dispatchers or begun < self._renewed_at + LEASE / 3:
            return
        await self.store.write(lambda: LEASES.renew(self.store.dialect, self.node, int(LEASE * 1000)))
        self._renewed_at = begun
        for dispatcher in self._dispatchers.values():
            if begun < dispatcher.lease_until:  # one that was late is taken anew
                dispatcher.lease_until = begun + LEASE

    async def _knows(self, webhook: WebhookRecord) -> bool:
        """Has the model what a webhook follows? If not, it is left to nodes with another version of the model."""
        try:
            check_known(self.watch_engine.engine.model, webhook.resource, webhook.query)
        except Refusal as refusal:
            reason = f"it waits for a node that knows what it follows: {refusal}"
            if webhook.lease_until < time.time() * 1000 and webhook.reason != reason:
                log.warning("the webhook %s is not delivered: %s", webhook.name, reason)
                idle = {"id": webhook.id, "lease_by": webhook.lease_by}
                await self.store.write(lambda: WEBHOOKS.change(self.store.dialect, idle, reason=reason))
            return False
        return True

    async def _take(self, webhook: WebhookRecord) -> None:
        begun = time.monotonic()
        dialect, milliseconds = self.store.dialect, int(LEASE * 1000)
        if not await self.store.write(lambda: LEASES.take(dialect, webhook.id, self.node, milliseconds)):
            return
        now = next(iter(await WEBHOOKS.all(self.store, "id", id=webhook.id)), None)
        if now is None:
            return
        try:
            dispatcher = Dispatcher(now, self, begun + LEASE)
        except RefusedAddress as error:
            reason, at = f"its address is refused: {error}", int(time.time())
            await self.store.write(lambda: WEBHOOKS.change(dialect, {"id": now.id}, disabled_at=at, reason=reason))
            return
        self._dispatchers[now.id] = dispatcher
        dispatcher.start()

    def _changed(self, touched: Touched) -> None:
        """Wake the webhooks whose table has changed."""
        for dispatcher in self._dispatchers.values():
            if touched is None or not dispatcher.table or dispatcher.table in touched:
                dispatcher.wake()
