"""The row of someone who signs up or changes an address is audited, in the name of the pages of the service."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from diptych import Audited, MaxLen, MinLen, Model, Resource, Role, SignUp, Unique, grant, signed_in
from diptych.audit.appender import Appender
from diptych.audit.log import Chosen, exported
from tests.system.accounts.club import PASSWORD, Club, clubbed
from tests.system.accounts.test_addresses import do

friend = Role("friend")


class Member(Resource, audit=Audited()):
    """Whoever has an account."""

    name: Annotated[str, MinLen(2), MaxLen(20)]
    email: Annotated[str, Unique()]
    access = (grant("read", to=signed_in),)


MODEL = Model(Member, title="The Club", user=Member, sign_up=SignUp(email="email", fields=("name",), roles=(friend,)))


def entries(club: Club) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        store = club.service.app.store
        await Appender(store, MODEL).append()
        return [json.loads(line) async for line in exported(store, Chosen())]

    return club.run(read())


def test_who_signs_up_and_changes_the_address_does_so_by_the_channel_account(
    database: str, runner: asyncio.Runner
) -> None:
    with clubbed(database, runner, MODEL) as club:
        email, other = club.member(), club.address()
        club.json("reset", {"email": email})  # a password is no row of the model
        assert club.json("confirm", {"token": club.token(email), "password": PASSWORD + "2"}).status == 200
        browser = club.signed_in(email, PASSWORD + "2")
        page = do(club, browser, "change", email=other, password=PASSWORD + "2")
        assert b"on its way to the new address" in page.body
        confirmed = browser.submit(browser.get(club.link(other)), "confirm")
        assert confirmed.status in (200, 303), confirmed.body
        found = entries(club)
        assert [(entry["kind"], entry["actor"]["channel"]) for entry in found] == [
            ("CREATED", "account"),
            ("UPDATED", "account"),
        ]
        assert [entry["new"]["email"] for entry in found] == [email, other]
        assert all("request" in entry["actor"] and "user" not in entry["actor"] for entry in found)
