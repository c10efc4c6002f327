"""Time-based one-time passwords (RFC 6238): six digits that change every 30 seconds, by HMAC-SHA-1.

>>> code_at(b"12345678901234567890", 59 // 30)          the first vector of the RFC, its last six digits
'287082'
"""

from __future__ import annotations

import base64
import hmac
import secrets
from urllib.parse import quote, urlencode

PERIOD = 30
_DIGITS = 6
_KEY = 20
"""Bytes of a key: those of SHA-1, as RFC 4226 recommends."""
_DRIFT = 1
"""Periods by which the clock of a phone may be wrong."""


def new_key() -> bytes:
    return secrets.token_bytes(_KEY)


def step_before(moment: int) -> int:
    """The last period whose code is not valid any more at a moment."""
    return moment // PERIOD - _DRIFT - 1


def code_at(key: bytes, step: int) -> str:
    """The code of one period."""
    digest = hmac.digest(key, step.to_bytes(8), "sha1")
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF
    return str(number % 10**_DIGITS).zfill(_DIGITS)


def matching_step(key: bytes, code: str, moment: int, used: int) -> int | None:
    """The period of a code that is valid now, and later than the one whose code was `used` last; None if there is
    none."""
    now, found = moment // PERIOD, None
    for step in range(now - _DRIFT, now + _DRIFT + 1):
        if hmac.compare_digest(code_at(key, step).encode(), code.encode("utf-8", "replace")) and step > used:
            found = step
    return found


def as_text(key: bytes) -> str:
    """The key as people type it: base32, without padding."""
    return base64.b32encode(key).decode().rstrip("=")


def otpauth(key: bytes, email: str, service: str) -> str:
    """The address that authenticator apps read from a QR code."""
    service = service.replace(":", " ")
    query = urlencode({"secret": as_text(key), "issuer": service}, quote_via=quote)
    return f"otpauth://totp/{quote(f'{service}:{email}')}?{query}"
