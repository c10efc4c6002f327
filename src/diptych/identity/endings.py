"""Ending all that was given to an account, or to a client.

Grants end with a revocation each, so that a token that is just being made of one ends too, whatever its moment. Codes
go first: whoever is exchanging one meanwhile has made its grant by then, or makes none.
"""

from __future__ import annotations

import secrets
from typing import Literal

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.records import BROWSERS, REVOCATIONS, Revocation, now
from diptych.identity.tokens import LIFETIME

_CODES = "DELETE FROM diptych_codes WHERE {1} = {0}1"
_REVOKE = """
    INSERT INTO diptych_revocations (id, kind, what, at, expires_at)
    SELECT {0}1 || id, 'grant', id, CAST({0}2 AS bigint), CAST({0}3 AS bigint)
    FROM diptych_grants WHERE {1} = {0}4 AND revoked_at IS NULL AND expires_at > {0}5
"""
_END = "UPDATE diptych_grants SET revoked_at = {0}2 WHERE {1} = {0}1 AND revoked_at IS NULL"


def end_account(store: Store, account: str, ended: Revocation) -> Script[None]:
    """End the tokens and grants of an account, and sign it out in all browsers."""
    yield from BROWSERS.remove(store.dialect, account_id=account)
    yield from _end_grants(store, "account_id", account, ended)


def end_client(store: Store, client: str, ended: Revocation) -> Script[None]:
    """End the tokens and grants of a client."""
    yield from _end_grants(store, "client_id", client, ended)


def _end_grants(
    store: Store, column: Literal["account_id", "client_id"], id: str, ended: Revocation
) -> Script[None]:
    codes, revoke, end = (text.format(store.dialect.placeholder, column) for text in (_CODES, _REVOKE, _END))
    yield Step(codes, (id,))
    yield Step(revoke, (secrets.token_urlsafe(12) + ":", ended.at, ended.expires_at, id, now() - LIFETIME))
    yield Step(end, (id, now()))
    yield from REVOCATIONS.add(store.dialect, ended)
