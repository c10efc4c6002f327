"""Very many revocations end their tokens at once, and keep nobody waiting."""

from __future__ import annotations

import asyncio

import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model
from diptych.identity.revocation_list import revocation
from diptych.identity.tokens import load_tokens
from diptych.identity.viewer import Context, InvalidToken
from diptych.lru import LRUCache

MANY = 200


def test_revocations_are_looked_for_together_and_hold_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    items = LRUCache.items

    def counted(self: LRUCache[object]) -> object:
        nonlocal looks
        looks += self.name == "tokens and their callers"
        return items(self)

    async def run() -> None:
        store = connect(Config(database="sqlite:///:memory:"))
        await store.open(model)
        context = Context(model, await load_tokens(store), store)
        ended = asyncio.Event()
        context.on_revoked = ended.set
        sent = [b"Bearer " + context.tokens.make(f"user{n}", (), None).encode() for n in range(MANY)]
        callers = [context.caller(each) for each in sent]
        monkeypatch.setattr(LRUCache, "items", counted)
        for each, caller in zip(sent[1:], callers[1:], strict=True):
            assert caller is not None and caller.claims is not None
            assert context.caller(each) is caller
            context.revoked.add([revocation("token", caller.claims.get("jti"))])
            with pytest.raises(InvalidToken):
                context.caller(each)
        await asyncio.wait_for(ended.wait(), 5)
        assert context.caller(sent[0]) is callers[0]
        assert len(context._cache) == 1
        await store.close()

    asyncio.run(run())
    assert looks == 1
