"""The relay: NATS carries the notices of nodes (`db/notice.py`) in the place of NOTIFY. Off by default.

    relay = Relay(("nats://nats:4222",), heard, switched)
    relay.follow(feed)                  # notices of this feed: the subject is diptych.<feed>
    await relay.publish(feed, notice)   # False if it cannot be sent now

A notice is a hint. One that is lost, late, doubled or forged harms nothing: the feed in the database is the truth, a
hearer sees by `before` that it has missed one, and polls besides. So this is core NATS, without acknowledgements and
without a log of its own.

While there is no connection, the store uses NOTIFY and LISTEN again; `switched` tells it of each change.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from diptych.db.store import RelayState

log = logging.getLogger("diptych")
_TIMEOUT = 2.0
"""Seconds in which a server must answer."""
_FIRST_PAUSE = 0.1
_LAST_PAUSE = 2.0
"""Seconds between two attempts to connect."""
_PING = 1
"""Seconds between two pings of the server: one that is silent is given up after the third."""
_BROKEN = (Error, OSError, TimeoutError, ValueError)


class Relay:
    """A connection to NATS, which is made again when it breaks."""

    def __init__(self, servers: Sequence[str], heard: Callable[[str], bool], switched: Callable[[bool], None]) -> None:
        self._servers = servers
        self._heard = heard
        self._switched = switched
        self._feed = ""
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._stirred = asyncio.Event()
        self._sent = self._received = self._refused = 0
        self._task = asyncio.get_running_loop().create_task(self._keep_connected())

    @property
    def is_up(self) -> bool:
        """Is the relay connected, so that it carries notices?"""
        client = self._client
        return client is not None and client.is_connected and self._subscription is not None

    @property
    def state(self) -> RelayState:
        return RelayState(self.is_up, self._sent, self._received, self._refused)

    def follow(self, feed: str) -> None:
        """Hear the notices of a feed from now on."""
        if feed != self._feed:
            self._feed = feed
            self._stirred.set()

    async def publish(self, feed: str, notice: str) -> bool:
        """Send a notice to all other nodes; returns False if there is no connection."""
        client = self._client
        if client is None or not self.is_up:
            return False
        try:
            await client.publish(_subject(feed), notice.encode())
        except _BROKEN:
            return False
        self._sent += 1
        return True

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _keep_connected(self) -> None:
        pause, failed = _FIRST_PAUSE, False
        for attempt in count():
            client = Client()
            try:
                await self._connect(client, self._servers[attempt % len(self._servers)])
                while not client.is_closed:
                    await self._subscribe(client)
                    if self._client is None and self._subscription is not None:
                        self._client, pause = client, _FIRST_PAUSE
                        log.log(logging.WARNING if failed else logging.INFO, "the relay of notices is connected")
                        failed = False
                        self._switched(True)
                    await self._stirred.wait()
                    self._stirred.clear()
            except _BROKEN:
                log.debug("the relay of notices cannot be reached", exc_info=True)
            finally:
                await self._disconnect(client)
            if not failed:
                log.warning("the relay of notices is not connected; nodes notify each other by the database")
            failed = True
            await asyncio.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LAST_PAUSE)

    async def _connect(self, client: Client, server: str) -> None:
        async def closed() -> None:
            self._stirred.set()

        async def ignore(error: Exception) -> None:
            log.debug("the relay of notices: %s", error)

        async with asyncio.timeout(_TIMEOUT):
            await client.connect(
                [server],
                name="diptych",
                error_cb=ignore,
                closed_cb=closed,
                disconnected_cb=closed,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                connect_timeout=int(_TIMEOUT),
                ping_interval=_PING,
                no_echo=True,
            )

    async def _subscribe(self, client: Client) -> None:
        """Hear the feed that is to be followed, if that is another one than before."""
        if self._feed and (self._subscription is None or self._subscription.subject != _subject(self._feed)):
            if self._subscription is not None:
                await self._subscription.unsubscribe()
            self._subscription = await client.subscribe(_subject(self._feed), cb=self._hear)
            await client.flush(int(_TIMEOUT))

    async def _disconnect(self, client: Client) -> None:
        was_up, self._client, self._subscription = self._client is not None, None, None
        if was_up:
            self._switched(False)
        with suppress(*_BROKEN):
            async with asyncio.timeout(_TIMEOUT):
                await client.close()

    async def _hear(self, message: Msg) -> None:
        try:
            is_valid = self._heard(message.data.decode())
        except UnicodeDecodeError:
            is_valid = False
        if is_valid:
            self._received += 1
        else:
            self._refused += 1


def _subject(feed: str) -> str:
    return f"diptych.{feed}"
