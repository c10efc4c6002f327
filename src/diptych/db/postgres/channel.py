"""How a store learns that something was committed, here or by another node: from itself, by LISTEN, or by a relay.

    channel = NoticeChannel(connect, relay)
    channel.start(wake, heard)      # `wake` soon after a commit, `heard` with each notice (`db/notice.py`)

While a relay carries notices, nothing is listened to; while it is away, the database delivers them again.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import asyncpg

from diptych.db.postgres.feed import Listening
from diptych.errors import StartError

if TYPE_CHECKING:
    from diptych.db.postgres.relay import Relay

MakeRelay = Callable[[Callable[[str], bool], Callable[[bool], None]], "Relay"]


class NoticeChannel:
    def __init__(
        self, connect: Callable[[], Awaitable[asyncpg.Connection]] | None, make_relay: MakeRelay | None
    ) -> None:
        self._connect = connect
        self._make_relay = make_relay
        self._wake: Callable[[], None] | None = None
        self._heard: Callable[[str], bool] | None = None
        self._feed = ""
        """The identity of the feed, once it was read."""
        self.listening: Listening | None = None
        self.relay: Relay | None = None

    def start(self, wake: Callable[[], None] | None, heard: Callable[[str], bool] | None) -> None:
        """Set the callbacks; with them, begin to listen."""
        self._wake = wake
        self._heard = heard
        if wake is not None and self.listening is None and self._connect is not None:
            self.listening = Listening(self._connect, self.committed, self._hear)
        if wake is not None and self.relay is None and self._make_relay is not None:
            self.relay = self._make_relay(self._hear_relayed, self._switched)
            self.relay.follow(self._feed)

    async def close(self) -> None:
        self._wake = self._heard = None
        if self.relay is not None:
            await self.relay.close()
            self.relay = None
        if self.listening is not None:
            await self.listening.close()
            self.listening = None

    def follow(self, feed: str) -> None:
        """Set the feed whose notices a relay brings."""
        self._feed = feed
        if self.relay is not None:
            self.relay.follow(feed)

    def committed(self) -> None:
        if self._wake is not None:
            self._wake()

    def _hear(self, notice: str) -> None:
        """Take a notice of NOTIFY; one that is not valid is a wake-up, as older nodes send it."""
        if not self._hear_relayed(notice):
            self.committed()

    def _hear_relayed(self, notice: str) -> bool:
        return self._heard is not None and self._heard(notice)

    def _switched(self, is_relayed: bool) -> None:
        """Listen while no relay carries notices. Either way, one may have been missed."""
        if self.listening is not None:
            self.listening.want(not is_relayed)
        self.committed()


def relay_to(servers: Sequence[str]) -> MakeRelay | None:
    """What makes a relay. Its module is imported here, since it needs a package that most services do not."""
    if not servers:
        return None
    try:
        relay = importlib.import_module("diptych.db.postgres.relay").Relay
    except ImportError:
        raise StartError("The relay needs a client of NATS: pip install 'diptych[nats]'.") from None
    return lambda heard, switched: relay(servers, heard, switched)
