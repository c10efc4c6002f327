"""Links of mails that are used at once with another change of their account: one of both is refused."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from diptych.db.store import Session
from diptych.errors import Code, Refusal
from diptych.identity.email_accounts import EmailAccounts
from diptych.identity.email_links import add_link
from diptych.identity.records import Account
from diptych.identity.revocation_list import revocation
from tests.contract.identity.desk import ANN, BEN, PASSWORD, WRONG, Desk


def changes_of(one: Desk) -> EmailAccounts:
    post: Any = SimpleNamespace(outbox=None)
    return EmailAccounts(one.store, one.accounts.hash, one.revoked, post)


def test_a_new_password_while_the_address_changes(one: Desk) -> None:
    """The old address got the link that sets it. On PostgreSQL, its use waits until the change is committed."""
    changes, changing = changes_of(one), asyncio.Event()
    before = one.run(one.accounts.add(ANN, PASSWORD, user="u1"))
    change = one.run(one.store.write(lambda: add_link(one.store, "change", BEN, before, "")))
    reset = one.run(one.store.write(lambda: add_link(one.store, "reset", ANN, before, "")))

    async def linger(session: Session, user: str, email: str) -> None:
        changing.set()
        await asyncio.sleep(0.2)

    async def set_password() -> Code | None:
        await changing.wait()
        try:
            await changes.set_password(reset, WRONG)
        except Refusal as refusal:
            return refusal.code
        return None

    changed, refused = one.gather(changes.change_email(change, linger), set_password())
    assert (changed, refused) == (replace(before, email=BEN), Code.NOT_FOUND)
    assert isinstance(one.sign_in(BEN), Account)


def test_a_change_of_address_that_has_not_seen_a_new_password(one: Desk) -> None:
    changes, before = changes_of(one), one.run(one.accounts.add(ANN, PASSWORD))
    after = one.run(one.accounts.set_password(ANN, WRONG))
    work = one.store.write(lambda: changes._readdress(before, BEN, revocation("account", before.id)))
    assert one.refused(work)[0] is Code.NOT_FOUND
    assert one.run(one.accounts.find(ANN)) == after
