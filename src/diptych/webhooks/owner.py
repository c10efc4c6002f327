"""The owner of a webhook: whose rules judge what it is sent, as they are when it is sent.

{"roles": ["partner"], "user": null}     fixed, by the model or by command
{"account": "k3J…"}                      an account: its roles now, and nothing once it is disabled or removed
{"of": "01a0…"}                          a user of the model: the roles of its accounts now
    {"key": "9f2c…"}                         an API key: nothing once it is removed or has expired
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from diptych.db.store import Store
from diptych.identity.records import ACCOUNTS, API_KEYS, unix_time
from diptych.model.declare.roles import Claims, Viewer
from diptych.model.model import Model


def fixed_owner(roles: Iterable[str], user: str | None = None) -> str:
    """An owner with these roles."""
    return json.dumps({"roles": sorted(roles), "user": user})


def account_owner(id: str) -> str:
    """An owner that is an account."""
    return json.dumps({"account": id})


def user_owner(id: str) -> str:
    """An owner that is a user of the model."""
    return json.dumps({"of": id})


def key_owner(id: str) -> str:
    """An owner that is an API key."""
    return json.dumps({"key": id})


async def viewer_of(owner: str, store: Store, model: Model) -> Viewer | None:
    """The viewer that an owner is now; None if there is none."""
    claims = await _claims(json.loads(owner), store)
    return None if claims is None else model.viewer_of(claims)


async def _claims(owner: dict[str, object], store: Store) -> Claims | None:
    if "account" in owner:
        account = next(iter(await ACCOUNTS.all(store, "id", id=owner["account"])), None)
        if account is None or account.disabled_at is not None:
            return None
        return Claims(account.user_id, frozenset(account.roles), None, 0, {"account": account.id})
    if "of" in owner:
        accounts = await ACCOUNTS.all(store, "id", user_id=owner["of"])
        enabled = [account for account in accounts if account.disabled_at is None]
        if accounts and not enabled:
            return None
        roles = frozenset(role for account in enabled for role in account.roles)
        return Claims(str(owner["of"]), roles, None, 0, {})
    if "key" in owner:
        key = next(iter(await API_KEYS.all(store, "id", id=owner["key"])), None)
        if key is None or (key.expires_at is not None and key.expires_at <= unix_time()):
            return None
        scopes = None if key.scopes is None else frozenset(key.scopes)
        return Claims(key.user_id, frozenset(key.roles), scopes, 0, {})
    named, user = owner.get("roles"), owner.get("user")
    assert isinstance(named, list)
    return Claims(user if isinstance(user, str) else None, frozenset(named), None, 0, {})
