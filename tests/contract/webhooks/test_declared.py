"""Webhooks that the model declares."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from diptych import Config, Diptych, Model, Resource, grant
from diptych.model.declare.webhook import Webhook
from diptych.webhooks import manage
from diptych.webhooks.records import WEBHOOKS
from tests.support.running import NewDatabase


class Order(Resource):
    total: int
    access = (grant("read", "create"),)


def test_nodes_that_start_at_the_same_moment_add_a_webhook_once(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(database=new_database())
    model = Model(Order, webhooks=[Webhook("erp", url="https://erp.example.org/hooks", on=Order)])
    check, both = manage.check_webhook, asyncio.Barrier(2)

    async def checked(*given: Any, **named: Any) -> None:
        await check(*given, **named)
        await both.wait()

    async def run() -> None:
        before = Diptych(Model(Order), config=config)
        await before.start()
        await before.stop()
        monkeypatch.setattr(manage, "check_webhook", checked)
        nodes = [Diptych(model, config=config) for _ in range(2)]
        try:
            await asyncio.gather(*(node.start() for node in nodes))
            (webhook,) = await WEBHOOKS.all(nodes[0].store, "id")
            assert (webhook.name, webhook.source) == ("erp", "model")
        finally:
            monkeypatch.undo()
            await asyncio.gather(*(node.stop() for node in nodes))

    asyncio.run(run())
