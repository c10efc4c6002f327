"""Writes at intervals that this process serves, and with which model (`db/nodes.py`)."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket

from diptych.db.nodes import forget_node, node_columns, see
from diptych.db.process_mark import mark_of
from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.fair.background import Background
from diptych.fair.caller import CALLER
from diptych.model.model import Model

log = logging.getLogger("diptych")
_FIRST, _EVERY = 1.0, 20.0
"""Seconds after which a process is written for the first time, and between two times, with jitter."""


class NodeRecord:
    """The row of this process."""

    def __init__(self, store: Store, model: Model) -> None:
        self._store, self._model = store, model
        self._id = f"{secrets.token_hex(16)}-{mark_of(os.getpid())}"
        self._is_written = False
        self._going = Background()

    def start(self) -> None:
        self._going.start(self._rounds())

    async def stop(self) -> None:
        """End the rounds, and delete the row."""
        await self._going.stop()
        if self._is_written:
            self._is_written = False
            try:
                await self._store.write(lambda: forget_node(self._store.dialect, self._id))
            except Exception as error:  # it is forgotten after a minute
                log.info("that this process stops was not stored: %s", error)

    async def _rounds(self) -> None:
        CALLER.set("")
        tables, host, wait = node_columns(self._model), socket.gethostname(), _FIRST
        while True:
            await asyncio.sleep(wait)
            wait = _EVERY * random.uniform(0.8, 1.2)
            try:
                await self._store.write(lambda: see(self._store.dialect, self._id, host, tables))
                self._is_written = True
            except Refusal as refusal:
                log.info("that this process runs was not stored: %s", refusal)
            except Exception as error:  # a role without the right to write there serves all the same
                log.info("that this process runs was not stored: %s", error)
