"""Write health: whether the database accepts changes, judged by the changes that were tried.

When the disk is full or fails, or the database is read-only, every change is refused with a 503. That is no fault of a
request, so the operator must know: it is logged at once, and then at intervals with the number of failures, and
`/health/ready` answers 503 until a change works again. Since a service that is not ready may get no changes, it tries
one of its own from time to time (`Probe`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

from diptych.db.script import Script, Step
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER

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
"""Seconds between two probes."""


class WriteHealth:
    """The outcome of the newest change, and the failures so far. Thread-safe."""

    def __init__(self, reason_of: Callable[[BaseException | None], Reason]) -> None:
        self._reason_of = reason_of
        self.reason: Reason = ""
        """Why changes fail; "" if they do not."""
        self._failures = 0
        """Since the last line in the log."""
        self._logged = -_BETWEEN
        self._is_logged = False
        """Was it logged that changes fail?"""
        self._tried = 0.0

    def failed(self, error: BaseException | None) -> None:
        """Note a failed change, if the database is at fault."""
        reason = self._reason_of(error)
        if not reason:
            return
        self.reason = reason
        self._failures += 1
        now = time.monotonic()
        if now - self._logged >= _BETWEEN:
            self._logged = now
            log.error("the database takes no changes (%s), %d failed: %s", reason, self._failures, error)
            self._failures, self._is_logged = 0, True

    def worked(self) -> None:
        """Note a change that was committed."""
        if self.reason:
            self.reason = ""
            if self._is_logged:
                log.warning("the database takes changes again, %d more failed", self._failures)
                self._failures, self._is_logged = 0, False

    def is_due(self) -> bool:
        """Is it time to probe?"""
        now = time.monotonic()
        if not self.reason or now - self._tried < _TRIES:
            return False
        self._tried = now
        return True


class Probe:
    """A write probe: while changes fail, a health check starts a change in the background."""

    def __init__(self, health: WriteHealth, write: Callable[[Callable[[], Script[None]]], Awaitable[None]]) -> None:
        self._health = health
        self._write = write
        self._task: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raise a Refusal if changes fail. A probe is not waited for: the next check sees its outcome."""
        if self._health.is_due() and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._try())
        if self._health.reason:
            raise Refusal(Code.UNAVAILABLE, _SENTENCES[self._health.reason])

    async def _try(self) -> None:
        CALLER.set("")
        with suppress(Refusal):  # `failed` has noted it
            await self._write(_probe)


def _probe() -> Script[None]:
    """A change that changes nothing, and goes to the disk like any other."""
    yield Step("UPDATE diptych_keys SET created_at = created_at", ())
