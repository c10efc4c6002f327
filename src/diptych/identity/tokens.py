"""Access tokens: signed JWTs (RFC 9068, ES256), made and verified with keys that live in the store.

A token is read with suspicion: what it says of how to verify it is believed only where it names one of our own keys,
and the algorithm is that of the key. The newest key signs; older ones go on verifying what they signed.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from diptych.db.store import KeyRow, Store
from diptych.errors import Code, Refusal
from diptych.identity.signed import take_apart
from diptych.model.roles import Claims

ISSUER = "diptych"
COMMAND_LINE = "diptych-cli"
"""The client of all tokens that were made by hand."""
AUDIENCE = "diptych"
LIFETIME = 900
SKEW = 60
_ALGORITHM = "ES256"
_TYPES = ("at+jwt", "application/at+jwt")
_ELSEWHERE = ("jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "enc", "zip")
"""Header members that point to a key elsewhere, or ask for something that we do not do."""


class Tokens:
    """Makes and verifies access tokens with the keys of one store."""

    def __init__(self, keys: Iterable[KeyRow], issuer: str = ISSUER) -> None:
        self.issuer = issuer or ISSUER
        self.keys: list[ECKey] = []
        self._by_kid: dict[str | None, ECKey] = {}
        self.replace(keys)

    def replace(self, keys: Iterable[KeyRow]) -> bool:
        """Take these keys from now on. Says whether they are others than before."""
        rows = sorted(keys, key=lambda row: row.created_at)
        if [row.kid for row in rows] == [key.kid for key in self.keys]:
            return False
        found = [ECKey.import_key(json.loads(row.secret)) for row in rows]
        self.keys = found
        self._by_kid = {key.kid: key for key in found}
        return True

    def has(self, kid: str) -> bool:
        """Is there a key of this name?"""
        return kid in self._by_kid

    def make(
        self, subject: str | None, roles: Iterable[str], scopes: Iterable[str] | None, ttl: int = LIFETIME,
        more: Mapping[str, Any] | None = None,
    ) -> str:  # fmt: skip
        """A token for a subject with roles; with scopes it is narrowed to them. `more` are other claims."""
        now = time.time()
        claims: dict[str, Any] = {
            "client_id": COMMAND_LINE, **(more or {}), "iss": self.issuer, "aud": AUDIENCE, "iat": round(now, 3),
            "exp": int(now) + ttl, "jti": secrets.token_urlsafe(12), "roles": sorted(roles),
        }  # fmt: skip
        if subject is not None:
            claims["sub"] = subject
        if scopes is not None:
            claims["scope"] = " ".join(sorted(scopes))
        key = self.keys[-1]
        return jwt.encode({"alg": _ALGORITHM, "typ": "at+jwt", "kid": key.kid}, claims, key)

    def verify(self, token: str) -> Claims:
        """The claims of a token that is signed by us and holds now; else a Refusal that tells nothing more."""
        try:
            key = self._by_kid[kid_of(token)]
            claims = jwt.decode(token, key, algorithms=[_ALGORITHM]).claims
            if claims["iss"] != self.issuer:
                raise ValueError
            return _read(claims)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            raise Refusal(Code.UNAUTHENTICATED, "The token is not valid.") from None

    def public(self) -> dict[str, Any]:
        """The keys by which others can verify, as a JWK set (RFC 7517)."""
        told = {"alg": _ALGORITHM, "use": "sig"}
        return {"keys": [{**key.as_dict(private=False), **told} for key in reversed(self.keys)]}


def kid_of(token: str) -> str:
    """The name of the key by which a token says it is signed; ValueError if its header asks for anything odd."""
    header = take_apart(token).header
    kind, kid = header.get("typ"), header.get("kid")
    odd = any(name in header for name in _ELSEWHERE)
    if odd or header.get("alg") != _ALGORITHM or not isinstance(kid, str):
        raise ValueError
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise ValueError
    return kid


def issuer_of(token: str) -> str | None:
    """Who says that they made the token; nothing of it is proven yet."""
    try:
        found = take_apart(token).claims.get("iss")
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _read(claims: Mapping[str, Any]) -> Claims:
    """What a token of a proven signature says; ValueError or KeyError unless it is for us and holds now.

    A token that is for nobody of the model has its client or its account as `sub`, since it must have one (RFC 9068).
    """
    now = time.time()
    told = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    begins = claims.get("nbf", 0)
    subject, roles, scope = claims.get("sub"), claims.get("roles", []), claims.get("scope")
    sound = (
        AUDIENCE in told
        and type(claims["exp"]) is int
        and now < claims["exp"]
        and is_number(begins)
        and begins <= now + SKEW
        and (subject is None or isinstance(subject, str))
        and isinstance(roles, list)
        and all(isinstance(role, str) for role in roles)
        and (scope is None or isinstance(scope, str))
    )
    if not sound:
        raise ValueError
    scopes = None if scope is None else frozenset(scope.split())
    if subject in (claims.get("client_id"), claims.get("account")):
        subject = None
    return Claims(subject, frozenset(roles), scopes, claims["exp"], MappingProxyType(dict(claims)))


def is_number(value: object) -> bool:
    """Is it a moment that we can compare with?"""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


async def load_tokens(store: Store, issuer: str = ISSUER) -> Tokens:
    """The tokens of a store; its first key is made at first start (by whichever process is first)."""
    rows = await store.keys("token")
    if not rows:
        await store.add_key(new_signing_key("1"))
        rows = await store.keys("token")
    return Tokens(rows, issuer)


def new_signing_key(kid: str) -> KeyRow:
    """A key that signs tokens."""
    key = ECKey.generate_key("P-256", {"use": "sig", "alg": _ALGORITHM, "kid": kid})
    return new_key(kid, "token", json.dumps(key.as_dict(private=True)))


async def load_secret(store: Store) -> bytes:
    """The secret that signs cursors; made at first start."""
    rows = await store.keys("cursor")
    if not rows:
        await store.add_key(new_key("cursor", "cursor", secrets.token_hex(32)))
        rows = await store.keys("cursor")
    return bytes.fromhex(rows[0].secret)


def new_key(kid: str, kind: str, secret: str) -> KeyRow:
    """A key made now."""
    return KeyRow(kid, kind, secret, datetime.now(UTC).isoformat(timespec="microseconds"))
