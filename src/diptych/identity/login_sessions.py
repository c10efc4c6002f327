"""Login sessions: browsers that are signed in to the pages of the authorization server, by a cookie.

Every change of an account ends its sessions in the same transaction. That cannot be raced: signing in locks the account
as it was when the password was checked, and a session is read again after its account, so that an account is never
newer than the session it is returned for.
"""

from __future__ import annotations

import secrets

from msgspec import Struct

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.records import (
    ACCOUNTS,
    LOGIN_SESSIONS,
    SESSION_METHODS,
    Account,
    LoginSession,
    SessionMethods,
    hashed,
    unix_time,
)

SESSION_LIFETIME = 8 * 3600


class SignedIn(Struct, frozen=True):
    """An account that is signed in, and since when."""

    account: Account
    since: int
    methods: tuple[str, ...] = ("pwd",)
    """How the user proved who it is: the claim `amr` of OpenID Connect (RFC 8176)."""


class LoginSessions:
    """The login sessions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dialect = store.dialect

    async def sign_in(self, account: Account, methods: tuple[str, ...] = ("pwd",)) -> str | None:
        """Begin a session and return its cookie; None if the account was changed since it was read."""
        cookie = secrets.token_urlsafe(32)
        record = LoginSession(hashed(cookie), account.id, unix_time(), unix_time() + SESSION_LIFETIME)

        def script() -> Script[bool]:
            locked = yield from lock_if_unchanged(self._store, account)
            if locked and methods != ("pwd",):
                more = SessionMethods(record.hash, methods, record.expires_at)
                yield from SESSION_METHODS.add(self._dialect, more)
            return locked and (yield from LOGIN_SESSIONS.add(self._dialect, record))

        return cookie if await self._store.write(script) else None

    async def find(self, cookie: str) -> SignedIn | None:
        """The account of a session."""
        return await self._store.write(lambda: self._find(hashed(cookie))) if cookie else None

    def _find(self, hash: str) -> Script[SignedIn | None]:
        session = yield from LOGIN_SESSIONS.find(self._dialect, hash=hash)
        if session is None or session.expires_at <= unix_time():
            return None
        account = yield from ACCOUNTS.find(self._dialect, id=session.account_id, disabled_at=None)
        still = yield from LOGIN_SESSIONS.find(self._dialect, hash=hash)
        if account is None or still is None:
            return None
        more = yield from SESSION_METHODS.find(self._dialect, hash=hash)
        return SignedIn(account, session.created_at, more.methods if more else ("pwd",))

    async def sign_out(self, cookie: str) -> None:
        await self._store.write(lambda: LOGIN_SESSIONS.remove(self._dialect, hash=hashed(cookie)))


def lock_if_unchanged(store: Store, account: Account) -> Script[bool]:
    """Lock an account until the transaction ends, if it is unchanged since it was read; else False."""
    kept = {"email": account.email, "password": account.password, "roles": account.roles}
    unchanged = {"id": account.id, **kept, "disabled_at": None}
    locked = yield from ACCOUNTS.change(store.dialect, unchanged, password=account.password)
    return locked is not None
