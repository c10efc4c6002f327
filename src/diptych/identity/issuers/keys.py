"""A cache of the public keys of one other issuer.

They are fetched by discovery when a token first needs them, and again when they are stale or when a token names a key
that is not among them. Concurrent requests wait for the one fetch that is under way.

    fresh for 10 minutes → fetched again; if the issuer is down, the old ones go on verifying for 24 hours
    a key that is unknown → fetched again, once in 10 seconds
    the issuer is down    → not asked for 1 s, 2 s, 4 s … 5 minutes; what needs it then is refused at once, and what
                            has an old key does not wait for it
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from diptych.identity.issuers.fetch import Unreadable, fetch
from diptych.identity.issuers.key_set import PublicKey, read_key_set, signing_key
from diptych.setting_parsers import is_protected

log = logging.getLogger("diptych")
FRESH = 600
KEPT = 86_400
_BETWEEN = 10
"""Seconds between two fetches, however many tokens name unknown keys."""
_LONGEST_PAUSE = 300
PATIENCE = 5.0
"""Timeout of one fetch in seconds, with discovery."""


class IssuerKeys:
    """Finds the key that can have signed a token of one issuer."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE) -> None:
        self.issuer = issuer
        self._clock = clock
        self._timeout = patience
        self._keys: tuple[PublicKey, ...] = ()
        self._read_at = -math.inf
        self._not_before = -math.inf
        self._pause = 0
        self._reading: asyncio.Task[None] | None = None

    async def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """The key with this id and algorithm, fetched if need be; None if there is none."""
        key = signing_key(self._keys, algorithm, kid)
        if key is None or self._age() >= FRESH:
            is_usable = key is not None and self._age() < KEPT
            await self._refresh(waits=not is_usable or not self._pause)
            key = signing_key(self._keys, algorithm, kid)
        return key if self._age() < KEPT else None

    def _age(self) -> float:
        return self._clock() - self._read_at

    async def _refresh(self, *, waits: bool) -> None:
        """Fetch the keys, or wait for the fetch under way; nothing while backing off. While the issuer is down, nobody
        waits who has a key."""
        if self._reading is None and self._clock() >= self._not_before:
            self._reading = asyncio.create_task(self._read())
        if self._reading is not None and waits:
            await asyncio.shield(self._reading)  # a caller that is cancelled leaves the fetch to the others

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                self._keys = await read_keys(self.issuer)
            self._read_at, self._pause = self._clock(), 0
            self._not_before = self._read_at + _BETWEEN
        except (Unreadable, TimeoutError) as error:
            self._pause = min(2 * self._pause or 1, _LONGEST_PAUSE)
            self._not_before = self._clock() + self._pause
            why = error if isinstance(error, Unreadable) else f"it took more than {self._timeout:g} s"
            log.warning(
                "the keys of the issuer %s cannot be fetched, next attempt in %d s: %s", self.issuer, self._pause, why
            )
        finally:
            self._reading = None


async def read_keys(issuer: str) -> tuple[PublicKey, ...]:
    """The published keys of an issuer."""
    address = await _discover(issuer)
    try:
        return read_key_set(await fetch(address))
    except ValueError as error:
        raise Unreadable(f"{address} cannot be used: {error}") from None


async def _discover(issuer: str) -> str:
    """The address of the JWK set, by the first discovery document that has it."""
    faults: list[str] = []
    for address in discovery_addresses(issuer):
        try:
            return _key_address(issuer, address, await fetch(address))
        except Unreadable as error:
            faults.append(str(error))
    raise Unreadable("; ".join(faults))


def discovery_addresses(issuer: str) -> tuple[str, str]:
    """The addresses of discovery documents: OpenID Connect Discovery after the path, RFC 8414 before it."""
    parts = urlsplit(issuer.rstrip("/"))
    by_rfc = f"/.well-known/oauth-authorization-server{parts.path}"
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration", urlunsplit(parts._replace(path=by_rfc))


def _key_address(issuer: str, address: str, document: dict[str, Any]) -> str:
    """The `jwks_uri` of a discovery document, if that is of this issuer."""
    if document.get("issuer") != issuer:
        raise Unreadable(f"{address} is of another issuer")
    jwks_uri = document.get("jwks_uri")
    if not isinstance(jwks_uri, str) or not is_protected(jwks_uri):
        raise Unreadable(f"{address} names no https address of keys")
    return jwks_uri
