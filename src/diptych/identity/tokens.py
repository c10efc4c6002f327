"""Access tokens: signed JWTs (RFC 9068, ES256), made and verified with a key that lives in the store."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from diptych.db.store import KeyRow, Store
from diptych.errors import Code, Refusal

ISSUER = "diptych"
AUDIENCE = "diptych"
LIFETIME = 900
_SKEW = 60
_LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Claims:
    """What a valid token says of whoever holds it."""

    subject: str | None
    roles: frozenset[str]
    scopes: frozenset[str] | None
    expires: int


class Tokens:
    """Makes and verifies access tokens with the keys of one store."""

    def __init__(self, keys: Iterable[KeyRow], issuer: str = ISSUER) -> None:
        self.keys = [ECKey.import_key(json.loads(row.secret)) for row in sorted(keys, key=lambda row: row.created_at)]
        self.issuer = issuer or ISSUER
        self._set = KeySet(list(self.keys))

    def make(self, subject: str | None, roles: Iterable[str], scopes: Iterable[str] | None, ttl: int = LIFETIME) -> str:
        """A token for a subject with roles; with scopes it is narrowed to them."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer, "aud": AUDIENCE, "iat": now, "exp": now + ttl, "jti": secrets.token_urlsafe(12),
            "client_id": "diptych-cli", "roles": sorted(roles),
        }  # fmt: skip
        if subject is not None:
            claims["sub"] = subject
        if scopes is not None:
            claims["scope"] = " ".join(sorted(scopes))
        key = self.keys[-1]
        return jwt.encode({"alg": "ES256", "typ": "at+jwt", "kid": key.kid}, claims, key)

    def verify(self, token: str) -> Claims:
        """The claims of a token that is signed by us and holds now; else a Refusal that tells nothing more."""
        try:
            if len(token) > _LONGEST:
                raise ValueError
            found = jwt.decode(token, self._set, algorithms=["ES256"])
            return self._read(found.header, found.claims)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            raise Refusal(Code.UNAUTHENTICATED, "The token is not valid.") from None

    def _read(self, header: dict[str, Any], claims: dict[str, Any]) -> Claims:
        now = time.time()
        audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        expires, begins = claims["exp"], claims.get("nbf", 0)
        subject, roles, scope = claims.get("sub"), claims.get("roles", []), claims.get("scope")
        sound = (
            header.get("typ") in ("at+jwt", "application/at+jwt")
            and claims["iss"] == self.issuer
            and AUDIENCE in audience
            and type(expires) is int
            and now < expires
            and type(begins) in (int, float)
            and begins <= now + _SKEW
            and (subject is None or isinstance(subject, str))
            and isinstance(roles, list)
            and all(isinstance(role, str) for role in roles)
            and (scope is None or isinstance(scope, str))
        )
        if not sound:
            raise ValueError
        return Claims(subject, frozenset(roles), None if scope is None else frozenset(scope.split()), expires)


async def load_tokens(store: Store, issuer: str = ISSUER) -> Tokens:
    """The tokens of a store; its first key is made at first start (by whichever process is first)."""
    rows = await store.keys("token")
    if not rows:
        key = ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256", "kid": "1"})
        await store.add_key(new_key("1", "token", json.dumps(key.as_dict(private=True))))
        rows = await store.keys("token")
    return Tokens(rows, issuer)


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
