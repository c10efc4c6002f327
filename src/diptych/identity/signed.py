"""Parses a signed token (JWS, RFC 7515). Nothing of it is verified here.

header.claims.signature         each in base64url; header and claims are JSON objects
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_LONGEST = 8192


class SignedToken(Struct, frozen=True):
    """The parts of a token; `message` is what the signature covers."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    message: bytes
    signature: bytes


def parse_token(token: str) -> SignedToken:
    """Parse a token; ValueError if it has no such form."""
    parts = token.split(".")
    if len(token) > _LONGEST or len(parts) != 3 or not token.isascii():
        raise ValueError("it is too long, or has no three parts")
    header, claims, signature = map(decode_base64url, parts)
    return SignedToken(_object(header), _object(claims), token.rpartition(".")[0].encode(), signature)


def decode_base64url(text: str) -> bytes:
    """Decode base64url strictly: a value has one encoding, so a token cannot be written in two ways."""
    decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != text.encode():
        raise ValueError("it is not written in base64url")
    return decoded


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it has a part that is no JSON object")
    return value
