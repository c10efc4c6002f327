"""Which tokens hold no longer, as one process knows it.

Whoever revokes writes a record into the store, and takes it in at once; every other process looks for new records
twice a second. So a revocation holds on the next request where it was made, and within a second everywhere else.
Records are small and live no longer than the tokens that they end, so all of them are in memory.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable

from diptych.background import Background
from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.records import REVOCATIONS, Revocation
from diptych.identity.tokens import LIFETIME
from diptych.model.roles import Claims

log = logging.getLogger("diptych")
EVERY = 0.4
"""Seconds between two looks."""
_OVERLAP = 60_000
"""Milliseconds: clocks of nodes differ, and a record can be committed after one that is younger."""
_KINDS = ("token", "grant", "account")
Name = tuple[str, str]
"""Of what a revocation ends: its kind, and which of them."""


def revocation(kind: str, what: str, lifetime: int = LIFETIME) -> Revocation:
    """A record that ends tokens from now on. Its moments: `at` in milliseconds, to order it among tokens."""
    now = time.time()
    return Revocation(secrets.token_urlsafe(12), kind, what, int(now * 1000), int(now) + lifetime + 60)


class Revoked:
    """What one process knows of revocations. `ended` is called with the names of what ends, `besides` at every look."""

    def __init__(
        self, store: Store, ended: Callable[[Collection[Name]], None] | None = None,
        besides: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self.store = store
        self._ended = ended
        self._besides = besides
        self._seen: dict[str, int] = {}
        self._what: dict[Name, tuple[int, int]] = {}
        self._looked = 0
        self._going = Background()

    def ends(self, claims: Claims) -> bool:
        """Is the token with these claims revoked?"""
        made = claims.get("iat")
        at = int(made * 1000) if isinstance(made, int | float) else 0
        found = [(key[0], self._what[key][0]) for key in keys_of(claims) if key in self._what]
        return any(kind != "account" or at <= ended for kind, ended in found)

    def take(self, found: Iterable[Revocation]) -> None:
        """Know of these from now on."""
        new = [each for each in found if each.id not in self._seen]
        for each in new:
            self._seen[each.id] = each.expires_at
            key = (each.kind, each.what)
            self._what[key] = max((each.at, each.expires_at), self._what.get(key, (0, 0)))
        if new and self._ended is not None:
            self._ended({(each.kind, each.what) for each in new})

    async def revoke(self, *found: Revocation) -> None:
        """Write revocations, and know of them."""

        def script() -> Script[None]:
            for each in found:
                yield from REVOCATIONS.add(self.store.dialect, each)

        await self.store.write(script)
        self.take(found)

    async def look(self) -> None:
        """Take in what others revoked."""
        now = int(time.time() * 1000)
        self.take(await REVOCATIONS.since(self.store, "at", self._looked - _OVERLAP))
        self._looked = now
        self._forget()
        if self._besides is not None:
            await self._besides()

    def _forget(self) -> None:
        """Drop what ends tokens that have expired by themselves."""
        now = int(time.time())
        if any(expires < now for expires in self._seen.values()):
            self._seen = {id: expires for id, expires in self._seen.items() if expires >= now}
            self._what = {key: moments for key, moments in self._what.items() if moments[1] >= now}

    async def start(self) -> None:
        """Look now, and go on looking."""
        await self.look()
        self._going.start(self._go_on())

    async def stop(self) -> None:
        await self._going.stop()

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.look()
            except Exception as error:
                log.warning("revocations cannot be read: %s", error)


def keys_of(claims: Claims) -> list[Name]:
    """By what a token can be revoked: itself, its grant, its account."""
    named = (claims.get("jti"), claims.get("grant"), claims.get("account"))
    return [(kind, what) for kind, what in zip(_KINDS, named, strict=True) if isinstance(what, str)]
