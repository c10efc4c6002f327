"""Verifies tokens of other issuers that the settings trust; docs/reference/issuers.md says what such a token must be.

Checks run in the order of their cost: form and claims, the key that is named, the signature. Then claims are mapped:
role names become roles of the model, one claim becomes `viewer.id`, scopes narrow. A token is cached for at most 15
minutes and then verified again: it cannot be revoked here, but the issuer can withdraw its key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from diptych.errors import StartError
from diptych.identity.issuers.key_set import ALGORITHMS
from diptych.identity.issuers.keys import PATIENCE, IssuerKeys
from diptych.identity.signed import SignedToken, parse_token
from diptych.identity.tokens import SKEW, TOKEN_LIFETIME, is_number
from diptych.model.declare.roles import Claims
from diptych.setting_parsers import Issuer

log = logging.getLogger("diptych")
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
_ELSEWHERE = ("crit", "b64", "jku", "jwk", "x5u", "x5c", "enc", "zip")
"""Header members that carry or point to a key, or request a feature that is not supported."""
_OTHER_KINDS = ("nonce", "at_hash", "c_hash", "events", "cnf")
"""Claims of ID tokens, logout tokens, and tokens bound to a key of the holder."""
_OURS = ("jti", "grant", "account")
"""Claims by which our own tokens are revoked; those of other issuers get the prefix `their_`."""


class Issuers:
    """The trusted issuers of the settings; `roles` are those of the model."""

    def __init__(
        self,
        settings: Iterable[Issuer] = (),
        roles: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._roles = frozenset(roles)
        self._known = {setting.issuer: setting for setting in settings}
        self._keys = {issuer: IssuerKeys(issuer, clock, patience) for issuer in self._known}
        for setting in self._known.values():
            unknown = sorted(set((setting.role_map or {}).values()) - self._roles)
            if unknown:
                there = ", ".join(sorted(self._roles)) or "none"
                raise StartError(
                    f"The role_map of the issuer {setting.issuer} maps to {unknown[0]}, which is no role"
                    f" of the model; there are {there}."
                )

    @property
    def names(self) -> list[str]:
        return list(self._known)

    def knows(self, issuer: str | None) -> bool:
        """Is this a trusted issuer?"""
        return issuer in self._known

    async def verify(self, token: str) -> Claims | None:
        """Verify a token of a trusted issuer and return its claims; None if it is not valid."""
        try:
            signed = parse_token(token)
            settings = self._known[signed.claims["iss"]]
            _check_header(signed.header)
            claims = self._read(signed.claims, settings)
            await self._prove(signed, settings.issuer)
            return claims
        except (ValueError, TypeError, KeyError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            log.info("a token of another issuer is refused: %s", why)
            return None

    async def _prove(self, signed: SignedToken, issuer: str) -> None:
        key = await self._keys[issuer].find(signed.header["alg"], signed.header.get("kid"))
        if key is None:
            raise ValueError("the issuer has no key that can have signed it")
        if not key.has_signed(signed):
            raise ValueError("its signature is wrong")

    def _read(self, claims: Mapping[str, Any], settings: Issuer) -> Claims:
        """Map the claims of a token; ValueError unless it is an access token for us that is valid now."""
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if settings.audience not in audiences:
            raise ValueError("it is for another audience")
        if any(claim_of(claims, name) != value for name, value in (settings.required or {}).items()):
            raise ValueError("a claim that is required has another value")
        if any(name in claims for name in _OTHER_KINDS):
            raise ValueError("it is no access token, or one that needs more than to be shown")
        expires = min(_end(claims), int(time.time()) + TOKEN_LIFETIME)
        named = {f"their_{name}" if name in _OURS else name: value for name, value in claims.items()}
        roles, scopes = self._roles_of(claims, settings), _scopes(claims)
        return Claims(_subject(claims, settings), roles, scopes, expires, MappingProxyType(named))

    def _roles_of(self, claims: Mapping[str, Any], settings: Issuer) -> frozenset[str]:
        claim = None if settings.roles_claim is None else claim_of(claims, settings.roles_claim)
        names = [name for name in (claim if isinstance(claim, list) else [claim]) if isinstance(name, str)]
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
    """The expiry of a token with clock skew; ValueError unless it is valid now."""
    now, ends = time.time(), claims["exp"]
    begins = [claims[name] for name in ("nbf", "iat") if name in claims]
    if not all(is_number(moment) for moment in (ends, *begins)):
        raise ValueError("it has a moment that is no number")
    if ends + SKEW <= now or any(moment > now + SKEW for moment in begins):
        raise ValueError("it has expired, or has not begun")
    return int(ends) + SKEW


def claim_of(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path through objects: `realm_access.roles`. Names may have dots of their own."""
    if name in claims:
        return claims[name]
    first, dot, rest = name.partition(".")
    inner = claims.get(first)
    return claim_of(inner, rest) if dot and isinstance(inner, dict) else None


def _subject(claims: Mapping[str, Any], settings: Issuer) -> str | None:
    subject = claim_of(claims, settings.subject_claim)
    if type(subject) is int:
        return str(subject)
    if subject is not None and (not isinstance(subject, str) or not subject or not subject.isprintable()):
        raise ValueError("its subject is no text")
    return subject


def _scopes(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """The scopes of a token; None only if it has no scope claim."""
    values = [claims[name] for name in ("scope", "scp") if name in claims]
    if not values:
        return None
    words = values[0].split() if isinstance(values[0], str) else values[0]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("its scope is no text")
    return frozenset(words)
