"""Verified e-mail addresses: which account has proven the address that it has now.

is_verified = await email_is_verified(store, account)         the claim `email_verified` of OpenID Connect
"""

from __future__ import annotations

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.records import VERIFIED_EMAILS, Account, VerifiedEmail, unix_time


async def email_is_verified(store: Store, account: Account) -> bool:
    """Has the owner of an account proven its address?"""
    found = await store.write(lambda: VERIFIED_EMAILS.find(store.dialect, account_id=account.id, email=account.email))
    return found is not None


def verify_email(store: Store, account: Account) -> Script[None]:
    """Record that the address of an account is proven."""
    yield from VERIFIED_EMAILS.remove(store.dialect, account_id=account.id)
    yield from VERIFIED_EMAILS.add(store.dialect, VerifiedEmail(account.id, account.email, unix_time()))
