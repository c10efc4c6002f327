"""Passwords: which are taken, and how they are kept: by argon2id, in a few threads.

A hash takes much time and memory, on purpose. So two are made at once, some more wait for their turn, one of each
caller after the other, and whoever comes when the queue is full is sent away. Whoever hashes takes a place first,
before anything else is done.
"""

from __future__ import annotations

import base64
import secrets
import unicodedata
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from diptych.errors import Code, Refusal
from diptych.identity.turn import Workers

T = TypeVar("T")
_LEAST, _MOST = 8, 256
_LONGEST = 1024
"""Characters that are looked at before they are normalised: that can make fewer of them, or more."""
_THREADS = 2
_PLACES = 256


def checked_password(text: str) -> str:
    """A new password, normalised; refused if it is too short or too long (NIST SP 800-63B: there is no other rule)."""
    found = _normalised(text)
    if found is None:
        raise Refusal(Code.BAD_USER_INPUT, f"A password has {_LEAST} to {_MOST} characters.")
    return found


def _normalised(text: str) -> str | None:
    """The same text, however it was typed; None if it can be no password."""
    if len(text) > _LONGEST:
        return None
    found = unicodedata.normalize("NFKC", text)
    try:
        found.encode()
    except UnicodeEncodeError:
        return None
    return found if _LEAST <= len(found) <= _MOST else None


class Passwords:
    """Hashes passwords, and holds them against what is kept."""

    def __init__(self, hasher: PasswordHasher | None = None, places: int = _PLACES) -> None:
        self._hasher = hasher or PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._decoy = _decoy(self._hasher)
        self._workers = Workers(_THREADS, places, "diptych-password", "Too many are signing in; try again.")

    def place(self) -> AbstractAsyncContextManager[None]:
        """A place among those who hash, which is waited for."""
        return self._workers.turn()

    async def hash(self, password: str) -> str:
        """What is kept of a new password."""
        return await self._run(partial(self._hasher.hash, checked_password(password)))

    async def verify(self, kept: str | None, password: str) -> bool:
        """Is this the password of which that is kept? Where nothing is, a no takes the same work."""
        found = _normalised(password)
        if kept is None or found is None:
            kept, found = self._decoy, found or ""
        return await self._run(partial(self._verify, kept, found))

    def _verify(self, kept: str, password: str) -> bool:
        try:
            return self._hasher.verify(kept, password)
        except (VerificationError, InvalidHashError):
            return False

    def is_outdated(self, kept: str) -> bool:
        """Was it hashed in another way than new ones are?"""
        return self._hasher.check_needs_rehash(kept)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._workers.run(work)


def _decoy(hasher: PasswordHasher) -> str:
    """A hash of no password, which takes as much work to verify as any."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    cost = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${cost}${salt}${digest}"
