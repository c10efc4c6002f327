"""Revokes all grants and tokens of an account or of a client.

Every grant gets a revocation of its own, so that a token that is just being made of it ends too, whatever its issue
time. Codes go first: an exchange that runs meanwhile has made its grant by then, or makes none.
"""

from __future__ import annotations

import secrets
from typing import Literal

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.records import LOGIN_SESSIONS, REVOCATIONS, SECOND_STEPS, TOTP_KEYS, Revocation, unix_time
from diptych.identity.tokens import TOKEN_LIFETIME

_CODES = "DELETE FROM diptych_codes WHERE {1} = {0}1"
_DEVICES = "DELETE FROM diptych_device_codes WHERE {1} = {0}1"
_REVOKE = """
    INSERT INTO diptych_revocations (id, kind, what, at, expires_at)
    SELECT {0}1 || id, 'grant', id, CAST({0}2 AS bigint), CAST({0}3 AS bigint)
    FROM diptych_grants WHERE {1} = {0}4 AND revoked_at IS NULL AND expires_at > {0}5
"""
_END = "UPDATE diptych_grants SET revoked_at = {0}2 WHERE {1} = {0}1 AND revoked_at IS NULL"


def revoke_account(store: Store, account: str, revocation: Revocation) -> Script[None]:
    """Revoke the tokens and grants of an account, and end its login sessions, half ones too. A key for an authenticator
    app that these have seen, and no code has confirmed, ends with them."""
    yield from LOGIN_SESSIONS.remove(store.dialect, account_id=account)
    yield from SECOND_STEPS.remove(store.dialect, account_id=account)
    yield from TOTP_KEYS.remove(store.dialect, account_id=account, confirmed_at=None)
    yield from revoke_grants(store, "account_id", account, revocation)


def revoke_grants(
    store: Store, column: Literal["account_id", "client_id"], id: str, revocation: Revocation
) -> Script[None]:
    """Revoke the tokens and grants of an account or of a client."""
    texts = (_CODES, _DEVICES, _REVOKE, _END)
    codes, devices, revoke, end = (text.format(store.dialect.placeholder, column) for text in texts)
    yield Step(codes, (id,))
    yield Step(devices, (id,))
    yield Step(
        revoke,
        (secrets.token_urlsafe(12) + ":", revocation.at, revocation.expires_at, id, unix_time() - TOKEN_LIFETIME),
    )
    yield Step(end, (id, unix_time()))
    yield from REVOCATIONS.add(store.dialect, revocation)
