"""Other issuers, whose tokens hold here too: docs/issuers.md says what such a token must be.

A token is read with suspicion, in the order of what it costs: its form and what it claims, the key that it names, its
signature. What it claims is then told in our own words: their names of roles become ours, one of their claims becomes
`viewer.id`, their scopes narrow. It holds until it expires, and is looked at anew every 15 minutes: no one here can
revoke it, but the issuer can take its key away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from diptych.config import Issuer
from diptych.errors import StartError
from diptych.identity.issuers.key_set import ALGORITHMS
from diptych.identity.issuers.keys import PATIENCE, IssuerKeys
from diptych.identity.signed import Signed, take_apart
from diptych.identity.tokens import LIFETIME, SKEW, is_number
from diptych.model.roles import Claims

log = logging.getLogger("diptych")
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
_ELSEWHERE = ("crit", "b64", "jku", "jwk", "x5u", "x5c", "enc", "zip")
"""Header members that bring a key or say where it is, or ask for something that we do not do."""
_OTHER_KINDS = ("nonce", "at_hash", "c_hash", "events", "cnf")
"""Claims of ID tokens, of logout tokens, and of tokens that only the holder of a key may use."""
_OURS = ("jti", "grant", "account")
"""Claims by which tokens of our own are revoked; theirs mean something else, and stand under another name."""


class Issuers:
    """The issuers that the settings name; `roles` are those of the model."""

    def __init__(
        self, settings: Iterable[Issuer] = (), roles: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE,
    ) -> None:  # fmt: skip
        self._roles = frozenset(roles)
        self._known = {each.issuer: each for each in settings}
        self._keys = {issuer: IssuerKeys(issuer, clock, patience) for issuer in self._known}
        for each in self._known.values():
            unknown = sorted(set((each.role_map or {}).values()) - self._roles)
            if unknown:
                there = ", ".join(sorted(self._roles)) or "none"
                raise StartError(f"The role_map of the issuer {each.issuer} leads to {unknown[0]}, which is no role"
                                 f" of the model; there are {there}.")  # fmt: skip

    def knows(self, issuer: str | None) -> bool:
        """Is it one of them?"""
        return issuer in self._known

    async def verify(self, token: str) -> Claims | None:
        """What a token of one of them says; None if it does not hold."""
        try:
            signed = take_apart(token)
            settings = self._known[signed.claims["iss"]]
            _check_header(signed.header)
            claims = self._read(signed.claims, settings)
            await self._prove(signed, settings.issuer)
            return claims
        except (ValueError, TypeError, KeyError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            log.info("a token of another issuer is refused: %s", why)
            return None

    async def _prove(self, signed: Signed, issuer: str) -> None:
        key = await self._keys[issuer].find(signed.header["alg"], signed.header.get("kid"))
        if key is None:
            raise ValueError("the issuer has no key that can have signed it")
        if not key.has_signed(signed):
            raise ValueError("its signature is wrong")

    def _read(self, claims: Mapping[str, Any], settings: Issuer) -> Claims:
        """What a token says, in our words; ValueError unless it is for us, gives access, and holds now."""
        told = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if settings.audience not in told:
            raise ValueError("it is for another audience")
        if any(name in claims for name in _OTHER_KINDS):
            raise ValueError("it is no access token, or one that needs more than to be shown")
        expires = min(_end(claims), int(time.time()) + LIFETIME)
        named = {f"their_{name}" if name in _OURS else name: value for name, value in claims.items()}
        roles, scopes = self._roles_of(claims, settings), _scopes(claims)
        return Claims(_subject(claims, settings), roles, scopes, expires, MappingProxyType(named))

    def _roles_of(self, claims: Mapping[str, Any], settings: Issuer) -> frozenset[str]:
        found = None if settings.roles_claim is None else _claim(claims, settings.roles_claim)
        names = [name for name in (found if isinstance(found, list) else [found]) if isinstance(name, str)]
        if settings.role_map is None:
            return self._roles.intersection(names)
        return frozenset(settings.role_map[name] for name in names if name in settings.role_map)


def _check_header(header: Mapping[str, Any]) -> None:
    kind, kid = header.get("typ", "jwt"), header.get("kid", "")
    if any(name in header for name in _ELSEWHERE):
        raise ValueError("its header asks for more than to be verified")
    if not isinstance(kind, str) or kind.lower() not in _TYPES or not isinstance(kid, str):
        raise ValueError("it is a token of another type")
    if not isinstance(header["alg"], str) or header["alg"] not in ALGORITHMS:
        raise ValueError("its algorithm is not one that we take")


def _end(claims: Mapping[str, Any]) -> int:
    """When a token ends; ValueError unless it has begun and not ended, by clocks that may differ a little."""
    now, ends = time.time(), claims["exp"]
    begins = [claims[name] for name in ("nbf", "iat") if name in claims]
    if not all(is_number(moment) for moment in (ends, *begins)):
        raise ValueError("it has a moment that is no number")
    if ends + SKEW <= now or any(moment > now + SKEW for moment in begins):
        raise ValueError("it has expired, or has not begun")
    return int(ends) + SKEW


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path through objects: `realm_access.roles`. Names may have dots of their own."""
    if name in claims:
        return claims[name]
    first, dot, rest = name.partition(".")
    inner = claims.get(first)
    return _claim(inner, rest) if dot and isinstance(inner, dict) else None


def _subject(claims: Mapping[str, Any], settings: Issuer) -> str | None:
    found = _claim(claims, settings.subject_claim)
    if type(found) is int:
        return str(found)
    if found is not None and (not isinstance(found, str) or not found or not found.isprintable()):
        raise ValueError("its subject is no text")
    return found


def _scopes(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """What a token is narrowed to; None only where it tells of no scope at all."""
    found = [claims[name] for name in ("scope", "scp") if name in claims]
    if not found:
        return None
    words = found[0].split() if isinstance(found[0], str) else found[0]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("its scope is no text")
    return frozenset(words)
