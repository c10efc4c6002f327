"""What the removal of webhooks means for the others."""

from __future__ import annotations

import asyncio

import pytest

from diptych.webhooks import manage, service
from tests.contract.webhooks.test_delivery import add, rename, serving, until
from tests.support.running import NewDatabase


def test_many_webhooks_that_are_removed_at_once_hold_up_no_others(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their endpoints hang, so each has a message under way, for which it waits a while."""
    monkeypatch.setattr(service, "EVERY", 0.05)
    monkeypatch.setattr(service, "RARELY", 0.1)

    async def run() -> None:
        async with serving(new_database()) as (handler, receiver):
            names = [f"hanging-{number}" for number in range(8)]
            for name in ("good", *names):
                await add(handler, name, receiver.url(name))
            await until(lambda: len(handler.webhooks.dispatchers) == 9)
            await rename(handler, "one")
            await until(lambda: bool(receiver.messages["good"]))
            await asyncio.sleep(0.5)
            await handler.webhooks._going.stop()
            for name in names:
                await manage.remove(handler.engine.store, name)
            begun = asyncio.get_running_loop().time()
            await handler.webhooks.look()
            assert len(handler.webhooks.dispatchers) == 1
            assert asyncio.get_running_loop().time() - begun < service.LEASE / 2

    asyncio.run(run())
