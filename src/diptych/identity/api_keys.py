"""API keys: long-lived secrets for machines, sent as bearer tokens until they are removed or expire.

    dk_<id>_<secret>        the id names the record, which has a hash of the whole

A key is looked up at most once a minute while it is used; that is also when its last use is recorded.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.checks import checked_name, checked_user
from diptych.identity.records import API_KEYS, REVOCATIONS, ApiKey, Revocation, hashed, new_secret, unix_time
from diptych.identity.revocation_list import RevocationList, revocation
from diptych.model.declare.roles import Claims

KEY_PREFIX = "dk_"
_REVOKED = "api-key:"
_FRESH = 60
"""Seconds for which a key that was looked up is cached."""
_FORM = re.compile(rf"{KEY_PREFIX}([0-9a-f]{{16}})_[A-Za-z0-9_-]{{43}}")


def is_api_key(token: str) -> bool:
    return token.startswith(KEY_PREFIX)


class ApiKeys:
    """The API keys of a store."""

    def __init__(self, store: Store, revoked: RevocationList) -> None:
        self._store = store
        self._dialect = store.dialect
        self._revoked = revoked

    async def all(self) -> list[ApiKey]:
        return await API_KEYS.all(self._store, "name")

    async def add(
        self,
        name: str,
        user: str | None = None,
        roles: Iterable[str] = (),
        scopes: Iterable[str] | None = None,
        ttl: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Add a key. Its text is returned once and never stored. `scopes` narrow it; None leaves it as wide as its
        roles."""
        id, secret = secrets.token_hex(8), new_secret()
        text = f"{KEY_PREFIX}{id}_{secret}"
        key = ApiKey(
            id,
            checked_name(name),
            hashed(text),
            checked_user(user),
            tuple(sorted(roles)),
            None if scopes is None else tuple(sorted(scopes)),
            unix_time(),
            None if ttl is None else unix_time() + ttl,
            None,
        )
        if not await self._store.write(lambda: API_KEYS.add(self._dialect, key)):
            raise Refusal(Code.CONFLICT, f"There is an API key named {name!r} already.")
        return key, text

    async def remove(self, name: str) -> ApiKey:
        """Remove a key, and revoke it in the caches of other processes."""
        name = checked_name(name)

        def script() -> Script[tuple[ApiKey, Revocation]]:
            key = yield from API_KEYS.remove(self._dialect, name=name)
            if key is None:
                raise Refusal(Code.NOT_FOUND, f"There is no API key named {name!r}.")
            revoked = revocation("token", _revocation_name(key.id), _FRESH)
            yield from REVOCATIONS.add(self._dialect, revoked)
            return key, revoked

        return await self._revoked.write(script)


async def look_up(store: Store, text: str) -> Claims | None:
    """The claims of a key; None if it is unknown, wrong or expired."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    key = next(iter(await API_KEYS.all(store, "id", id=form[1])), None)
    moment = unix_time()
    if key is None or not secrets.compare_digest(key.hash, hashed(text)):
        return None
    if key.expires_at is not None and key.expires_at <= moment:
        return None
    with suppress(Refusal):  # a database that takes no changes answers reads as before
        await _record_use(store, key, moment)
    until = moment + _FRESH if key.expires_at is None else min(moment + _FRESH, key.expires_at)
    scopes = None if key.scopes is None else frozenset(key.scopes)
    more = {"jti": _revocation_name(key.id), "iat": moment, "exp": key.expires_at}
    return Claims(key.user_id, frozenset(key.roles), scopes, until, more)


async def _record_use(store: Store, key: ApiKey, moment: int) -> None:
    """Record the last use, to the minute: the first process that sees it writes."""
    if key.used_at is None or key.used_at <= moment - _FRESH:
        unchanged = {"id": key.id, "used_at": key.used_at}
        await store.write(lambda: API_KEYS.change(store.dialect, unchanged, used_at=moment))


def _revocation_name(id: str) -> str:
    """The name under which a key is revoked; no `jti` of a token has this form."""
    return _REVOKED + id


def key_id_of(claims: Claims) -> str | None:
    """The id of the API key with these claims; None if they are those of a token."""
    name = claims.get("jti")
    return name.removeprefix(_REVOKED) if isinstance(name, str) and name.startswith(_REVOKED) else None
