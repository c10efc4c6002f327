"""Many requests with tokens of a new key at once: they wait for one look at the keys, and none is refused."""

from __future__ import annotations

import asyncio

import pytest

from diptych.identity import viewer as viewer_module
from diptych.identity.keys import rotate_key
from diptych.identity.tokens import load_tokens, token_keys
from diptych.serve.http.request import Request
from tests.contract.identity.desk import NewDesk
from tests.support.in_process import Service


async def nothing(_: int) -> bytes:
    return b""


def test_requests_that_meet_a_new_key_at_once(
    shop: Service, new_desk: NewDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, looks = new_desk(), []
    elsewhere.run(rotate_key(elsewhere.store))
    tokens = elsewhere.run(load_tokens(elsewhere.store))
    sent = [{b"authorization": f"Bearer {tokens.make(None, ['admin'], None)}".encode()} for _ in range(5)]

    async def noted(store: object) -> object:
        looks.append(store)
        await asyncio.sleep(0.05)
        return await token_keys(shop.app.store)

    async def work() -> list[int]:
        handle = shop.handler.handle
        replies = await asyncio.gather(*(handle(Request("GET", "/orders", "", head, nothing)) for head in sent))
        return [reply.status for reply in replies]

    monkeypatch.setattr(viewer_module, "token_keys", noted)
    shop.handler.context._loaded_at = 0.0  # keys are loaded at most once a second
    assert shop.runner.run(work()) == [200] * 5
    assert len(looks) == 1
