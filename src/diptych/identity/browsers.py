"""Browsers in which people are signed in to the pages of the authorization server, each known by a cookie.

Whatever changes an account signs it out everywhere, in the same transaction. Nobody may come in behind that: who signs
in holds the account as it was when the password was proven, and who is signed in is looked for again once the account
was read, so that an account is never newer than the sign-in that it is taken for.
"""

from __future__ import annotations

import secrets

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.records import ACCOUNTS, BROWSERS, Account, Browser, hashed, now

SIGNED_IN = 8 * 3600
"""Seconds for which a browser stays signed in."""


class Browsers:
    """The browsers of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dialect = store.dialect

    async def sign_in(self, account: Account) -> str | None:
        """A new cookie for someone who proved who they are; None if the account was changed meanwhile."""
        cookie = secrets.token_urlsafe(32)
        record = Browser(hashed(cookie), account.id, now(), now() + SIGNED_IN)

        def script() -> Script[bool]:
            held = yield from hold(self._store, account)
            return held and (yield from BROWSERS.add(self._dialect, record))

        return cookie if await self._store.write(script) else None

    async def account(self, cookie: str) -> Account | None:
        """Who is signed in."""
        return await self._store.write(lambda: self._account(hashed(cookie))) if cookie else None

    def _account(self, hash: str) -> Script[Account | None]:
        found = yield from BROWSERS.find(self._dialect, hash=hash)
        if found is None or found.expires_at <= now():
            return None
        account = yield from ACCOUNTS.find(self._dialect, id=found.account_id, disabled_at=None)
        still = yield from BROWSERS.find(self._dialect, hash=hash)
        return account if still is not None else None

    async def sign_out(self, cookie: str) -> None:
        await self._store.write(lambda: BROWSERS.remove(self._dialect, hash=hashed(cookie)))


def hold(store: Store, account: Account) -> Script[bool]:
    """Is the account what it was? Then nobody changes it before this transaction has ended."""
    same = {"id": account.id, "password": account.password, "roles": account.roles, "disabled_at": None}
    found = yield from ACCOUNTS.change(store.dialect, same, password=account.password)
    return found is not None
