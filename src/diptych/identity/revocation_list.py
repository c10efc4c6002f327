"""The revocation list: tokens, grants and accounts that are revoked, as one process knows them.

A revocation is written to the store and takes effect in its process at once; the others poll twice a second. So it
holds on the next request where it was made, and within a second everywhere else. A record lives no longer than the
tokens that it ends, so all of them fit in memory.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TypeVar

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.fair.background import Background
from diptych.identity.records import REVOCATIONS, Revocation
from diptych.identity.tokens import ISSUED_MS, TOKEN_LIFETIME
from diptych.model.declare.roles import Claims

T = TypeVar("T")
log = logging.getLogger("diptych")
EVERY = 0.4
"""Seconds between two polls."""
_OVERLAP = 60_000
"""Milliseconds that polls overlap: clocks of nodes differ, and commits are not in the order of `at`."""
_KINDS = ("token", "grant", "account")
Name = tuple[str, str]
"""What a revocation ends: its kind (token, grant, account), and which of them."""


def revocation(kind: str, what: str, lifetime: int = TOKEN_LIFETIME) -> Revocation:
    """A revocation from now on. `at` is in milliseconds, to be compared with the issue time of tokens."""
    now = time.time()
    return Revocation(secrets.token_urlsafe(12), kind, what, int(now * 1000), int(now) + lifetime + 60)


class RevocationList:
    """The revocations that one process knows. `ended` is called with new names, `besides` at every poll."""

    def __init__(
        self,
        store: Store,
        ended: Callable[[Collection[Name]], None] | None = None,
        besides: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.store = store
        self._ended = ended
        self._besides = besides
        self._seen: dict[str, int] = {}
        self._what: dict[Name, tuple[int, int]] = {}
        self._polled = 0
        self._polling = Background()

    def is_revoked(self, claims: Claims) -> bool:
        """Is the token with these claims revoked?"""
        issued, seconds = claims.get(ISSUED_MS), claims.get("iat")
        at = issued if isinstance(issued, int) else int(seconds * 1000) if isinstance(seconds, int | float) else 0
        revoked = [(key[0], self._what[key][0]) for key in keys_of(claims) if key in self._what]
        return any(kind != "account" or at <= ended for kind, ended in revoked)

    def add(self, revocations: Iterable[Revocation]) -> None:
        """Add revocations that are in the store to the list."""
        new = [record for record in revocations if record.id not in self._seen]
        for record in new:
            self._seen[record.id] = record.expires_at
            key = (record.kind, record.what)
            self._what[key] = max((record.at, record.expires_at), self._what.get(key, (0, 0)))
        if new and self._ended is not None:
            self._ended({(record.kind, record.what) for record in new})

    async def revoke(self, record: Revocation) -> None:
        """Write a revocation to the store and add it to the list."""
        await self.store.write(lambda: REVOCATIONS.add(self.store.dialect, record))
        self.add([record])

    async def write(self, script: Callable[[], Script[tuple[T, Revocation]]]) -> T:
        """Run a script that changes something and revokes tokens, and return what it changed."""
        changed, revoked = await self.store.write(script)
        self.add([revoked])
        await self.poll()
        return changed

    async def poll(self) -> None:
        """Poll: add what other processes revoked."""
        now = int(time.time() * 1000)
        self.add(await REVOCATIONS.since(self.store, "at", self._polled - _OVERLAP))
        self._polled = now
        self._drop_expired()
        if self._besides is not None:
            await self._besides()

    def _drop_expired(self) -> None:
        """Drop revocations of tokens that have expired."""
        now = int(time.time())
        if any(expires < now for expires in self._seen.values()):
            self._seen = {id: expires for id, expires in self._seen.items() if expires >= now}
            self._what = {key: moments for key, moments in self._what.items() if moments[1] >= now}

    async def start(self) -> None:
        """Poll now, then in the background."""
        await self.poll()
        self._polling.start(self._poll_forever())

    async def stop(self) -> None:
        await self._polling.stop()

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.poll()
            except Exception as error:
                log.warning("revocations cannot be read: %s", error)


def keys_of(claims: Claims) -> list[Name]:
    """The names by which a token can be revoked: its own, its grant, its account."""
    named = (claims.get("jti"), claims.get("grant"), claims.get("account"))
    return [(kind, what) for kind, what in zip(_KINDS, named, strict=True) if isinstance(what, str)]
