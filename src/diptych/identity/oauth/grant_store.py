"""The records of the authorization server: codes, grants and refresh tokens. Every step is one transaction.

A code is exchanged, and a refresh token used, by a compare-and-swap: of concurrent attempts one succeeds. A later one
presents something that was used before, so it was stolen, by them or from them: the whole grant is revoked.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.login_sessions import lock_if_unchanged
from diptych.identity.oauth.openid import SignIn
from diptych.identity.records import (
    ACCOUNTS,
    CLIENT_DETAILS,
    CLIENTS,
    CODE_SIGN_INS,
    CODES,
    GRANTS,
    LOGIN_SESSIONS,
    REFRESHES,
    REVOCATIONS,
    SESSION_METHODS,
    Account,
    AuthorizationCode,
    ClientDetails,
    ClientRecord,
    CodeSignIn,
    Grant,
    RefreshToken,
    SessionMethods,
    hashed,
    unix_time,
)
from diptych.identity.revocation_list import RevocationList, revocation

CODE_LIFETIME = 60
REFRESH_LIFETIME = 30 * 86_400
GRANT_LIFETIME = 180 * 86_400
REGISTERED_LIFETIME = 90 * 86_400
"""Seconds from its registration for which a client that registered itself is kept, if someone has signed in to it."""
_SCOPES = 100
"""Different scopes of the grants of an account to a client that are looked at: each sign-in makes a grant, and most of
them have the same ones."""
_SWEEP = 100
"""One in this many codes, refreshed tokens and revocations also removes expired records."""


class GrantStore:
    """Codes, grants and refresh tokens of one store."""

    def __init__(self, store: Store, revoked: RevocationList) -> None:
        self.store = store
        self.revoked = revoked
        self._counter = itertools.count()

    async def client(self, id: str) -> tuple[ClientRecord, ClientDetails | None] | None:
        """A client, unless it registered itself for a time that is over."""

        def script() -> Script[tuple[ClientRecord, ClientDetails | None] | None]:
            client = yield from CLIENTS.find(self.store.dialect, id=id)
            if client is None:
                return None
            details = yield from CLIENT_DETAILS.find(self.store.dialect, client_id=id)
            if details is not None and details.expires_at is not None and details.expires_at <= unix_time():
                return None
            return client, details

        return await self.store.write(script)

    async def keep_client(self, client: ClientRecord) -> None:
        """Keep a client that registered itself, since someone has signed in to it."""
        await self.store.write(
            lambda: CLIENT_DETAILS.change(
                self.store.dialect, {"client_id": client.id}, expires_at=client.created_at + REGISTERED_LIFETIME
            )
        )

    async def account(self, id: str) -> Account | None:
        """An account that is not disabled."""
        return await self.store.write(lambda: ACCOUNTS.find(self.store.dialect, id=id, disabled_at=None))

    # codes

    async def add_code(
        self,
        code: str,
        client: ClientRecord,
        account: Account,
        redirect: str,
        scope: str,
        challenge: str,
        sign_in: SignIn | None = None,
    ) -> bool:
        """Store a code, unless the account that consented was changed meanwhile."""
        expires = unix_time() + CODE_LIFETIME
        record = AuthorizationCode(hashed(code), client.id, account.id, redirect, scope, challenge, expires, None, None)

        def script() -> Script[bool]:
            if next(self._counter) % _SWEEP == 0:
                yield from self._sweep()
            if not (yield from lock_if_unchanged(self.store, account)):
                return False
            if sign_in is not None:
                details = CodeSignIn(record.hash, sign_in.auth_time, sign_in.nonce, expires)
                yield from CODE_SIGN_INS.add(self.store.dialect, details)
                methods = SessionMethods(record.hash, sign_in.methods, expires)
                yield from SESSION_METHODS.add(self.store.dialect, methods)
            return (yield from CODES.add(self.store.dialect, record))

        return await self.store.write(script)

    async def code(self, code: str) -> AuthorizationCode | None:
        """A code that can be exchanged. If it was exchanged before, revoke the grant that came of it."""
        record = await self.store.write(lambda: CODES.find(self.store.dialect, hash=hashed(code)))
        if record is not None and record.used_at is not None and record.grant_id is not None:
            await self.end_grant(record.grant_id)
        return None if record is None or record.used_at is not None or record.expires_at <= unix_time() else record

    async def sign_in(self, code: AuthorizationCode) -> SignIn | None:
        """The sign-in behind a code."""

        def script() -> Script[SignIn | None]:
            found = yield from CODE_SIGN_INS.find(self.store.dialect, hash=code.hash)
            more = yield from SESSION_METHODS.find(self.store.dialect, hash=code.hash)
            return None if found is None else SignIn(found.auth_time, found.nonce, more.methods if more else ())

        return await self.store.write(script)

    async def exchange(self, code: AuthorizationCode, grant: Grant, refresh: str | None) -> bool:
        """Exchange a code for a grant; False if someone else just did."""

        def script() -> Script[bool]:
            dialect, moment = self.store.dialect, unix_time()
            unused = {"hash": code.hash, "used_at": None}
            used = yield from CODES.change(dialect, unused, used_at=moment, grant_id=grant.id)
            if used is None:
                return False
            yield from GRANTS.add(dialect, grant)
            if refresh is not None:
                yield from REFRESHES.add(dialect, new_refresh(refresh, grant))
            return True

        return await self.store.write(script)

    # grants

    async def grant(self, id: str) -> Grant | None:
        """A grant that is neither expired nor revoked."""
        grant = await self.store.write(lambda: GRANTS.find(self.store.dialect, id=id, revoked_at=None))
        return None if grant is None or grant.expires_at <= unix_time() else grant

    async def has_consent(self, account: Account, client: ClientRecord, scope: Iterable[str]) -> bool:
        """Has the account allowed the client these scopes before, by a grant that is valid?"""
        known = {"account_id": account.id, "client_id": client.id, "revoked_at": None}
        scopes = await GRANTS.values(self.store, "scope", _SCOPES, "expires_at", unix_time(), **known)
        return any(set(scope) <= set(allowed.split()) for allowed in scopes)

    async def refresh(self, token: str) -> tuple[RefreshToken, Grant] | None:
        """A refresh token, used or not, and its grant, if that is valid."""
        record = await self.store.write(lambda: REFRESHES.find(self.store.dialect, hash=hashed(token)))
        grant = None if record is None else await self.grant(record.grant_id)
        return None if record is None or grant is None else (record, grant)

    async def rotate(self, old: RefreshToken, grant: Grant, new: str) -> bool:
        """Replace a refresh token by a new one; False if someone else just did."""

        def script() -> Script[bool]:
            dialect, moment = self.store.dialect, unix_time()
            if next(self._counter) % _SWEEP == 0:
                yield from self._sweep()
            used = yield from REFRESHES.change(dialect, {"hash": old.hash, "used_at": None}, used_at=moment)
            holds = yield from GRANTS.find(dialect, id=grant.id, revoked_at=None)
            if used is None or holds is None:
                return False
            return (yield from REFRESHES.add(dialect, new_refresh(new, grant)))

        return await self.store.write(script)

    async def end_grant(self, id: str) -> None:
        """Revoke a grant with all its tokens, if it is not revoked yet."""
        revoked = revocation("grant", id)

        def script() -> Script[bool]:
            changed = yield from GRANTS.change(
                self.store.dialect, {"id": id, "revoked_at": None}, revoked_at=unix_time()
            )
            return changed is not None and (yield from REVOCATIONS.add(self.store.dialect, revoked))

        if await self.store.write(script):
            self.revoked.add([revoked])

    async def end_token(self, jti: str, expires: int) -> None:
        """Revoke one access token."""
        if next(self._counter) % _SWEEP == 0:
            await self.store.write(self._sweep)
        await self.revoked.revoke(revocation("token", jti, max(0, expires - unix_time())))

    def _sweep(self) -> Script[None]:
        for records in (CODES, CODE_SIGN_INS, REFRESHES, GRANTS, LOGIN_SESSIONS, SESSION_METHODS, REVOCATIONS):
            yield from records.sweep(self.store.dialect, "expires_at", unix_time() - 86_400)


def is_usable(refresh: RefreshToken) -> bool:
    """Can a refresh token be exchanged for new tokens?"""
    return refresh.used_at is None and refresh.expires_at > unix_time()


def new_grant(account: Account | None, client: ClientRecord, scope: str) -> Grant:
    moment = unix_time()
    return Grant(
        secrets.token_urlsafe(16),
        account.id if account else None,
        client.id,
        scope,
        moment,
        moment + GRANT_LIFETIME,
        None,
    )


def new_refresh(token: str, grant: Grant) -> RefreshToken:
    return RefreshToken(hashed(token), grant.id, min(unix_time() + REFRESH_LIFETIME, grant.expires_at), None)
