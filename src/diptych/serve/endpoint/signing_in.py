"""Signing in on a page: the password, the second factor if the account has one, and then a new session.

Every step changes the cookie of the browser, against session fixation. Between the two steps the cookie is that of a
`SecondStep`, which is no session and can be used once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from diptych.api.reply import Reply
from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.accounts import Accounts
from diptych.identity.devices import LASTS, Devices
from diptych.identity.email_links import account_state
from diptych.identity.login_sessions import SESSION_LIFETIME, LoginSessions
from diptych.identity.records import ACCOUNTS, SECOND_STEPS, Account, SecondStep, hashed, unix_time
from diptych.identity.second_factor import SecondFactor
from diptych.identity.throttle import Throttled
from diptych.serve.endpoint.account_pages import second_step
from diptych.serve.endpoint.oauth_forms import KNOWN, BrowserForms, see_other
from diptych.serve.endpoint.oauth_pages import failure, page_reply
from diptych.serve.http.request import Request

_STEP_LIFETIME = 600
_TOO_MANY = "Too many attempts. Wait a little before you try again."


class SigningIn:
    """Signs browsers in."""

    def __init__(self, store: Store, forms: BrowserForms, secret: bytes, accounts: Callable[[], Accounts]) -> None:
        self.store = store
        self._forms = forms
        self._accounts = accounts
        self._devices = Devices(secret)
        self.sessions = LoginSessions(store)
        self.second_factor = SecondFactor(store, secret)

    async def check(self, request: Request, email: str, password: str) -> Account | Throttled | None:
        """The account with this address and password."""
        device = self._devices.name(self._forms.cookie(request, KNOWN), email)
        return await self._accounts().authenticate(email, password, address_of(request), device)

    async def go_on(self, request: Request, account: Account, location: str) -> Reply:
        """After the password: a session, or the second step."""
        if not await self.second_factor.is_on(account):
            return await self.begin(request, account, location)
        cookie = secrets.token_urlsafe(32)
        expires = unix_time() + _STEP_LIFETIME
        record = SecondStep(hashed(cookie), account.id, account_state(account), location, expires)

        def script() -> Script[bool]:
            yield from SECOND_STEPS.sweep(self.store.dialect, "expires_at", unix_time())
            return (yield from SECOND_STEPS.add(self.store.dialect, record))

        await self.store.write(script)
        await self.sessions.sign_out(self._forms.cookie(request))
        return see_other("second-step", self._forms.set_cookie(cookie, _STEP_LIFETIME))

    async def begin(
        self, request: Request, account: Account, location: str, methods: tuple[str, ...] = ("pwd",)
    ) -> Reply:
        """Begin a session, with a new cookie, and redirect."""
        await self.sessions.sign_out(self._forms.cookie(request))
        fresh = await self.sessions.sign_in(account, methods) or ""
        marks = self._devices.renewed(self._forms.cookie(request, KNOWN), account.email)
        known = self._forms.set_cookie(marks, LASTS, KNOWN)
        return see_other(location, known, self._forms.set_cookie(fresh, SESSION_LIFETIME))

    # the second step

    async def show_step(self, request: Request) -> Reply:
        """The page of the second step."""
        cookie = self._forms.cookie(request)
        if await self._pending(cookie) is None:
            return page_reply(400, failure("This has expired. Go back to where you came from and sign in again."))
        return page_reply(200, second_step({"token": self._forms.token(cookie)}))

    async def take_step(self, request: Request, form: dict[str, str]) -> Reply:
        """Check the code of the second step; its form is verified to be ours."""
        cookie = self._forms.cookie(request)
        pending = await self._pending(cookie)
        if pending is None:
            return page_reply(400, failure("This has expired. Go back to where you came from and sign in again."))
        step, account = pending
        checked = await self.second_factor.check(account, form.get("code", ""))
        hidden = {"token": self._forms.token(cookie)}
        if isinstance(checked, Throttled):
            wait = ((b"retry-after", str(checked.seconds).encode()),)
            return page_reply(429, second_step(hidden, _TOO_MANY), more=wait)
        if not checked:
            return page_reply(400, second_step(hidden, "The code is not right."))
        used = await self.store.write(lambda: SECOND_STEPS.remove(self.store.dialect, hash=step.hash))
        if used is None:
            return page_reply(400, failure("This has expired. Go back to where you came from and sign in again."))
        return await self.begin(request, account, step.location, ("pwd", "otp"))

    async def _pending(self, cookie: str) -> tuple[SecondStep, Account] | None:
        def script() -> Script[tuple[SecondStep, Account] | None]:
            step = yield from SECOND_STEPS.find(self.store.dialect, hash=hashed(cookie))
            if step is None or step.expires_at <= unix_time():
                return None
            account = yield from ACCOUNTS.find(self.store.dialect, id=step.account_id, disabled_at=None)
            return (step, account) if account is not None and account_state(account) == step.state else None

        return await self.store.write(script) if cookie else None


def address_of(request: Request) -> str:
    """The address of a client."""
    return request.peer[0] if request.peer else ""
