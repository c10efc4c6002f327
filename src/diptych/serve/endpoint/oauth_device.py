"""The pages of the device flow (RFC 8628): a user signs in, types the code of a device, looks at it, and decides.

The code is always typed: a link that carries one shows the same empty page, so that nobody can be led to allow the
device of someone else by a click. Wrong codes are throttled. The page that confirms a code seals it for the browser,
so that deciding is no further guess.
"""

from __future__ import annotations

import hashlib
import hmac

from diptych.api.reply import Header, Reply
from diptych.identity.login_sessions import SignedIn
from diptych.identity.oauth.device_codes import DeviceCodes
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.records import DeviceCode
from diptych.identity.throttle import Throttled
from diptych.serve.endpoint.oauth_device_pages import decided, device_consent_page, type_code
from diptych.serve.endpoint.oauth_forms import BrowserForms
from diptych.serve.endpoint.oauth_pages import failure, page_reply
from diptych.serve.http.request import Request

DEVICE = "device"
"""What the form of the sign-in page has in place of an authorization request."""
_GONE = "This code is not right, or it has expired. Look at your device again."
_WAIT = "Too many codes. Wait a little before you try again."


class DevicePages:
    """The pages on which users allow devices."""

    def __init__(self, grant_store: GrantStore, forms: BrowserForms, secret: bytes) -> None:
        self._grant_store = grant_store
        self._codes = DeviceCodes(grant_store.store)
        self._forms = forms
        self._secret = hmac.digest(secret, b"device codes", "sha256")

    def ask(self, signed_in: SignedIn, cookie: str, wrong: str = "", *more: Header, status: int = 200) -> Reply:
        """The page for typing a code."""
        return page_reply(status, type_code(signed_in.account.email, self._hidden(cookie), wrong), more=more)

    async def sent(self, request: Request, form: dict[str, str], signed_in: SignedIn, cookie: str) -> Reply:
        """Answer a form of these pages: a code, or a decision about one."""
        if "decision" in form:
            return await self._decide(form, signed_in, cookie)
        address = request.peer[0] if request.peer else ""
        code = await self._codes.find(form.get("user_code", ""), signed_in, address)
        if isinstance(code, Throttled):
            wait = (b"retry-after", str(code.seconds).encode())
            return self.ask(signed_in, cookie, _WAIT, wait, status=429)
        name = "" if code is None else await self._name(code)
        if code is None or not name:
            return self.ask(signed_in, cookie, _GONE, status=400)
        hidden = {**self._hidden(cookie), "code": code.hash, "seal": self._seal(code.hash, cookie)}
        return page_reply(200, device_consent_page(name, code.scope.split(), signed_in.account.email, hidden))

    async def _decide(self, form: dict[str, str], signed_in: SignedIn, cookie: str) -> Reply:
        hash, seal, allowed = form.get("code", ""), form.get("seal", ""), form["decision"] == "allow"
        if not seal.isascii() or not hmac.compare_digest(seal, self._seal(hash, cookie)):
            return page_reply(403, failure("This form has expired. Type the code again."))
        code = await self._codes.decide(hash, signed_in, allowed)
        if code is None:
            return self.ask(signed_in, cookie, _GONE, status=400)
        return page_reply(200, decided(await self._name(code), allowed))

    async def _name(self, code: DeviceCode) -> str:
        found = await self._grant_store.client(code.client_id)
        return found[0].name if found else ""

    def _hidden(self, cookie: str) -> dict[str, str]:
        return {"request": DEVICE, "token": self._forms.token(cookie)}

    def _seal(self, hash: str, cookie: str) -> str:
        text = f"{hash}\n{cookie}".encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()
