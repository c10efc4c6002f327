"""A queue of mails that has room for one mail only: the old address is warned first, or nothing is sent."""

from __future__ import annotations

import asyncio
from email.headerregistry import Address
from email.message import EmailMessage

from diptych.errors import Code
from diptych.identity.email_accounts import EmailAccounts
from diptych.identity.mail.outbox import Outbox
from diptych.identity.mail.post import Mailer
from diptych.identity.mail.templates import Templates
from tests.contract.identity.desk import ANN, BEN, HOME, PASSWORD, Desk


class Nobody:
    """Delivers nothing, and notes to whom."""

    def __init__(self) -> None:
        self.to: list[str] = []

    def deliver(self, mail: EmailMessage) -> None:
        self.to.append(str(mail["To"]))


def test_a_change_of_address_is_not_begun_without_a_word_to_the_old_one(one: Desk) -> None:
    nobody = Nobody()

    async def ask() -> None:
        mailer = Mailer(Outbox(nobody, most=1), Templates(), Address("", addr_spec="x@example.org"), "Shop")
        accounts = EmailAccounts(one.store, one.accounts.hash, one.revoked, mailer)
        account = await one.accounts.add(ANN, PASSWORD)
        try:
            await accounts.ask_change(account, BEN, HOME, "https://shop.example/oauth")
        finally:
            while mailer.outbox.waiting:
                await asyncio.sleep(0.01)
            await accounts.stop()

    assert one.refused(ask())[0] is Code.UNAVAILABLE
    assert nobody.to == [ANN]
