"""Rotation of the keys that sign access tokens: the newest signs, older ones verify until they are removed.

A process picks up a new key within a second. So a key has signed its last token a moment after the next one was made,
and can be removed when that token has expired. One that has leaked is removed at once: its tokens end with it.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.records import KEYS
from diptych.identity.tokens import SKEW, TOKEN_LIFETIME, new_signing_key, token_keys

_HELD = timedelta(seconds=TOKEN_LIFETIME + SKEW)


class SigningKey(Struct, frozen=True):
    """A signing key as it is listed, without its secret."""

    kid: str
    created_at: datetime
    needed_until: datetime | None
    """When the last token that it signed has expired; None if it is the one that signs."""

    @property
    def is_needed(self) -> bool:
        return self.needed_until is None or self.needed_until > datetime.now(UTC)


async def signing_keys(store: Store) -> list[SigningKey]:
    """All keys, the one that signs first."""
    rows = [(row.kid, datetime.fromisoformat(row.created_at)) for row in await token_keys(store)]
    older = [SigningKey(kid, made, after + _HELD) for (kid, made), (_, after) in pairwise(rows)]
    return [SigningKey(kid, made, None) for kid, made in rows[-1:]] + older[::-1]


async def rotate_key(store: Store) -> str:
    """Make a new key that signs from now on, whatever the clock says that made the one before; returns its id."""
    row = new_signing_key(secrets.token_hex(4))
    for newest in (await token_keys(store))[-1:]:
        if newest.created_at >= row.created_at:
            after = datetime.fromisoformat(newest.created_at) + timedelta(microseconds=1)
            row = replace(row, created_at=after.isoformat(timespec="microseconds"))
    await store.write(lambda: KEYS.add(store.dialect, row))
    return row.kid


async def remove_key(store: Store, kid: str, *, at_once: bool = False) -> None:
    """Remove a key that no longer signs. While its tokens may be valid, that needs `at_once`."""
    key = next((key for key in await signing_keys(store) if key.kid == kid), None)
    if key is None:
        raise Refusal(Code.NOT_FOUND, f"There is no key named {kid!r}.")
    if key.needed_until is None:
        raise Refusal(Code.CONFLICT, f"The key {kid!r} is the one that signs; rotate first.")
    if key.is_needed and not at_once:
        until = f"{key.needed_until:%Y-%m-%d %H:%M:%S} UTC"
        raise Refusal(Code.CONFLICT, f"The key {kid!r} is needed until {until}: tokens that it signed may hold.")
    await store.write(lambda: KEYS.remove(store.dialect, kid=kid, kind="token"))
