"""Keys for machines: a secret that is used as a bearer token, until it is removed or expires.

    dk_<id>_<secret>        the id names the record, which has a hash of the whole

A key is looked up once a minute while it is used, which is also when its last use is noted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.checks import checked_name, checked_user
from diptych.identity.records import API_KEYS, REVOCATIONS, ApiKey, Revocation, hashed, new_secret, now
from diptych.identity.revoked import Revoked, revocation
from diptych.model.roles import Claims

PREFIX = "dk_"
_FRESH = 60
"""Seconds for which a key that was looked up is believed."""
_FORM = re.compile(rf"{PREFIX}([0-9a-f]{{16}})_[A-Za-z0-9_-]{{43}}")


def is_api_key(token: str) -> bool:
    return token.startswith(PREFIX)


class ApiKeys:
    """The API keys of a store."""

    def __init__(self, store: Store, revoked: Revoked) -> None:
        self._store = store
        self._dialect = store.dialect
        self._revoked = revoked

    async def all(self) -> list[ApiKey]:
        return await API_KEYS.all(self._store, "name")

    async def add(
        self, name: str, user: str | None = None, roles: Iterable[str] = (), scopes: Iterable[str] | None = None,
        ttl: int | None = None,
    ) -> tuple[ApiKey, str]:  # fmt: skip
        """A new key, and its text, which is shown once and kept nowhere. Scopes narrow it; without, it is not."""
        id, secret = secrets.token_hex(8), new_secret()
        text = f"{PREFIX}{id}_{secret}"
        key = ApiKey(
            id, checked_name(name), hashed(text), checked_user(user), tuple(sorted(roles)),
            None if scopes is None else tuple(sorted(scopes)), now(), None if ttl is None else now() + ttl, None,
        )  # fmt: skip
        if not await self._store.write(lambda: API_KEYS.add(self._dialect, key)):
            raise Refusal(Code.CONFLICT, f"There is an API key named {name!r} already.")
        return key, text

    async def remove(self, name: str) -> ApiKey:
        """Remove a key; it ends at once where others have just looked it up, too."""
        name = checked_name(name)

        def script() -> Script[tuple[ApiKey, Revocation]]:
            key = yield from API_KEYS.remove(self._dialect, name=name)
            if key is None:
                raise Refusal(Code.NOT_FOUND, f"There is no API key named {name!r}.")
            ended = revocation("token", _revocable(key.id), _FRESH)
            yield from REVOCATIONS.add(self._dialect, ended)
            return key, ended

        key, ended = await self._store.write(script)
        self._revoked.take([ended])
        return key


async def look_up(store: Store, text: str) -> Claims | None:
    """What a key says of whoever holds it; None if it is no key that holds now."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    found = next(iter(await API_KEYS.all(store, "id", id=form[1])), None)
    moment = now()
    if found is None or not secrets.compare_digest(found.hash, hashed(text)):
        return None
    if found.expires_at is not None and found.expires_at <= moment:
        return None
    await _note_use(store, found, moment)
    until = moment + _FRESH if found.expires_at is None else min(moment + _FRESH, found.expires_at)
    scopes = None if found.scopes is None else frozenset(found.scopes)
    return Claims(found.user_id, frozenset(found.roles), scopes, until, {"jti": _revocable(found.id), "iat": moment})


async def _note_use(store: Store, key: ApiKey, moment: int) -> None:
    """Note the last use, to the minute, whichever process sees it first."""
    if key.used_at is None or key.used_at <= moment - _FRESH:
        seen = {"id": key.id, "used_at": key.used_at}
        await store.write(lambda: API_KEYS.change(store.dialect, seen, used_at=moment))


def _revocable(id: str) -> str:
    """The name by which a key is revoked, which no token has."""
    return f"api-key:{id}"
