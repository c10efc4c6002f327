"""The keys of one other issuer, as one process knows them.

They are read when a token first needs them, by discovery, and kept. They are read again when they are no longer fresh,
or when a token names a key that is not among them. Whoever needs them meanwhile waits for the read that is under way.

    fresh for 10 minutes → read again; if the issuer is away, the old ones go on verifying for 24 hours
    a key that is unknown → read again, once in 10 seconds
    the issuer is away    → not asked for 1 s, 2 s, 4 s … 5 minutes; what needs it then is refused at once
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from diptych.config import is_protected
from diptych.identity.issuers.fetch import Unreadable, fetch
from diptych.identity.issuers.key_set import PublicKey, choose, read_key_set

log = logging.getLogger("diptych")
FRESH = 600
KEPT = 86_400
_BETWEEN = 10
"""Seconds between two reads, however many tokens name keys that are unknown."""
_LONGEST_PAUSE = 300
PATIENCE = 5.0
"""Seconds that one read may take, with all that belongs to it."""


class IssuerKeys:
    """Finds the key that can have signed a token of one issuer."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE) -> None:
        self.issuer = issuer
        self._clock = clock
        self._patience = patience
        self._keys: tuple[PublicKey, ...] = ()
        self._read_at = -math.inf
        self._not_before = -math.inf
        self._pause = 0
        self._reading: asyncio.Task[None] | None = None

    async def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """The key of this name for this algorithm, read anew if need be; None if there is none."""
        found = choose(self._keys, algorithm, kid)
        if found is None or self._age() >= FRESH:
            await self._look()
            found = choose(self._keys, algorithm, kid)
        return found if self._age() < KEPT else None

    def _age(self) -> float:
        return self._clock() - self._read_at

    async def _look(self) -> None:
        """Read the keys, or wait for who does; nothing, if it is too early to ask the issuer again."""
        if self._reading is None and self._clock() >= self._not_before:
            self._reading = asyncio.create_task(self._read())
        if self._reading is not None:
            await asyncio.shield(self._reading)  # whoever goes away leaves it to the others

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                self._keys = await read_keys(self.issuer)
            self._read_at, self._pause = self._clock(), 0
            self._not_before = self._read_at + _BETWEEN
        except (Unreadable, TimeoutError) as error:
            self._pause = min(2 * self._pause or 1, _LONGEST_PAUSE)
            self._not_before = self._clock() + self._pause
            why = error if isinstance(error, Unreadable) else f"it took more than {self._patience:g} s"
            log.warning("the keys of the issuer %s cannot be read, next try in %d s: %s", self.issuer, self._pause, why)
        finally:
            self._reading = None


async def read_keys(issuer: str) -> tuple[PublicKey, ...]:
    """The keys that an issuer tells of."""
    address = await _discover(issuer)
    try:
        return read_key_set(await fetch(address))
    except ValueError as error:
        raise Unreadable(f"{address} cannot be used: {error}") from None


async def _discover(issuer: str) -> str:
    """Where the keys of an issuer are, by the first of its documents that tells it."""
    faults: list[str] = []
    for address in documents(issuer):
        try:
            return _key_address(issuer, address, await fetch(address))
        except Unreadable as error:
            faults.append(str(error))
    raise Unreadable("; ".join(faults))


def documents(issuer: str) -> tuple[str, str]:
    """Where an issuer tells of itself: by OpenID Connect Discovery after its path, by RFC 8414 before it."""
    parts = urlsplit(issuer.rstrip("/"))
    by_rfc = f"/.well-known/oauth-authorization-server{parts.path}"
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration", urlunsplit(parts._replace(path=by_rfc))


def _key_address(issuer: str, address: str, document: dict[str, Any]) -> str:
    """What a document says of where the keys are, if it is of this issuer and of no other."""
    if document.get("issuer") != issuer:
        raise Unreadable(f"{address} is of another issuer")
    found = document.get("jwks_uri")
    if not isinstance(found, str) or not is_protected(found):
        raise Unreadable(f"{address} names no https address of keys")
    return found
