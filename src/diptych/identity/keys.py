"""The keys that sign access tokens. The newest signs; older ones verify what they signed, until they are removed.

A process takes a new key within a second. So a key has signed its last token a moment after the next one was made, and
can be removed when that token has expired. One that others may know must go at once: its tokens end with it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from diptych.db.records import Records
from diptych.db.store import KeyRow, Store
from diptych.errors import Code, Refusal
from diptych.identity.tokens import LIFETIME, SKEW, new_signing_key

_KEYS = Records("diptych_keys", KeyRow)
_HELD = timedelta(seconds=LIFETIME + SKEW)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key as it is told of: never with its secret."""

    kid: str
    created_at: datetime
    needed_until: datetime | None
    """When the last token that it signed has expired; None if it is the one that signs."""

    @property
    def is_needed(self) -> bool:
        return self.needed_until is None or self.needed_until > datetime.now(UTC)


async def key_rows(store: Store) -> list[KeyRow]:
    """All keys with their secrets, the newest last."""
    return await _KEYS.all(store, "created_at", kind="token")


async def signing_keys(store: Store) -> list[SigningKey]:
    """All keys, the one that signs first."""
    rows = [(row.kid, datetime.fromisoformat(row.created_at)) for row in await key_rows(store)]
    older = [SigningKey(kid, made, after + _HELD) for (kid, made), (_, after) in pairwise(rows)]
    return [SigningKey(kid, made, None) for kid, made in rows[-1:]] + older[::-1]


async def rotate(store: Store) -> str:
    """Sign with a new key from now on; gives its name."""
    row = new_signing_key(secrets.token_hex(4))
    await store.add_key(row)
    return row.kid


async def remove_key(store: Store, kid: str, *, at_once: bool = False) -> None:
    """Remove a key that signs no longer; one whose tokens may still hold only if they are to end at once."""
    found = next((key for key in await signing_keys(store) if key.kid == kid), None)
    if found is None:
        raise Refusal(Code.NOT_FOUND, f"There is no key named {kid!r}.")
    if found.needed_until is None:
        raise Refusal(Code.CONFLICT, f"The key {kid!r} is the one that signs; rotate first.")
    if found.is_needed and not at_once:
        until = f"{found.needed_until:%Y-%m-%d %H:%M:%S} UTC"
        raise Refusal(Code.CONFLICT, f"The key {kid!r} is needed until {until}: tokens that it signed may hold.")
    await store.write(lambda: _KEYS.remove(store.dialect, kid=kid, kind="token"))
