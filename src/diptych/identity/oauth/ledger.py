"""What the authorization server writes: codes, grants and refresh tokens. Every step is one transaction.

A code is exchanged, and a refresh token used, by a compare-and-swap: of many who try at once, one succeeds. Whoever
comes later brings something that was used before, so it was stolen, by them or from them: the whole grant ends.
"""

from __future__ import annotations

import itertools
import secrets

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.browsers import hold
from diptych.identity.records import (
    ACCOUNTS,
    BROWSERS,
    CLIENTS,
    CODES,
    GRANTS,
    REFRESHES,
    REVOCATIONS,
    Account,
    AuthorizationCode,
    Client,
    Grant,
    Refresh,
    hashed,
    now,
)
from diptych.identity.revoked import Revoked, revocation

CODE_LIFETIME = 60
REFRESH_LIFETIME = 30 * 86_400
GRANT_LIFETIME = 180 * 86_400
_SWEEP = 100
"""Of so many codes, refreshed tokens and revocations, one removes what ended long ago."""


class Ledger:
    """The records of one store."""

    def __init__(self, store: Store, revoked: Revoked) -> None:
        self.store = store
        self.revoked = revoked
        self._given = itertools.count()

    async def client(self, id: str) -> Client | None:
        return await self.store.write(lambda: CLIENTS.find(self.store.dialect, id=id))

    async def account(self, id: str) -> Account | None:
        """An account that can be used."""
        return await self.store.write(lambda: ACCOUNTS.find(self.store.dialect, id=id, disabled_at=None))

    # codes

    async def add_code(
        self, code: str, client: Client, account: Account, redirect: str, scope: str, challenge: str
    ) -> bool:
        """Keep a code, unless the account that allows it was changed meanwhile."""
        record = AuthorizationCode(
            hashed(code), client.id, account.id, redirect, scope, challenge, now() + CODE_LIFETIME, None, None
        )

        def script() -> Script[bool]:
            if next(self._given) % _SWEEP == 0:
                yield from self._sweep()
            held = yield from hold(self.store, account)
            return held and (yield from CODES.add(self.store.dialect, record))

        return await self.store.write(script)

    async def code(self, code: str) -> AuthorizationCode | None:
        """A code that can be exchanged. One that was exchanged before ends what came of it."""
        found = await self.store.write(lambda: CODES.find(self.store.dialect, hash=hashed(code)))
        if found is not None and found.used_at is not None and found.grant_id is not None:
            await self.end_grant(found.grant_id)
        return None if found is None or found.used_at is not None or found.expires_at <= now() else found

    async def exchange(self, code: AuthorizationCode, grant: Grant, refresh: str | None) -> bool:
        """Begin a grant with a code, unless someone else just did."""

        def script() -> Script[bool]:
            dialect, moment = self.store.dialect, now()
            unused = {"hash": code.hash, "used_at": None}
            used = yield from CODES.change(dialect, unused, used_at=moment, grant_id=grant.id)
            if used is None:
                return False
            yield from GRANTS.add(dialect, grant)
            if refresh is not None:
                yield from REFRESHES.add(dialect, _refresh(refresh, grant, moment))
            return True

        return await self.store.write(script)

    # grants

    async def grant(self, id: str) -> Grant | None:
        """A grant that holds."""
        found = await self.store.write(lambda: GRANTS.find(self.store.dialect, id=id, revoked_at=None))
        return None if found is None or found.expires_at <= now() else found

    async def refresh(self, token: str) -> tuple[Refresh, Grant] | None:
        """A refresh token, be it used or not, and its grant, if that holds."""
        found = await self.store.write(lambda: REFRESHES.find(self.store.dialect, hash=hashed(token)))
        grant = None if found is None else await self.grant(found.grant_id)
        return None if found is None or grant is None else (found, grant)

    async def rotate(self, old: Refresh, grant: Grant, new: str) -> bool:
        """Take another refresh token for this one, unless someone else just did."""

        def script() -> Script[bool]:
            dialect, moment = self.store.dialect, now()
            if next(self._given) % _SWEEP == 0:
                yield from self._sweep()
            used = yield from REFRESHES.change(dialect, {"hash": old.hash, "used_at": None}, used_at=moment)
            holds = yield from GRANTS.find(dialect, id=grant.id, revoked_at=None)
            if used is None or holds is None:
                return False
            return (yield from REFRESHES.add(dialect, _refresh(new, grant, moment)))

        return await self.store.write(script)

    async def end_grant(self, id: str) -> None:
        """End a grant with all its tokens. One that has ended already needs no other record."""
        ended = revocation("grant", id)

        def script() -> Script[bool]:
            found = yield from GRANTS.change(self.store.dialect, {"id": id, "revoked_at": None}, revoked_at=now())
            return found is not None and (yield from REVOCATIONS.add(self.store.dialect, ended))

        if await self.store.write(script):
            self.revoked.take([ended])

    async def end_token(self, jti: str, expires: int) -> None:
        """End one access token."""
        if next(self._given) % _SWEEP == 0:
            await self.store.write(self._sweep)
        await self.revoked.revoke(revocation("token", jti, max(0, expires - now())))

    def _sweep(self) -> Script[None]:
        for records in (CODES, REFRESHES, GRANTS, BROWSERS, REVOCATIONS):
            yield from records.sweep(self.store.dialect, "expires_at", now() - 86_400)


def is_usable(refresh: Refresh) -> bool:
    """Can tokens be had for it?"""
    return refresh.used_at is None and refresh.expires_at > now()


def new_grant(account: Account | None, client: Client, scope: str) -> Grant:
    moment = now()
    return Grant(secrets.token_urlsafe(16), account.id if account else None, client.id, scope, moment,
                 moment + GRANT_LIFETIME, None)  # fmt: skip


def _refresh(token: str, grant: Grant, moment: int) -> Refresh:
    return Refresh(hashed(token), grant.id, min(moment + REFRESH_LIFETIME, grant.expires_at), None)
