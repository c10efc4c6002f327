"""A follower of changes without a socket: what it is told is noted, and nothing is sent anywhere.

told = await follow(handler, caller, "subscription { postChanged { kind rowId } }")
await settle(handler)            all that was committed until now is told
told.events                      [{"kind": "CREATED", "rowId": "…"}]
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from diptych.api.graphql.http import Parameters
from diptych.engine.watch import PreparedWatch
from diptych.errors import Refusal
from diptych.identity.viewer import Caller
from diptych.live.group import Subscription
from diptych.live.service import LiveService
from diptych.serve.handler import Handler


class Recorder:
    """A sink that notes what it is told."""

    def __init__(self) -> None:
        self.cursors: list[str] = []
        self.bodies: list[bytes] = []
        self.beats: list[str] = []
        self.ended: tuple[Refusal | None, str] | None = None
        self.subscription: Subscription | None = None
        self.open = asyncio.Event()
        self.open.set()

    def put(self, cursor: str, body: bytes) -> None:
        assert self.ended is None, "nothing is told after the end"
        self.cursors.append(cursor)
        self.bodies.append(body)

    def beat(self, cursor: str) -> None:
        self.beats.append(cursor)

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        assert self.ended is None, "it ends once"
        self.ended = (refusal, cursor)

    def has_room(self) -> bool:
        return self.open.is_set()

    async def room(self) -> None:
        await self.open.wait()

    @property
    def events(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies]

    def close(self) -> None:
        assert self.subscription is not None
        self.subscription.close()


async def caller_of(handler: Handler, token: str | None) -> Caller:
    """Who has this token."""
    sent = None if token is None else b"Bearer " + token.encode()
    return handler.context.caller(sent) or await handler.context.find(sent or b"")


async def ready_for(
    handler: Handler, caller: Caller, document: str, variables: Mapping[str, Any] | None = None
) -> tuple[PreparedWatch, Mapping[str, Any]]:
    """What a subscription follows, with its values; raises what refuses it."""
    outcome = await handler.graphql.run(Parameters(document, variables=dict(variables or {})), caller)
    if outcome.refused is not None:
        raise outcome.refused
    assert outcome.watch is not None
    return outcome.watch, outcome.inputs


async def follow(
    handler: Handler, caller: Caller, document: str, variables: Mapping[str, Any] | None = None
) -> Recorder:
    """Begin to follow; raises what refuses it."""
    found = Recorder()
    watch, inputs = await ready_for(handler, caller, document, variables)
    found.subscription = await handler.live.subscribe(watch, inputs, caller, found)
    return found


async def settle(live: LiveService) -> None:
    """Until everyone is told all that was committed before this."""
    await told(live)
    while live._tasks:
        await asyncio.gather(*live._tasks)
        await told(live)


def is_idle(live: LiveService) -> bool:
    """Is nothing evaluated, and nothing to be?"""
    found = live._evaluations
    return not found._under_way and not found._new and not any(account.works for *_, account in found._heap)


async def told(live: LiveService) -> None:
    """Until every group is told that; one who has no room may still be told by itself."""
    await live.tail.refresh()
    while not is_idle(live) or not all(each.rest and each.rest.at is None for each in live._groups.values()):
        await asyncio.sleep(0)
