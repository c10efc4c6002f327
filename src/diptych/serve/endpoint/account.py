"""The endpoints of accounts: sign-up, a new password, the links of mails, and the page of one's own account.

    /oauth/sign-up, /oauth/reset     ask for a link          {"email": …}                         202
    /oauth/confirm                   use a link              {"token": …, "password": …, "fields": {…}}      200
    /oauth/account                   one's own account: verify and change the address, the authenticator app

A browser gets pages and sends forms, with a CSRF token as on the sign-in page. A program sends JSON, without a cookie,
and gets JSON: a page of another origin cannot send that without CORS. Both do the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, cast
from urllib.parse import urlencode

import msgspec

from diptych.api.json import read_json
from diptych.api.reply import JSON_TYPE, Header, Reply
from diptych.config import Config
from diptych.db.script import Script
from diptych.engine.user_rows import UserRows
from diptych.engine.write import WriteEngine
from diptych.errors import Code, Refusal
from diptych.identity.email_accounts import EmailAccounts, Hash
from diptych.identity.email_links import FoundLink
from diptych.identity.mail.limits import within
from diptych.identity.mail.outbox import Outbox
from diptych.identity.mail.post import post_of
from diptych.identity.oauth.authlib_adapter import Malformed, read_form
from diptych.identity.revocation_list import RevocationList
from diptych.identity.throttle import Throttled, network_of
from diptych.model.read.sign_ups import SignUpDef
from diptych.model.scalars import BOOLEAN, FLOAT, INT
from diptych.serve.endpoint import account_pages as pages
from diptych.serve.endpoint.account_paths import CONFIRM, RESET, SECOND_STEP, SIGN_UP
from diptych.serve.endpoint.oauth_forms import BrowserForms, sent_form
from diptych.serve.endpoint.oauth_pages import failure, page_reply
from diptych.serve.endpoint.own_account import OwnAccount
from diptych.serve.endpoint.signing_in import SigningIn, address_of
from diptych.serve.http.request import Request

_MOST = 65_536
_LONGEST_REQUEST = 4_000
_JSON: tuple[Header, ...] = ((b"content-type", JSON_TYPE), (b"cache-control", b"no-store"))
_EXPIRED = "This form has expired. Go back to where you came from and try again."
_TOO_MANY = "Too many requests. Wait a little before you try again."
_INVALID = "This link is not valid any more. Ask for a new one."
_GUESSES = (60, 3_600)
"""Links that are not valid, from one network, within seconds."""
_ABOUT = {
    SIGN_UP: ("Create an account", "You will get a link by mail.", "If {} can have an account, a link is on its way."),
    RESET: ("Forgot your password?", "You will get a link by mail.", "If {} has an account, a link is on its way."),
}
_TITLES = {"reset": "Set a new password", "sign-up": "Create the account", "verify": "Confirm your address"}
_DONE = {
    "reset": ("Your password is changed", "You were signed out everywhere. Sign in with the new password."),
    "verify": ("Your address is confirmed", "Thank you."),
    "change": ("Your address is changed", "You were signed out everywhere. Sign in with the new address."),
    "sign-up": ("Your account is there", "Sign in with your address and the new password."),
}


def make_account_endpoint(
    write_engine: WriteEngine,
    revoked: RevocationList,
    config: Config,
    forms: BrowserForms,
    signing_in: SigningIn,
    hash: Hash,
) -> AccountEndpoint:
    """The endpoints of a service; without a way to send mails, those that need one are not there."""
    model = write_engine.engine.model
    post = post_of(config, model.title)
    accounts = None if post is None else EmailAccounts(signing_in.store, hash, revoked, post)
    rows = None if model.sign_up is None else UserRows(write_engine, model.sign_up)
    return AccountEndpoint(forms, signing_in, accounts, rows, model.sign_up, model.title)


class AccountEndpoint:
    """Answers requests about accounts."""

    def __init__(
        self,
        forms: BrowserForms,
        signing_in: SigningIn,
        accounts: EmailAccounts | None,
        rows: UserRows | None,
        sign_up: SignUpDef | None,
        service: str,
    ) -> None:
        self._forms = forms
        self._signing_in = signing_in
        self.accounts = accounts
        self.rows = rows
        self._sign_up = sign_up
        self._own = OwnAccount(forms, signing_in, accounts, service, self.links(""))

    @property
    def outbox(self) -> Outbox | None:
        """The queue of mails."""
        return None if self.accounts is None else self.accounts.outbox

    @property
    def can_reset(self) -> bool:
        return self.accounts is not None

    @property
    def can_sign_up(self) -> bool:
        return self.accounts is not None and self._sign_up is not None

    def links(self, query: str) -> list[tuple[str, str]]:
        """The links of a sign-in page, which lead back to its request."""
        there = "?" + urlencode({"request": query}) if query else ""
        found = [("Forgot your password?", f"reset{there}")] if self.can_reset else []
        return [*found, *([("Create an account", f"sign-up{there}")] if self.can_sign_up else [])]

    async def handle(self, request: Request, issuer: str) -> Reply:
        """Answer a request. A page that this service does not offer is not there."""
        if request.path == SECOND_STEP:
            if request.method != "POST":
                return await self._signing_in.show_step(request)
            return await self._form(request, issuer, lambda form: self._signing_in.take_step(request, form))
        if request.path == SIGN_UP and not self.can_sign_up:
            raise Refusal(Code.NOT_FOUND, "There is nothing here.")
        if request.path in (SIGN_UP, RESET, CONFIRM) and self.accounts is None:
            raise Refusal(Code.NOT_FOUND, "There is nothing here.")
        if request.path in (SIGN_UP, RESET):
            return await self._ask(request, f"{issuer}/oauth", issuer)
        if request.path == CONFIRM:
            return await self._confirm(request, issuer)
        if request.method != "POST":
            return await self._own.show(request)
        return await self._form(request, issuer, lambda form: self._own.act(request, form, f"{issuer}/oauth"))

    async def stop(self) -> None:
        if self.accounts is not None:
            await self.accounts.stop()

    async def _form(self, request: Request, issuer: str, work: Callable[[dict[str, str]], Awaitable[Reply]]) -> Reply:
        """Handle a form that comes from a page of ours."""
        try:
            form = dict(await sent_form(request))
        except Malformed as error:
            return page_reply(400, failure(str(error)))
        if not self._forms.is_own(request, form, self._forms.cookie(request), issuer):
            return page_reply(403, failure(_EXPIRED))
        return await work(form)

    # asking for a link

    async def _ask(self, request: Request, here: str, issuer: str) -> Reply:
        title, about, _ = _ABOUT[request.path]
        action = request.path.rpartition("/")[2]
        if request.method != "POST":
            goes_on = _onward(dict(_query(request)).get("request", ""))
            return self._page(
                request, 200, lambda token: pages.ask_address(title, about, action, "", {"request": goes_on, **token})
            )
        if _is_json(request):
            sent = await _object(request, {"email"})
            throttled = await self._send(request, sent.get("email"), here)
            if throttled is not None:
                return _throttled(throttled)
            return Reply(202, _JSON, b'{"status":"sent"}')

        async def work(form: dict[str, str]) -> Reply:
            email, goes_on = form.get("email", "")[:254], _onward(form.get("request", ""))
            try:
                throttled = await self._send(request, email, here, goes_on)
            except Refusal as refusal:
                if refusal.code is not Code.BAD_USER_INPUT:
                    return page_reply(503, failure(refusal.message))
                wrong = refusal.message
                return self._page(
                    request,
                    400,
                    lambda token: pages.ask_address(title, about, action, email, {"request": goes_on, **token}, wrong),
                )
            if throttled is not None:
                return page_reply(429, failure(_TOO_MANY), more=(_retry(throttled),))
            return page_reply(200, pages.sent(email, _ABOUT[request.path][2]))

        return await self._form(request, issuer, work)

    async def _send(self, request: Request, email: object, here: str, goes_on: str = "") -> Throttled | None:
        assert self.accounts is not None
        if not isinstance(email, str):
            raise Refusal(Code.BAD_USER_INPUT, "Send an e-mail address.")
        purpose: Literal["sign-up", "reset"] = "sign-up" if request.path == SIGN_UP else "reset"
        return await self.accounts.ask(purpose, email, address_of(request), here, goes_on)

    # using a link

    async def _confirm(self, request: Request, issuer: str) -> Reply:
        assert self.accounts is not None
        if request.method != "POST":
            token = dict(_query(request)).get("token", "")
            found = await self.accounts.find(token)
            if found is None:
                return await self._no_link(request)
            return self._link_page(request, found, token)
        if _is_json(request):
            sent = await _object(request, {"token", "password", "fields"})
            token, password, fields = sent.get("token", ""), sent.get("password", ""), sent.get("fields", {})
            if not isinstance(token, str) or not isinstance(password, str) or not isinstance(fields, dict):
                raise Refusal(Code.BAD_USER_INPUT, "Send a token, and a password and fields where they are needed.")
            found = await self.accounts.find(token)
            if found is None:
                throttled = await self._count_guess(request)
                if throttled is not None:
                    return _throttled(throttled)
                raise Refusal(Code.NOT_FOUND, _INVALID)
            await self._use(found, token, password, fields)
            return Reply(200, _JSON, msgspec.json.encode({"status": "done", "purpose": found.record.purpose}))
        return await self._form(request, issuer, lambda form: self._confirmed(request, form))

    async def _confirmed(self, request: Request, form: dict[str, str]) -> Reply:
        assert self.accounts is not None
        token = form.get("link", "")
        found = await self.accounts.find(token)
        if found is None:
            return await self._no_link(request)
        try:
            account = await self._use(found, token, form.get("password", ""), self._values(form))
        except Refusal as refusal:
            if refusal.code is Code.NOT_FOUND:
                return page_reply(400, failure(refusal.message))
            if refusal.code not in (Code.BAD_USER_INPUT, Code.CONFLICT):
                raise
            return self._link_page(request, found, token, form, _message(refusal))
        goes_on = f"authorize?{found.record.goes_on}" if found.record.goes_on else "account"
        if found.record.purpose == "sign-up":
            return await self._signing_in.begin(request, account, goes_on)
        title, about = _DONE[found.record.purpose]
        return page_reply(200, pages.done(title, about, [("Go on", goes_on)]))

    async def _use(self, found: FoundLink, token: str, password: str, values: Mapping[str, Any]) -> Any:
        accounts = self.accounts
        assert accounts is not None
        match found.record.purpose:
            case "reset":
                return await accounts.set_password(token, password)
            case "verify":
                return await accounts.verify(token)
            case "change":
                return await accounts.change_email(token, self._set_email)
        if self._sign_up is None or self.rows is None:
            raise Refusal(Code.NOT_FOUND, _INVALID)
        return await accounts.sign_up(token, password, values, self._sign_up.roles, self.rows.create)

    async def _set_email(self, session: Any, id: str, email: str) -> None:
        if self.rows is not None:
            await self.rows.set_email(session, id, email)

    def _values(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The fields of a new user, from the texts of a form."""
        values: dict[str, Any] = {}
        for field in self._sign_up.fields if self._sign_up else ():
            text = form.get(f"field.{field.name}", "")
            if field.scalar is BOOLEAN:
                values[field.name] = text == "true"
            elif text:
                values[field.name] = _number(text) if field.scalar in (INT, FLOAT) else text
        return values

    def _link_page(
        self, request: Request, found: FoundLink, token: str, form: Mapping[str, str] | None = None, wrong: str = ""
    ) -> Reply:
        record = found.record
        title = _TITLES.get(record.purpose, "Use this address")

        def page(csrf: dict[str, str]) -> str:
            hidden = {"link": token, **csrf}
            if record.purpose in ("verify", "change"):
                return pages.confirm_page(title, record.email, hidden) if not wrong else failure(wrong)
            new = record.purpose == "sign-up" and self._sign_up is not None
            fields = pages.field_inputs(cast(SignUpDef, self._sign_up).fields, form or {}) if new else ""
            return pages.set_password(title, record.email, fields, hidden, wrong)

        return self._page(request, 400 if wrong else 200, page)

    async def _no_link(self, request: Request) -> Reply:
        throttled = await self._count_guess(request)
        if throttled is not None:
            return page_reply(429, failure(_TOO_MANY), more=(_retry(throttled),))
        return page_reply(400, failure(_INVALID))

    async def _count_guess(self, request: Request) -> Throttled | None:
        store = self._signing_in.store

        def script() -> Script[Throttled | None]:
            return (yield from within(store, f"link:{network_of(address_of(request))}", *_GUESSES))

        return await store.write(script)

    def _page(self, request: Request, status: int, page: Callable[[dict[str, str]], str]) -> Reply:
        """A page with a form: a browser without a cookie gets one."""
        cookie = self._forms.cookie(request)
        fresh = () if cookie else (self._forms.set_cookie(cookie := secrets.token_urlsafe(32), 3_600),)
        return page_reply(status, page({"token": self._forms.token(cookie)}), more=fresh)


def _query(request: Request) -> list[tuple[str, str]]:
    try:
        return read_form(request.query)
    except Malformed as error:
        raise Refusal(Code.BAD_REQUEST, str(error)) from None


def _onward(text: str) -> str:
    """The query of the authorization request to which a link leads on, encoded anew: it becomes part of a header."""
    try:
        return urlencode(read_form(text)) if len(text) <= _LONGEST_REQUEST else ""
    except Malformed:
        return ""


def _is_json(request: Request) -> bool:
    return request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == b"application/json"


async def _object(request: Request, known: set[str]) -> dict[str, Any]:
    value = read_json(await request.body(_MOST))
    if not isinstance(value, dict) or not known.issuperset(value):
        raise Refusal(Code.BAD_USER_INPUT, f"Send an object of {', '.join(sorted(known))}.")
    return value


def _number(text: str) -> Any:
    """A number of a form; what is none stays text, and is refused by its type."""
    try:
        return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else float(text)
    except ValueError:
        return text


def _message(refusal: Refusal) -> str:
    faults = "; ".join(f"{fault.path[-1]}: {fault.message}" for fault in refusal.faults)
    return f"{refusal.message} {faults}".strip()


def _retry(throttled: Throttled) -> Header:
    return (b"retry-after", str(throttled.seconds).encode())


def _throttled(throttled: Throttled) -> Reply:
    body = {
        "type": "about:blank",
        "title": "Rate limited",
        "status": 429,
        "detail": _TOO_MANY,
        "code": Code.RATE_LIMITED.value,
    }
    head = ((b"content-type", b"application/problem+json"), (b"cache-control", b"no-store"), _retry(throttled))
    return Reply(429, head, msgspec.json.encode(body))
