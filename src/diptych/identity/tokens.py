"""Access tokens: signed JWTs (RFC 9068, ES256), made and verified with keys that are in the store.

A token is not trusted about how to verify it: its `kid` must name a key of ours, and the algorithm is that of the key.
The newest key signs; older ones go on verifying what they signed.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec

from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.issuer import is_local_issuer, settled_issuer
from diptych.identity.jose import jose
from diptych.identity.records import KEYS, ServiceKey
from diptych.identity.signed import parse_token
from diptych.model.declare.roles import Claims

if TYPE_CHECKING:
    from joserfc.jwk import ECKey

ISSUER = "diptych"
"""The issuer of tokens that are made where no address is known."""
COMMAND_LINE = "diptych-cli"
"""The `client_id` of tokens that the command line makes."""
AUDIENCE = "diptych"
TOKEN_LIFETIME = 900
SKEW = 60
ALGORITHM = "ES256"
ISSUED_MS = "iat_ms"
"""The claim with the issue time in milliseconds: `iat` is in seconds, and a revocation must not end tokens that were
issued after it."""
_TYPES = ("at+jwt", "application/at+jwt")
_ELSEWHERE = ("jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "enc", "zip")
"""Header members that point to a key elsewhere, or request a feature that is not supported."""


class Tokens:
    """Makes and verifies access tokens with the keys of one store."""

    def __init__(self, keys: Iterable[ServiceKey], issuer: str = ISSUER) -> None:
        self.issuer = issuer or ISSUER
        self._rows: list[ServiceKey] = []
        self._parsed: list[ECKey] | None = None
        self.replace(keys)

    def replace(self, keys: Iterable[ServiceKey]) -> bool:
        """Use these keys from now on. Returns whether they differ from those before."""
        rows = sorted(keys, key=lambda row: row.created_at)
        if [row.kid for row in rows] == [row.kid for row in self._rows]:
            return False
        self._rows, self._parsed = rows, None
        return True

    @property
    def keys(self) -> list[ECKey]:
        """All keys, the newest last; parsed on first use."""
        if self._parsed is None:
            self._parsed = [jose("jwk").ECKey.import_key(json.loads(row.secret)) for row in self._rows]
        return self._parsed

    def _find(self, kid: str) -> ECKey:
        """The key with this id; KeyError if there is none."""
        return {key.kid: key for key in self.keys}[kid]

    def has(self, kid: str) -> bool:
        """Is there a key with this id?"""
        return any(row.kid == kid for row in self._rows)

    def make(
        self,
        subject: str | None,
        roles: Iterable[str],
        scopes: Iterable[str] | None,
        ttl: int = TOKEN_LIFETIME,
        more: Mapping[str, Any] | None = None,
        issuer: str = "",
    ) -> str:
        """Sign a token for a subject with roles; scopes narrow it. `more` are other claims. A service without an
        address names the one by which it was asked as its `issuer`."""
        now = time.time()
        issuer = issuer or self.issuer
        claims: dict[str, Any] = {
            "client_id": COMMAND_LINE,
            **(more or {}),
            "iss": issuer,
            "aud": AUDIENCE if issuer == ISSUER else [issuer, AUDIENCE],
            "iat": int(now),
            ISSUED_MS: int(now * 1000),
            "exp": int(now) + ttl,
            "jti": secrets.token_urlsafe(12),
            "roles": sorted(roles),
        }
        if subject is not None:
            claims["sub"] = subject
        if scopes is not None:
            claims["scope"] = " ".join(sorted(scopes))
        return self.sign(claims, "at+jwt")

    def sign(self, claims: Mapping[str, Any], kind: str) -> str:
        """Sign claims as a token of a type, with the newest key."""
        key = self.keys[-1]
        token: str = jose("jwt").encode({"alg": ALGORITHM, "typ": kind, "kid": key.kid}, dict(claims), key)
        return token

    def verify(self, token: str) -> Claims:
        """Verify a token of ours and return its claims; a Refusal without details otherwise."""
        try:
            key = self._find(kid_of(token))
            claims = jose("jwt").decode(token, key, algorithms=[ALGORITHM]).claims
            if not self.is_ours(claims["iss"]):
                raise ValueError
            return _read(claims)
        except (jose("errors").JoseError, ValueError, TypeError, KeyError, RecursionError):
            raise Refusal(Code.UNAUTHENTICATED, "The token is not valid.") from None

    def verify_id_token(self, token: str) -> Mapping[str, Any]:
        """The claims of an ID token of ours, expired or not; a Refusal if it is not ours."""
        try:
            key = self._find(kid_of(token, ("jwt",)))
            claims: Mapping[str, Any] = jose("jwt").decode(token, key, algorithms=[ALGORITHM]).claims
            if not self.is_ours(claims["iss"]):
                raise ValueError
            return claims
        except (jose("errors").JoseError, ValueError, TypeError, KeyError, RecursionError):
            raise Refusal(Code.UNAUTHENTICATED, "The ID token is not valid.") from None

    def is_ours(self, issuer: object) -> bool:
        """Is it the issuer of this service, or one of its loopback addresses if it has no other?"""
        return issuer == self.issuer or (self.issuer == ISSUER and is_local_issuer(issuer))

    @property
    def address(self) -> str:
        """The public address of the service, which is its issuer; "" if it is not known."""
        return "" if self.issuer == ISSUER else self.issuer

    def public(self) -> dict[str, Any]:
        """The public keys, as a JWK set (RFC 7517)."""
        usage = {"alg": ALGORITHM, "use": "sig"}
        return {"keys": [{**key.as_dict(private=False), **usage} for key in reversed(self.keys)]}


def kid_of(token: str, types: Collection[str] = _TYPES) -> str:
    """The `kid` in the header of a token of a type; ValueError if the header has anything unusual."""
    header = parse_token(token).header
    kind, kid = header.get("typ"), header.get("kid")
    odd = any(name in header for name in _ELSEWHERE)
    if odd or header.get("alg") != ALGORITHM or not isinstance(kid, str):
        raise ValueError
    if not isinstance(kind, str) or kind.lower() not in types:
        raise ValueError
    return kid


def claimed_issuer(token: str) -> str | None:
    """The issuer that a token claims; nothing of it is verified yet."""
    try:
        issuer = parse_token(token).claims.get("iss")
    except ValueError:
        return None
    return issuer if isinstance(issuer, str) else None


def _read(claims: Mapping[str, Any]) -> Claims:
    """The claims of a token whose signature is verified; ValueError or KeyError unless it is for us and valid now.

    A token without a user of the model has its client or its account as `sub`, since it must have one (RFC 9068).
    """
    now = time.time()
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    begins = claims.get("nbf", 0)
    subject, roles, scope = claims.get("sub"), claims.get("roles", []), claims.get("scope")
    sound = (
        AUDIENCE in audiences
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


def is_token_of_ours(claims: Claims) -> bool:
    """Are they of a token or an API key of ours? Those of another issuer have no `jti` (`issuers/trusted.py`)."""
    return claims.get("jti") is not None


def client_of(claims: Claims) -> str | None:
    """The OAuth client that got a token. One of another issuer, where its id is chosen, is named after that issuer."""
    client = claims.get("client_id")
    if not isinstance(client, str):
        return None
    return client if is_token_of_ours(claims) else f"{claims.get('iss')} {client}"


def is_number(value: object) -> bool:
    """Is it a number that can be compared with a clock?"""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


async def load_tokens(store: Store, base_url: str = "") -> Tokens:
    """The token signer of a store; its first key is made at first start, by whichever process is first. A `base_url` is
    remembered as the issuer; without one, the remembered issuer signs."""
    issuer = await settled_issuer(store, base_url)
    if not await token_keys(store):
        await store.write(lambda: KEYS.add(store.dialect, new_signing_key("1")))
    return Tokens(await token_keys(store), issuer)


async def token_keys(store: Store) -> list[ServiceKey]:
    """All keys that sign tokens, with their secrets, the newest last."""
    return await KEYS.all(store, "created_at", kind="token")


def new_signing_key(kid: str) -> ServiceKey:
    """A new key pair for signing tokens."""
    pair = ec.generate_private_key(ec.SECP256R1()).private_numbers()
    numbers = {"x": pair.public_numbers.x, "y": pair.public_numbers.y, "d": pair.private_value}
    members = {
        name: base64.urlsafe_b64encode(number.to_bytes(32)).decode().rstrip("=") for name, number in numbers.items()
    }
    jwk = {"crv": "P-256", **members, "kty": "EC", "use": "sig", "alg": ALGORITHM, "kid": kid}
    return _key(kid, "token", json.dumps(jwk))


async def load_secret(store: Store) -> bytes:
    """The secret that signs cursors; made at first start."""
    if not (keys := await KEYS.all(store, "created_at", kind="cursor")):
        await store.write(lambda: KEYS.add(store.dialect, _key("cursor", "cursor", secrets.token_hex(32))))
        keys = await KEYS.all(store, "created_at", kind="cursor")
    return bytes.fromhex(keys[0].secret)


def _key(kid: str, kind: str, secret: str) -> ServiceKey:
    return ServiceKey(kid, kind, secret, datetime.now(UTC).isoformat(timespec="microseconds"))
