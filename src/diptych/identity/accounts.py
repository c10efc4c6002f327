"""Accounts: who can sign in, by which password, as which user of the model, with which roles.

What an account may do is told by its tokens. So whatever changes that (its roles, its password, its end) ends its
grants, signs it out, and revokes its tokens, in one transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.checks import checked_email, checked_user, is_email, normalised_email
from diptych.identity.endings import end_account
from diptych.identity.passwords import Passwords
from diptych.identity.records import ACCOUNTS, Account, Revocation, now
from diptych.identity.revoked import Revoked, revocation
from diptych.identity.throttle import Counted, Throttled, count, forgive

__all__ = ["Accounts", "Throttled"]


class Accounts:
    """The accounts of a store."""

    def __init__(self, store: Store, revoked: Revoked, passwords: Passwords | None = None) -> None:
        self._store = store
        self._dialect = store.dialect
        self._revoked = revoked
        self._passwords = passwords or Passwords()

    async def find(self, email: str) -> Account | None:
        """The account with this address."""
        email = checked_email(email)
        return await self._store.write(lambda: ACCOUNTS.find(self._dialect, email=email))

    async def all(self) -> list[Account]:
        return await ACCOUNTS.all(self._store, "email")

    async def add(
        self, email: str, password: str | None, roles: Iterable[str] = (), user: str | None = None
    ) -> Account:
        """A new account; one without a password cannot sign in until it has one."""
        email, user = checked_email(email), checked_user(user)
        kept = None if password is None else await self._hash(password)
        account = Account(secrets.token_urlsafe(12), email, kept, user, tuple(sorted(roles)), None, now())
        if not await self._store.write(lambda: ACCOUNTS.add(self._dialect, account)):
            raise Refusal(Code.CONFLICT, f"There is an account with the address {email} already.")
        return account

    async def set_password(self, email: str, password: str) -> Account:
        return await self._change(email, password=await self._hash(password))

    async def set_roles(self, email: str, roles: Iterable[str]) -> Account:
        return await self._change(email, roles=tuple(sorted(roles)))

    async def disable(self, email: str) -> Account:
        """It cannot be used until it is enabled again."""
        return await self._change(email, disabled_at=now())

    async def enable(self, email: str) -> Account:
        email = checked_email(email)
        found = await self._store.write(lambda: ACCOUNTS.change(self._dialect, {"email": email}, disabled_at=None))
        return _there(found, email)

    async def remove(self, email: str) -> Account:
        email = checked_email(email)
        return await self._end(email, lambda: ACCOUNTS.remove(self._dialect, email=email))

    async def _change(self, email: str, **values: Any) -> Account:
        """Change what tokens of the account are about; those that there are end."""
        email = checked_email(email)
        return await self._end(email, lambda: ACCOUNTS.change(self._dialect, {"email": email}, **values))

    async def _end(self, email: str, change: Callable[[], Script[Account | None]]) -> Account:
        """Make a change with which everything ends that was given to the account."""

        def script() -> Script[tuple[Account, Revocation]]:
            account = _there((yield from change()), email)
            ended = revocation("account", account.id)
            yield from end_account(self._store, account.id, ended)
            return account, ended

        account, ended = await self._store.write(script)
        self._revoked.take([ended])
        await self._revoked.look()
        return account

    # signing in

    async def authenticate(
        self, email: str, password: str, address: str, device: str = ""
    ) -> Account | Throttled | None:
        """The account of whoever knows its password; None costs the same work, whatever is the reason. `device` names
        a browser that the account knows."""
        email = normalised_email(email)
        async with self._passwords.place():
            counted, account = await self._store.write(lambda: self._attempt(email, address, device))
            if isinstance(counted, Throttled):
                return counted
            kept = account.password if account else None
            if not await self._passwords.verify(kept, password) or account is None or kept is None:
                return None
            renewed = await self._passwords.hash(password) if self._passwords.is_outdated(kept) else kept
            found = account
            return await self._store.write(lambda: self._succeed(found, renewed, counted))

    def _attempt(
        self, email: str, address: str, device: str
    ) -> Script[tuple[Counted | Throttled, Account | None]]:
        counted = yield from count(self._store, email, address, device)
        if isinstance(counted, Throttled):
            return counted, None
        return counted, (yield from ACCOUNTS.find(self._dialect, email=email if is_email(email) else ""))

    def _succeed(self, account: Account, kept: str, counted: Counted) -> Script[Account | None]:
        """Let in whoever proved a password, if it still is that of an account that can be used."""
        same = {"id": account.id, "password": account.password, "disabled_at": None}
        found = yield from ACCOUNTS.change(self._dialect, same, password=kept)
        if found is not None:
            yield from forgive(self._store, counted)
        return found

    async def _hash(self, password: str) -> str:
        async with self._passwords.place():
            return await self._passwords.hash(password)


def _there(found: Account | None, email: str) -> Account:
    if found is None:
        raise Refusal(Code.NOT_FOUND, f"There is no account with the address {email}.")
    return found
