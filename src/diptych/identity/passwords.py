"""Password rules and hashes: argon2id, computed in two threads behind a bounded fair queue.

A hash takes much time and memory, on purpose. So two are computed at once, further requests wait round-robin over
callers, and a full queue refuses. Callers take a slot before they do anything else.
"""

from __future__ import annotations

import base64
import secrets
import unicodedata
from contextlib import AbstractAsyncContextManager
from functools import partial

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from diptych.errors import Code, Refusal
from diptych.identity.workers import Workers

_LEAST, _MOST = 8, 256
_LONGEST = 1024
"""Limit before normalisation, which can make a text shorter or longer."""
_THREADS = 2
_WAITING = 256
_NICE = 10
"""Niceness of the threads: a hash keeps a processor busy for a while."""


def checked_password(text: str) -> str:
    """A new password, normalised; refused if it is too short or too long (NIST SP 800-63B has no other rule)."""
    password = _normalised(text)
    if password is None:
        raise Refusal(Code.BAD_USER_INPUT, f"A password has {_LEAST} to {_MOST} characters.")
    return password


def _normalised(text: str) -> str | None:
    """The text in NFKC; None if it cannot be a password."""
    if len(text) > _LONGEST:
        return None
    normalised = unicodedata.normalize("NFKC", text)
    try:
        normalised.encode()
    except UnicodeEncodeError:
        return None
    return normalised if _LEAST <= len(normalised) <= _MOST else None


class Passwords:
    """Hashes passwords, and verifies them against stored hashes."""

    def __init__(self, hasher: PasswordHasher | None = None, waiting: int = _WAITING) -> None:
        self._hasher = hasher or PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._decoy = _decoy(self._hasher)
        self._workers = Workers(_THREADS, waiting, "diptych-password", "Too many sign-ins at once; try again.", _NICE)

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait for a slot of the hashing threads, and hold it."""
        return self._workers.slot()

    async def hash(self, password: str) -> str:
        """The hash of a new password."""
        return await self._workers.run(partial(self._hasher.hash, checked_password(password)))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Does the password match the stored hash? Without a hash, the answer is no and takes the same work."""
        normalised = _normalised(password)
        if stored is None or normalised is None:
            stored, normalised = self._decoy, normalised or ""
        return await self._workers.run(partial(self._verify, stored, normalised))

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    def is_outdated(self, stored: str) -> bool:
        """Was it hashed with other parameters than new hashes are?"""
        return self._hasher.check_needs_rehash(stored)


def _decoy(hasher: PasswordHasher) -> str:
    """A hash of no password, which takes as much work to verify as any other."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    cost = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${cost}${salt}${digest}"
