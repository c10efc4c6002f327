"""Accounts: e-mail address, password hash, roles, and the user of the model that `viewer.id` names.

The tokens of an account carry its roles. So a change of its roles or password, and its removal, revoke its grants and
tokens and end its login sessions, in one transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.checks import checked_email, checked_user, is_email, normalised_email
from diptych.identity.passwords import Passwords
from diptych.identity.records import ACCOUNTS, EMAIL_LINKS, VERIFIED_EMAILS, Account, Revocation, unix_time
from diptych.identity.revocation_list import RevocationList, revocation
from diptych.identity.revoke import revoke_account
from diptych.identity.second_factor import forget_second_factor
from diptych.identity.throttle import Counted, Throttled, count, forgive


class Accounts:
    """The accounts of a store."""

    def __init__(self, store: Store, revoked: RevocationList, passwords: Passwords | None = None) -> None:
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
        """Add an account; one without a password cannot sign in until it has one."""
        email, user = checked_email(email), checked_user(user)
        hash = None if password is None else await self.hash(password)
        account = Account(secrets.token_urlsafe(12), email, hash, user, tuple(sorted(roles)), None, unix_time())
        if not await self._store.write(lambda: ACCOUNTS.add(self._dialect, account)):
            raise Refusal(Code.CONFLICT, f"There is an account with the address {email} already.")
        return account

    async def set_password(self, email: str, password: str) -> Account:
        return await self._change(email, password=await self.hash(password))

    async def set_roles(self, email: str, roles: Iterable[str]) -> Account:
        return await self._change(email, roles=tuple(sorted(roles)))

    async def disable(self, email: str) -> Account:
        """Disable an account until it is enabled again, and revoke what it holds, with the links of its mails."""
        email = checked_email(email)

        def change() -> Script[Account | None]:
            account = yield from ACCOUNTS.find(self._dialect, email=email)
            if account is None:
                return None
            yield from EMAIL_LINKS.remove(self._dialect, account_id=account.id)  # first, as one who uses a link does
            return (yield from ACCOUNTS.change(self._dialect, {"id": account.id}, disabled_at=unix_time()))

        return await self._change_and_revoke(email, change)

    async def enable(self, email: str) -> Account:
        email = checked_email(email)
        account = await self._store.write(lambda: ACCOUNTS.change(self._dialect, {"email": email}, disabled_at=None))
        return _existing(account, email)

    async def reset_totp(self, email: str) -> tuple[Account, bool]:
        """Turn off the authenticator app of an account; also returns whether it had one."""
        email, had = checked_email(email), [False]

        def change() -> Script[Account | None]:
            account = yield from ACCOUNTS.find(self._dialect, email=email)
            if account is not None:
                had[0] = yield from forget_second_factor(self._store, account.id)
            return account

        return await self._change_and_revoke(email, change), had[0]

    async def remove(self, email: str) -> Account:
        email = checked_email(email)
        return await self._change_and_revoke(email, lambda: self._remove(email))

    def _remove(self, email: str) -> Script[Account | None]:
        account = yield from ACCOUNTS.remove(self._dialect, email=email)
        if account is not None:
            yield from VERIFIED_EMAILS.remove(self._dialect, account_id=account.id)
            yield from forget_second_factor(self._store, account.id)
        return account

    async def _change(self, email: str, **values: Any) -> Account:
        """Change a property that tokens carry, and revoke the tokens that exist."""
        email = checked_email(email)
        return await self._change_and_revoke(email, lambda: ACCOUNTS.change(self._dialect, {"email": email}, **values))

    async def _change_and_revoke(self, email: str, change: Callable[[], Script[Account | None]]) -> Account:
        """Make a change, and revoke grants, tokens and login sessions of the account in the same transaction."""

        def script() -> Script[tuple[Account, Revocation]]:
            account = _existing((yield from change()), email)
            revoked = revocation("account", account.id)
            yield from revoke_account(self._store, account.id, revoked)
            return account, revoked

        return await self._revoked.write(script)

    # signing in

    async def authenticate(
        self, email: str, password: str, address: str, device: str = ""
    ) -> Account | Throttled | None:
        """Check an address and a password, and give the account; None takes the same work for every reason.

        `device` names a browser in which the account has signed in before (`devices.py`).
        """
        email = normalised_email(email)
        async with self._passwords.slot():
            counted, account = await self._store.write(lambda: self._attempt(email, address, device))
            if isinstance(counted, Throttled):
                return counted
            hash = account.password if account else None
            if not await self._passwords.verify(hash, password) or account is None or hash is None:
                return None
            new_hash = await self._passwords.hash(password) if self._passwords.is_outdated(hash) else hash
            attempted = account
            return await self._store.write(lambda: self._succeed(attempted, new_hash, counted))

    def _attempt(self, email: str, address: str, device: str) -> Script[tuple[Counted | Throttled, Account | None]]:
        counted = yield from count(self._store, email, address, device)
        if isinstance(counted, Throttled):
            return counted, None
        return counted, (yield from ACCOUNTS.find(self._dialect, email=email if is_email(email) else ""))

    def _succeed(self, account: Account, hash: str, counted: Counted) -> Script[Account | None]:
        """Accept a correct password, if the account still has it and is not disabled."""
        unchanged = {"id": account.id, "password": account.password, "disabled_at": None}
        updated = yield from ACCOUNTS.change(self._dialect, unchanged, password=hash)
        if updated is not None:
            yield from forgive(self._store, counted)
        return updated

    async def hash(self, password: str) -> str:
        """The hash of a new password; a Refusal if it is too short or too long."""
        async with self._passwords.slot():
            return await self._passwords.hash(password)


def _existing(account: Account | None, email: str) -> Account:
    if account is None:
        raise Refusal(Code.NOT_FOUND, f"There is no account with the address {email}.")
    return account
