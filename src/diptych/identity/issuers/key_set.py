"""The public keys of another issuer (RFC 7517), and which of them can have signed a token.

The algorithm is that of the key: its type and curve say which there can be, its `alg` which one of these it is, and a
token can only name it. No secret is a public key, so no HMAC is among them. Keys that are of another kind, for another
use, or too short are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key
from joserfc.jws import JWSRegistry

from diptych.identity.signed import Signed, decode

_RSA = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
_CURVES: Mapping[tuple[str, str], frozenset[str]] = {
    ("EC", "P-256"): frozenset(("ES256",)),
    ("EC", "P-384"): frozenset(("ES384",)),
    ("EC", "P-521"): frozenset(("ES512",)),
    ("OKP", "Ed25519"): frozenset(("EdDSA", "Ed25519")),  # the name until RFC 9864, and since
}
_MEMBERS = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y"), "OKP": ("kty", "crv", "x")}
_SHORTEST = 2048
ALGORITHMS = _RSA.union(*_CURVES.values())


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key by which an issuer signs, and the algorithms that it signs with."""

    kid: str | None
    algorithms: frozenset[str]
    key: Key

    def has_signed(self, token: Signed) -> bool:
        """Is the signature of the token by this key?"""
        algorithm = token.header["alg"]
        if algorithm not in self.algorithms:
            return False
        method = JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
        return method.verify(token.message, token.signature, self.key)


def read_key_set(document: Mapping[str, Any]) -> tuple[PublicKey, ...]:
    """The keys of a set that we can verify by; ValueError if it is no key set."""
    keys = document.get("keys")
    if not isinstance(keys, list):
        raise ValueError("it is no set of keys")
    return tuple(found for each in keys if (found := _read_key(each)) is not None)


def choose(keys: Iterable[PublicKey], algorithm: str, kid: str | None) -> PublicKey | None:
    """The one key that can have signed a token; without a `kid` there must be no other that could."""
    found = [key for key in keys if algorithm in key.algorithms and kid in (None, key.kid)]
    return found[0] if len(found) == 1 else None


def _read_key(member: Any) -> PublicKey | None:
    try:
        algorithms, kid = _algorithms(member), member.get("kid")
        if not algorithms or not isinstance(kid, str | None):
            return None
        public = {name: member[name] for name in _MEMBERS[member["kty"]]}
        return PublicKey(kid, algorithms, JWKRegistry.import_key(public))
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _algorithms(member: Mapping[str, Any]) -> frozenset[str]:
    """What a key signs with; nothing, if it does not sign."""
    kind = member["kty"]
    if member.get("use", "sig") != "sig" or "verify" not in member.get("key_ops", ("verify",)):
        return frozenset()
    if kind == "RSA" and int.from_bytes(decode(member["n"])).bit_length() < _SHORTEST:
        return frozenset()
    possible = _RSA if kind == "RSA" else _CURVES.get((kind, member["crv"]), frozenset())
    return possible & {member["alg"]} if "alg" in member else possible
