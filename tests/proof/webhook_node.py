"""A node that delivers webhooks, to be killed: `python -m tests.proof.webhook_node DATABASE [FAULT]`.

FAULT plants a fault, so that the proof can be seen to fail: `early` stores the position before the messages are sent,
`unordered` sends the changes of one row beside each other.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any
from unittest.mock import patch

from diptych import Config, Diptych, Model, Resource, grant
from diptych.engine.watch import Change, ChangeBatch
from diptych.webhooks import dispatcher, service
from diptych.webhooks.dispatcher import Dispatcher


class Item(Resource):
    """What changes: its number counts its changes."""

    number: int = 0
    access = (grant("read"),)


model = Model(Item)


def plant(fault: str) -> None:
    """Break the dispatcher."""
    whole = Dispatcher._send_page

    async def early(self: Any, batch: ChangeBatch, until: float) -> Any:
        self._position = batch.upto
        await self._store()
        return await whole(self, batch, until + 60)

    rows = iter(range(10**9))

    def unordered(change: Change) -> str:
        return str(next(rows))

    if fault == "early":
        Dispatcher._send_page = early  # type: ignore[method-assign]  # a planted fault
    elif fault == "unordered":
        patch.object(dispatcher, "row_id_of", unordered).start()


async def run(database: str) -> None:
    app = Diptych(model, config=Config(database=database, webhook_networks="127.0.0.1"))
    await app.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    service.LEASE, service.EVERY, service.RARELY, dispatcher.BACKOFF.first = 1.0, 0.1, 0.1, 1.0
    plant("".join(sys.argv[2:]))
    asyncio.run(run(sys.argv[1]))
