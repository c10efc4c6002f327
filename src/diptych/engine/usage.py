"""Counts who still uses what is deprecated, by name, role and OAuth client; added to the database each minute.

    ("Post.title", "editor", "c_8f2a…")  →  42 requests since the last flush

Names and roles come from the model, so their number is bounded; clients beyond the first thousand in a minute, and
beyond the rows that the table may have, are counted together as "(other)".
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable

from diptych.db.store import Store
from diptych.db.usage import UsageKey, add_usage
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.identity.tokens import client_of
from diptych.identity.viewer import Caller
from diptych.model.declare.roles import ANONYMOUS, SIGNED_IN
from diptych.model.deprecation import Deprecated

log = logging.getLogger("diptych")
_EVERY = 60.0
"""Seconds between two flushes, with jitter for several processes."""
_MOST = 1_000
"""Counts in memory."""
OTHER = "(other)"


class Usage:
    """The counts of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts: dict[UsageKey, int] = {}
        self._going = Background()

    def note(self, used: Iterable[Deprecated], caller: Caller) -> None:
        """Count one request."""
        role = _role(caller)
        client = (client_of(caller.claims) if caller.claims is not None else None) or ""
        for part in used:
            key = (part.name, role, client)
            if key not in self._counts and len(self._counts) >= _MOST:
                key = (part.name, role, OTHER)
            self._counts[key] = self._counts.get(key, 0) + 1

    def start(self) -> None:
        self._going.start(self._rounds())

    async def stop(self) -> None:
        """End the rounds, and add what is counted."""
        await self._going.stop()
        await self.flush()

    async def flush(self) -> None:
        """Add the counts to those in the database; if that fails, they are kept for the next time."""
        counts, self._counts = self._counts, {}
        if not counts:
            return
        try:
            await self._store.write(lambda: add_usage(self._store.dialect, counts, int(time.time()), OTHER))
        except Exception as error:
            for key, count in counts.items():
                self._counts[key] = self._counts.get(key, 0) + count
            if isinstance(error, Refusal):
                log.warning("the usage of what is deprecated was not stored: %s", error)
            else:
                log.exception("the usage of what is deprecated was not stored")

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(_EVERY * random.uniform(0.8, 1.2))
            await self.flush()


def _role(caller: Caller) -> str:
    """The roles of a caller in one word: `admin+staff`, `signed_in`, `anonymous`."""
    if not caller.viewer.signed_in:
        return ANONYMOUS
    return "+".join(sorted(caller.signature.roles - {SIGNED_IN})) or SIGNED_IN
