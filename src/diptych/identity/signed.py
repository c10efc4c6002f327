"""A signed token (JWS, RFC 7515), taken apart. Nothing of it is proven yet.

    header.claims.signature         each in base64url; header and claims are JSON objects
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Signed:
    """The parts of a token; `message` is what the signature is about."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    message: bytes
    signature: bytes


def take_apart(token: str) -> Signed:
    """The parts of a token; ValueError if it has no such form."""
    parts = token.split(".")
    if len(token) > _LONGEST or len(parts) != 3 or not token.isascii():
        raise ValueError("it is too long, or has no three parts")
    header, claims, signature = map(decode, parts)
    return Signed(_object(header), _object(claims), token.rpartition(".")[0].encode(), signature)


def decode(text: str) -> bytes:
    """What base64url stands for. No two texts stand for the same, so no token can be written in two ways."""
    found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(found).rstrip(b"=") != text.encode():
        raise ValueError("it is not written in base64url")
    return found


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError("it has a part that is no JSON object")
    return found
