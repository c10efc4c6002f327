"""The page of one's own account: verify and change the address, and the authenticator app.

What changes an account needs its password again, so that a browser which was left alone is not enough.
"""

from __future__ import annotations

import importlib
import io
import secrets

from diptych.api.reply import Reply
from diptych.errors import Code, Refusal
from diptych.identity.email_accounts import EmailAccounts
from diptych.identity.login_sessions import SignedIn
from diptych.identity.records import Account
from diptych.identity.throttle import Throttled
from diptych.identity.totp import as_text, otpauth
from diptych.identity.verified_emails import email_is_verified
from diptych.serve.endpoint import account_pages as pages
from diptych.serve.endpoint.oauth_forms import BrowserForms, see_other
from diptych.serve.endpoint.oauth_pages import Links, failure, page_reply, sign_in
from diptych.serve.endpoint.signing_in import SigningIn, address_of
from diptych.serve.http.request import Request

_TOO_MANY = "Too many attempts. Wait a little before you try again."
_NOT_RIGHT = "The password is not right."


class OwnAccount:
    """The page of the account that is signed in."""

    def __init__(
        self, forms: BrowserForms, signing_in: SigningIn, accounts: EmailAccounts | None, service: str, links: Links
    ) -> None:
        self._forms = forms
        self._signing_in = signing_in
        self._accounts = accounts
        self._service = service
        self._links = links

    async def show(self, request: Request, notice: str = "", wrong: str = "", status: int = 200) -> Reply:
        """The page, or the page to sign in."""
        cookie = self._forms.cookie(request)
        signed_in = await self._signing_in.sessions.find(cookie)
        if signed_in is None:
            return self._sign_in_page(request, "", "", 200)
        account, hidden = signed_in.account, self._hidden(cookie)
        parts = []
        if self._accounts is not None:
            verified = await email_is_verified(self._signing_in.store, account)
            parts = [*([] if verified else [pages.verification(hidden)]), pages.another_address(account.email, hidden)]
        is_on = await self._signing_in.second_factor.is_on(account)
        parts.append(pages.second_factor(account.email, is_on, hidden))
        return page_reply(status, pages.own_account(account.email, parts, hidden, notice, wrong))

    async def act(self, request: Request, form: dict[str, str], here: str) -> Reply:
        """A form of the page, which is verified to be ours."""
        if form.get("do") == "sign-in":
            return await self._sign_in(request, form)
        cookie = self._forms.cookie(request)
        signed_in = await self._signing_in.sessions.find(cookie)
        if signed_in is None:
            return self._sign_in_page(request, "", "You were signed out. Sign in again.", 200)
        match form.get("do"):
            case "sign-out":
                await self._signing_in.sessions.sign_out(cookie)
                return see_other("account", self._forms.set_cookie("", 0))
            case "verify" if self._accounts is not None:
                return await self._verify(request, signed_in, here)
            case "change" if self._accounts is not None:
                return await self._change(request, signed_in, form, here)
            case "totp":
                return await self._enrol(request, signed_in.account)
            case "totp-confirm":
                return await self._confirm(request, signed_in.account, form)
            case "totp-off":
                return await self._turn_off(request, signed_in.account, form)
        return page_reply(400, failure("There is nothing to do."))

    # signing in

    async def _sign_in(self, request: Request, form: dict[str, str]) -> Reply:
        email = form.get("email", "")[:254]
        account = await self._signing_in.check(request, email, form.get("password", ""))
        if isinstance(account, Throttled):
            return self._sign_in_page(request, email, _TOO_MANY, 429, account)
        if account is None:
            return self._sign_in_page(request, email, "The e-mail or the password is not right.", 400)
        return await self._signing_in.go_on(request, account, "account")

    def _sign_in_page(
        self, request: Request, email: str, wrong: str, status: int, throttled: Throttled | None = None
    ) -> Reply:
        cookie = self._forms.cookie(request)
        more = () if cookie else (self._forms.set_cookie(cookie := secrets.token_urlsafe(32), 3_600),)
        if throttled is not None:
            more = (*more, (b"retry-after", str(throttled.seconds).encode()))
        hidden = {**self._hidden(cookie), "do": "sign-in"}
        return page_reply(status, sign_in("your account", email, hidden, wrong, self._links, "account"), more=more)

    # the address

    async def _verify(self, request: Request, signed_in: SignedIn, here: str) -> Reply:
        assert self._accounts is not None
        throttled = await self._accounts.ask_verification(signed_in.account, address_of(request), here)
        return await self._asked(request, throttled, "A link is on its way to your address.")

    async def _change(self, request: Request, signed_in: SignedIn, form: dict[str, str], here: str) -> Reply:
        assert self._accounts is not None
        refused = await self._password_refused(request, signed_in.account, form)
        if refused is not None:
            return refused
        try:
            throttled = await self._accounts.ask_change(
                signed_in.account, form.get("email", "")[:254], address_of(request), here
            )
        except Refusal as refusal:
            if refusal.code is not Code.BAD_USER_INPUT:
                raise
            return await self.show(request, wrong=refusal.message, status=400)
        return await self._asked(request, throttled, "A link is on its way to the new address.")

    async def _asked(self, request: Request, throttled: Throttled | None, notice: str) -> Reply:
        if throttled is not None:
            return await self.show(request, wrong=_TOO_MANY, status=429)
        return await self.show(request, notice)

    async def _password_refused(self, request: Request, account: Account, form: dict[str, str]) -> Reply | None:
        """The reply to a wrong password; None if it is right."""
        found = await self._signing_in.check(request, account.email, form.get("password", ""))
        if isinstance(found, Throttled):
            return await self.show(request, wrong=_TOO_MANY, status=429)
        return await self.show(request, wrong=_NOT_RIGHT, status=400) if found is None else None

    # the authenticator app

    async def _enrol(self, request: Request, account: Account, wrong: str = "", status: int = 200) -> Reply:
        cookie = self._forms.cookie(request)
        key = await self._signing_in.second_factor.propose(account, cookie)
        if key is None:
            return await self.show(request, wrong="An app is set up already.", status=400)
        address = otpauth(key, account.email, self._service)
        hidden = self._hidden(cookie)
        return page_reply(status, pages.enrol(account.email, _qr_code(address), as_text(key), address, hidden, wrong))

    async def _confirm(self, request: Request, account: Account, form: dict[str, str]) -> Reply:
        found = await self._signing_in.check(request, account.email, form.get("password", ""))
        if found is None or isinstance(found, Throttled):
            is_late = isinstance(found, Throttled)
            return await self._enrol(request, account, _TOO_MANY if is_late else _NOT_RIGHT, 429 if is_late else 400)
        code, cookie = "".join(form.get("code", "").split()), self._forms.cookie(request)
        codes = await self._signing_in.second_factor.confirm(account, code, cookie)
        if isinstance(codes, Throttled):
            return await self._enrol(request, account, _TOO_MANY, 429)
        if codes is None:
            return await self._enrol(request, account, "The code is not right.", 400)
        return page_reply(200, pages.recovery_codes(codes))

    async def _turn_off(self, request: Request, account: Account, form: dict[str, str]) -> Reply:
        refused = await self._password_refused(request, account, form)
        if refused is not None:
            return refused
        checked = await self._signing_in.second_factor.check(account, form.get("code", ""))
        if isinstance(checked, Throttled) or not checked:
            is_late = isinstance(checked, Throttled)
            wrong = _TOO_MANY if is_late else "The code is not right."
            return await self.show(request, wrong=wrong, status=429 if is_late else 400)
        await self._signing_in.second_factor.turn_off(account)
        return await self.show(request, "Signing in takes your password alone now.")

    def _hidden(self, cookie: str) -> dict[str, str]:
        return {"token": self._forms.token(cookie)}


def _qr_code(address: str) -> str:
    """A QR code as inline SVG."""
    out = io.BytesIO()
    importlib.import_module("segno").make(address, error="m", micro=False).save(
        out,
        kind="svg",
        xmldecl=False,
        svgns=False,
        nl=False,
        scale=4,
        border=2,
        omitsize=True,
        svgclass=None,
        lineclass=None,
    )
    return out.getvalue().decode()
