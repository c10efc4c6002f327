"""Links that are sent by mail: sign-up, a new password, verification and change of an address.

A link has a token of 256 random bits, of which the store has the hash. It is valid for a short time, for one use, and
only while the account is as it was: a link that was sent before the password or the address changed ends with that.
Looking at a link changes nothing, since mail servers open links to scan them; only its form uses it.
"""

from __future__ import annotations

import itertools
from typing import Literal

from msgspec import Struct

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.records import ACCOUNTS, EMAIL_LINKS, Account, EmailLink, hashed, new_secret, unix_time

Purpose = Literal["sign-up", "reset", "verify", "change"]
LIFETIMES: dict[Purpose, int] = {"sign-up": 3_600, "reset": 1_800, "verify": 86_400, "change": 3_600}
"""Seconds for which links are valid."""
_SWEEP = 100
"""One in this many links also removes expired ones."""
_made = itertools.count()


class FoundLink(Struct, frozen=True):
    """A link that can be used, and its account; that of a sign-up has none yet."""

    record: EmailLink
    account: Account | None


def account_state(account: Account | None) -> str:
    """The state of an account that a link is bound to: its address and its password."""
    return "" if account is None else hashed(f"{account.id}\n{account.email}\n{account.password}")


def unchanged(account: Account) -> dict[str, str | None]:
    """What of an account a use of its link finds as it was when the link was looked at: another one may run at once."""
    return {"id": account.id, "email": account.email, "password": account.password}


def add_link(store: Store, purpose: Purpose, email: str, account: Account | None, goes_on: str) -> Script[str]:
    """Make a link and return its token."""
    if next(_made) % _SWEEP == 0:
        yield from EMAIL_LINKS.sweep(store.dialect, "expires_at", unix_time())
    token = new_secret()
    owner = None if account is None else account.id
    expires = unix_time() + LIFETIMES[purpose]
    record = EmailLink(hashed(token), purpose, email, owner, account_state(account), goes_on, expires)
    yield from EMAIL_LINKS.add(store.dialect, record)
    return token


def find_link(store: Store, token: str) -> Script[FoundLink | None]:
    """The link of a token, if it can be used now."""
    record = yield from EMAIL_LINKS.find(store.dialect, hash=hashed(token))
    return None if record is None else (yield from _usable(store, record))


def use_link(store: Store, token: str, purpose: Purpose) -> Script[FoundLink | None]:
    """Use a link up: of several attempts at once, one gets it. To be called in the transaction of its effect."""
    record = yield from EMAIL_LINKS.remove(store.dialect, hash=hashed(token), purpose=purpose)
    return None if record is None else (yield from _usable(store, record))


def _usable(store: Store, record: EmailLink) -> Script[FoundLink | None]:
    if record.expires_at <= unix_time():
        return None
    if record.purpose == "sign-up":
        taken = yield from ACCOUNTS.find(store.dialect, email=record.email)
        return FoundLink(record, None) if taken is None else None
    if record.account_id is None:
        return None
    account = yield from ACCOUNTS.find(store.dialect, id=record.account_id, disabled_at=None)
    return FoundLink(record, account) if account is not None and account_state(account) == record.state else None
