"""Signing in is of the account as it was when the password was checked: any change of it since then ends the attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from diptych.identity.email_accounts import EmailAccounts
from diptych.identity.email_links import add_link
from diptych.identity.login_sessions import LoginSessions, SignedIn
from diptych.identity.oauth.device_codes import DeviceCodes
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.records import DEVICE_CODES, Account
from tests.contract.identity.desk import ANN, BEN, HOME, PASSWORD, WRONG, Desk


async def readdress(one: Desk, account: Account) -> None:
    post: Any = SimpleNamespace(outbox=None)
    token = await one.store.write(lambda: add_link(one.store, "change", BEN, account, ""))
    await EmailAccounts(one.store, one.accounts.hash, one.revoked, post).change_email(token, _no_row)


async def _no_row(session: Any, user: str, email: str) -> None:
    raise AssertionError("the account has no user")


CHANGES: dict[str, Callable[[Desk, Account], Awaitable[Any]]] = {
    "the address": readdress,
    "the password": lambda one, account: one.accounts.set_password(ANN, WRONG),
    "the roles": lambda one, account: one.accounts.set_roles(ANN, ["staff"]),
    "disabled": lambda one, account: one.accounts.disable(ANN),
    "removed": lambda one, account: one.accounts.remove(ANN),
}


@pytest.mark.parametrize("change", [None, *CHANGES])
def test_nothing_begins_for_an_account_that_has_changed(one: Desk, change: str | None) -> None:
    sessions, grants, devices = LoginSessions(one.store), GrantStore(one.store, one.revoked), DeviceCodes(one.store)
    account = one.run(one.accounts.add(ANN, PASSWORD))
    client, _ = one.run(one.clients.add("App", ["https://app.example/back"], device=True))
    started = one.run(devices.add(client.id, "read", HOME))
    assert started is not None
    if change is not None:
        one.run(CHANGES[change](one, account))
    code = one.run(grants.add_code("code", client, account, "https://app.example/back", "read", "x" * 43))
    (waiting,) = one.run(_codes(one))
    allowed = one.run(devices.decide(waiting, SignedIn(account, 0), True))
    begun = one.run(sessions.sign_in(account))
    assert [code, allowed is not None, begun is not None] == [change is None] * 3


async def _codes(one: Desk) -> list[str]:
    """The hashes of the device codes that wait."""
    return [record.hash for record in await DEVICE_CODES.all(one.store, "hash")]
