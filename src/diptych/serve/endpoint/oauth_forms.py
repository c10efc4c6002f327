"""Forms and cookies of the pages of the authorization server.

A browser has a cookie that is limited to these pages. Every form carries a CSRF token that is bound to it.
"""

from __future__ import annotations

import hashlib
import hmac

from diptych.api.reply import Header, Reply
from diptych.errors import Refusal
from diptych.identity.issuer import origin_of, path_of
from diptych.identity.oauth.authlib_adapter import Malformed, read_form
from diptych.identity.oauth.server import Pairs
from diptych.serve.http.request import Request

_MOST = 65_536
_FORM = "application/x-www-form-urlencoded"
KNOWN = "-known"
"""The suffix of the cookie that identifies a known device, signed in or not."""


class BrowserForms:
    """Makes cookies and CSRF tokens, and verifies that a form comes from a page of ours."""

    def __init__(self, base_url: str, secret: bytes) -> None:
        self._base_url = base_url
        self._secret = hmac.digest(secret, b"forms", "sha256")
        self._name = "__Secure-diptych" if base_url.lower().startswith("https:") else "diptych"

    def cookie(self, request: Request, kind: str = "") -> str:
        """The value of the cookie; "" if it is absent, repeated or too long."""
        sent = request.headers.get(b"cookie", b"").decode("latin-1").split(";")
        pairs = (pair.strip().partition("=") for pair in sent)
        values = [value for key, _, value in pairs if key == self._name + kind]
        return values[0] if len(values) == 1 and len(values[0]) < 200 else ""

    def set_cookie(self, value: str, seconds: int, kind: str = "") -> Header:
        secure = "; Secure" if self._name.startswith("__Secure-") else ""
        path = f"; Path={path_of(self._base_url)}/oauth" if self._base_url else ""  # else, where the page is
        cookie = f"{self._name}{kind}={value}{path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"
        return (b"set-cookie", cookie.encode())

    def token(self, cookie: str) -> str:
        """The CSRF token of a form."""
        return hmac.new(self._secret, cookie.encode(), hashlib.sha256).hexdigest()

    def is_own(self, request: Request, form: dict[str, str], cookie: str, issuer: str) -> bool:
        """Does the form come from a page of ours in this browser (CSRF check)?"""
        origin = request.headers.get(b"origin")
        site = request.headers.get(b"sec-fetch-site", b"same-origin")
        foreign = (origin is not None and origin != origin_of(issuer).encode()) or site != b"same-origin"
        token = form.get("token", "")
        return bool(cookie) and not foreign and token.isascii() and hmac.compare_digest(token, self.token(cookie))


async def sent_form(request: Request) -> Pairs:
    """The parameters of a form; Malformed if it is none."""
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != _FORM.encode():
        raise Malformed(f"Send a form: {_FORM}.")
    try:
        return read_form((await request.body(_MOST)).decode("utf-8"))
    except UnicodeDecodeError:
        raise Malformed("The form is not UTF-8.") from None
    except Refusal as refusal:
        raise Malformed(refusal.message) from None


def see_other(location: str, *more: Header) -> Reply:
    """A redirect after a form."""
    head: tuple[Header, ...] = ((b"location", location.encode()), (b"cache-control", b"no-store"))
    return Reply(303, (*head, (b"referrer-policy", b"no-referrer"), *more))
