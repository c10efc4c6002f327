"""Whether a store takes changes, as those that were tried have found out.

A disk that is full, or that fails, or a database that is read-only, refuses every change with a 503. That is no fault
of a request, so whoever runs the service must know: the log says it at once, and then at intervals with the number of
failures; `/health/ready` answers 503 until a change works again. Since nobody may send changes to a service that is
not ready, it tries one of its own from time to time (`Probe`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

from diptych.asking import ASKER
from diptych.db.script import Script, Step
from diptych.errors import Code, Refusal

Reason = Literal["", "full", "read-only", "failing"]
log = logging.getLogger("diptych")
_SENTENCES = {
    "full": "The database takes no changes: there is no room left.",
    "read-only": "The database takes no changes: it is read-only.",
    "failing": "The database takes no changes: it cannot store them.",
}
_BETWEEN = 30.0
"""Seconds between two lines in the log."""
_TRIES = 1.0
"""Seconds between two changes that are tried."""


class WriteHealth:
    """What became of the newest change, and how many have failed. For any thread."""

    def __init__(self, reason_of: Callable[[BaseException | None], Reason]) -> None:
        self._reason_of = reason_of
        self.reason: Reason = ""
        """Why changes fail; nothing if they do not."""
        self._failures = 0
        """Since the last line in the log."""
        self._logged = -_BETWEEN
        self._said = False
        """Does the log say that changes fail?"""
        self._tried = 0.0

    def failed(self, error: BaseException | None) -> None:
        """A change failed; if that is the store's fault, it is noted."""
        reason = self._reason_of(error)
        if not reason:
            return
        self.reason = reason
        self._failures += 1
        now = time.monotonic()
        if now - self._logged >= _BETWEEN:
            self._logged = now
            log.error("the database takes no changes (%s), %d failed: %s", reason, self._failures, error)
            self._failures, self._said = 0, True

    def worked(self) -> None:
        """A change was committed."""
        if self.reason:
            self.reason = ""
            if self._said:
                log.warning("the database takes changes again, %d more failed", self._failures)
                self._failures, self._said = 0, False

    def is_due(self) -> bool:
        """Is it time to try a change?"""
        now = time.monotonic()
        if not self.reason or now - self._tried < _TRIES:
            return False
        self._tried = now
        return True


class Probe:
    """Tries a change while changes fail, when someone asks how the store is."""

    def __init__(self, health: WriteHealth, write: Callable[[Callable[[], Script[None]]], Awaitable[None]]) -> None:
        self._health = health
        self._write = write
        self._task: asyncio.Task[None] | None = None

    def check(self) -> None:
        """A Refusal if changes fail. It is not waited for one that is tried: whoever asks next learns of it."""
        if self._health.is_due() and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._try())
        if self._health.reason:
            raise Refusal(Code.UNAVAILABLE, _SENTENCES[self._health.reason])

    async def _try(self) -> None:
        ASKER.set("")
        with suppress(Refusal):  # it is noted
            await self._write(_probe)


def _probe() -> Script[None]:
    """A change that changes nothing, and goes to the disk like any other."""
    yield Step("UPDATE diptych_keys SET created_at = created_at", ())
