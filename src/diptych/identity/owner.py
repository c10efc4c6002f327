"""The owner of a webhook or a job: whose rules apply to it, as they are when it is sent or runs.

    {"roles": ["partner"], "user": null}     fixed, by the model, by command, or by a token that names nothing below
    {"account": "k3J…"}                      an account: its roles now, and nothing once it is disabled or removed
    {"of": "01a0…"}                          a user of the model: the roles of its accounts now
    {"key": "9f2c…"}                         an API key: nothing once it is removed or has expired
    {"client": "c1…"}                        an OAuth client: its roles now, and nothing once it is removed

An owner that was made of a token also has its `scopes`, which narrow, and its other `claims`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from diptych.db.store import Store
from diptych.identity.api_keys import key_id_of
from diptych.identity.records import ACCOUNTS, API_KEYS, CLIENTS, unix_time
from diptych.identity.tokens import COMMAND_LINE, is_token_of_ours
from diptych.model.declare.roles import Claims, Viewer, claims_of
from diptych.model.model import Model

_OF_TOKEN = ("exp", "iat", "nbf", "jti")
"""Claims about the token itself, which the owner outlives."""


def fixed_owner(roles: Iterable[str], user: str | None = None) -> str:
    """An owner with these roles."""
    return json.dumps({"roles": sorted(roles), "user": user})


def user_owner(id: str) -> str:
    """An owner that is a user of the model."""
    return json.dumps({"of": id})


def owner_of(viewer: Viewer) -> str:
    """The owner that a viewer is: by its account, key or client if it has one, whose roles may change."""
    claims = claims_of(viewer)
    if claims is None:
        return fixed_owner(())
    named: dict[str, object]
    client, key = claims.get("client_id") if is_token_of_ours(claims) else None, key_id_of(claims)
    if claims.get("account") is not None:
        named = {"account": claims.get("account")}
    elif key is not None:
        named = {"key": key}
    elif claims.subject is None and client not in (None, COMMAND_LINE):
        named = {"client": client}
    else:
        named = {"roles": sorted(claims.roles), "user": claims.subject}
    more = {name: value for name, value in claims.all.items() if name not in _OF_TOKEN}
    scopes = None if claims.scopes is None else sorted(claims.scopes)
    return json.dumps({**named, "scopes": scopes, "claims": more})


async def viewer_of(owner: str, store: Store, model: Model) -> Viewer | None:
    """The viewer that an owner is now; None if there is none."""
    claims = await _claims(json.loads(owner), store)
    return None if claims is None else model.viewer_of(claims)


async def _claims(owner: dict[str, Any], store: Store) -> Claims | None:
    more = owner.get("claims", {})
    scopes = None if owner.get("scopes") is None else frozenset(owner["scopes"])
    if "account" in owner:
        account = next(iter(await ACCOUNTS.all(store, "id", id=owner["account"])), None)
        if account is None or account.disabled_at is not None:
            return None
        return Claims(account.user_id, frozenset(account.roles), scopes, 0, {**more, "account": account.id})
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
        return Claims(key.user_id, frozenset(key.roles), None if key.scopes is None else frozenset(key.scopes), 0, more)
    if "client" in owner:
        client = next(iter(await CLIENTS.all(store, "id", id=owner["client"])), None)
        return None if client is None else Claims(None, frozenset(client.roles), scopes, 0, more)
    named, user = owner.get("roles"), owner.get("user")
    assert isinstance(named, list)
    return Claims(user if isinstance(user, str) else None, frozenset(named), scopes, 0, more)
