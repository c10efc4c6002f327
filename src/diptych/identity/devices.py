"""Device cookies (OWASP): they mark browsers in which an account has signed in before.

    nonce.until.signature-nonce.until.signature             a mark for each account, the newest first

A mark grants nothing. It shows that its holder knew the password once, so that its failed attempts are counted apart
from those of strangers (`throttle.py`). It is signed and bound to one account; the service stores nothing for it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from diptych.identity.checks import normalised_email
from diptych.identity.records import unix_time

LASTS = 180 * 86_400
_MOST = 3
"""Accounts that one browser has marks for."""


class Devices:
    """Makes and verifies device cookies."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"devices", "sha256")

    def name(self, cookie: str, email: str) -> str:
        """The nonce of the mark that this cookie has for an account; "" if it has none that is valid."""
        for mark in cookie.split("-")[:_MOST]:
            nonce, _, rest = mark.partition(".")
            until, _, signature = rest.partition(".")
            signed = signature.isascii() and hmac.compare_digest(signature, self._sign(email, nonce, until))
            if signed and int(until, 16) > unix_time():
                return nonce
        return ""

    def renewed(self, cookie: str, email: str) -> str:
        """The cookie with a new mark for an account that has just signed in."""
        known = self.name(cookie, email)
        nonce, until = known or secrets.token_hex(8), f"{unix_time() + LASTS:x}"
        others = [mark for mark in cookie.split("-") if mark and not (known and mark.startswith(f"{known}."))]
        return "-".join([f"{nonce}.{until}.{self._sign(email, nonce, until)}", *others][:_MOST])

    def _sign(self, email: str, nonce: str, until: str) -> str:
        text = f"{normalised_email(email)}\n{nonce}\n{until}".encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:32]
