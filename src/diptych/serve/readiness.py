"""Whether a service can serve requests: `/health/ready`.

It cannot while it shuts down, while the database does not answer or takes no changes (a full disk, a lost primary), and
while the database does not fit the model: a migration is pending, or one of a later model was applied. The last is
looked up in the background, in a thread and on a connection of its own, at most every half minute.
"""

from __future__ import annotations

import asyncio
import logging
import time

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.fitting import refusal
from diptych.db.store import Store
from diptych.errors import Code, DiptychError, Refusal
from diptych.model.model import Model

log = logging.getLogger("diptych")
EVERY = 30.0
"""Seconds between two looks at the tables."""


class Readiness:
    """The readiness of one service."""

    def __init__(self, store: Store, model: Model, config: Config) -> None:
        self._store = store
        self._model = model
        self._config = config
        self.is_draining = False
        """Does it shut down?"""
        self.fits = True
        """Did the tables fit the model when they were looked at last?"""
        self._looked = time.monotonic()
        self._looking: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Raise a Refusal if it cannot serve requests."""
        if self.is_draining:
            raise Refusal(Code.UNAVAILABLE, "The service is shutting down.")
        await self._store.ping()
        self._look_again()
        if not self.fits:
            raise Refusal(Code.UNAVAILABLE, "The database does not fit the model: a migration is pending.")

    async def stop(self) -> None:
        """End what runs in the background."""
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)

    def _look_again(self) -> None:
        """Start another look; this check does not wait for it."""
        now = time.monotonic()
        is_due = now - self._looked >= EVERY and (self._looking is None or self._looking.done())
        if is_due and not self._config.database.endswith(":memory:"):
            self._looked = now
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        try:
            fits = await asyncio.to_thread(self._fits)
        except (DiptychError, OSError):  # `ping` says so
            return
        if fits != self.fits:
            log.warning("the database fits the model again" if fits else "the database does not fit the model any more")
        self.fits = fits

    def _fits(self) -> bool:
        async def look() -> bool:
            store = connect(self._config)
            differences, have = await store.look(self._model), await store.catalogue()
            return refusal(differences, self._model, have) is None

        return asyncio.run(look())
