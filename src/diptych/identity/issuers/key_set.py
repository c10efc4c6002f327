"""The JWK set of another issuer (RFC 7517), and which key can have signed a token.

The algorithm is that of the key: its type and curve say which are possible, its `alg` says which one, and a token can
only name it. Symmetric keys are never accepted, so HMAC is not either. Keys of another kind, for another use, or too
short are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from diptych.identity.jose import jose
from diptych.identity.signed import SignedToken, decode_base64url

if TYPE_CHECKING:
    from joserfc.jwk import Key

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


class PublicKey(Struct, frozen=True):
    """A public key of an issuer, and the algorithms that it signs with."""

    kid: str | None
    algorithms: frozenset[str]
    key: Key

    def has_signed(self, token: SignedToken) -> bool:
        """Was the token signed with this key?"""
        algorithm = token.header["alg"]
        if algorithm not in self.algorithms:
            return False
        method = jose("jws").JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
        return bool(method.verify(token.message, token.signature, self.key))


def read_key_set(document: Mapping[str, Any]) -> tuple[PublicKey, ...]:
    """The usable keys of a JWK set; ValueError if the document is none."""
    keys = document.get("keys")
    if not isinstance(keys, list):
        raise ValueError("it is no set of keys")
    return tuple(key for member in keys if (key := _read_key(member)) is not None)


def signing_key(keys: Iterable[PublicKey], algorithm: str, kid: str | None) -> PublicKey | None:
    """The one key that can have signed a token; without a `kid` it must be the only candidate."""
    candidates = [key for key in keys if algorithm in key.algorithms and kid in (None, key.kid)]
    return candidates[0] if len(candidates) == 1 else None


def _read_key(member: Any) -> PublicKey | None:
    try:
        algorithms, kid = _algorithms(member), member.get("kid")
        if not algorithms or not isinstance(kid, str | None):
            return None
        public = {name: member[name] for name in _MEMBERS[member["kty"]]}
        return PublicKey(kid, algorithms, jose("jwk").JWKRegistry.import_key(public))
    except (jose("errors").JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _algorithms(member: Mapping[str, Any]) -> frozenset[str]:
    """The algorithms of a key; none if it is not for signatures."""
    kind = member["kty"]
    if member.get("use", "sig") != "sig" or "verify" not in member.get("key_ops", ("verify",)):
        return frozenset()
    if kind == "RSA" and int.from_bytes(decode_base64url(member["n"])).bit_length() < _SHORTEST:
        return frozenset()
    possible = _RSA if kind == "RSA" else _CURVES.get((kind, member["crv"]), frozenset())
    return possible & {member["alg"]} if "alg" in member else possible
