"""What a request costs, told to whoever wants to know.

    "extensions": {"cost": true}    →    "extensions": {"cost": {"price": 153, "allowed": 5000, "depth": 3}}
    Prefer: cost                    →    Cost: price=153, allowed=5000, depth=3

The price is that of the values that came with the request; of changes that are followed, that of each. Nobody else is
told: such an answer is for whoever asked, and no cache may keep it for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from diptych.api.graphql.http import Parameters
from diptych.api.reply import Header, Reply
from diptych.api.rest.precondition import preferences
from diptych.ask.asked import Limits
from diptych.calls import ReadyCall
from diptych.engine import Ready
from diptych.errors import Refusal
from diptych.serve.http import Request
from diptych.serve.planner import Known
from diptych.steps import ReadyWrite
from diptych.watch import ReadyWatch

_APPLIED = b"preference-applied"
Inputs = Mapping[str, Any]


class Told(NamedTuple):
    """What a request costs, and what it may cost."""

    price: int
    allowed: int
    depth: int


def wants_cost(request: Request) -> bool:
    """Does a client of the resource style want to know?"""
    sent = request.headers.get(b"prefer")
    return sent is not None and "cost" in preferences(sent)


def with_cost(reply: Reply, told: Told) -> Reply:
    """The same answer, with a header that tells (a dictionary of RFC 9651)."""
    before = [value for name, value in reply.headers if name == _APPLIED]
    applied: Header = (_APPLIED, b", ".join((*before, b"cost")))
    cost: Header = (b"cost", b"price=%d, allowed=%d, depth=%d" % told)
    kept = tuple(each for each in reply.headers if each[0] != _APPLIED)
    return Reply(reply.status, (*kept, cost, applied), reply.body, reply.stream)


def asks_cost(parameters: Parameters) -> bool:
    """Does a client of the query style want to know?"""
    return parameters.extensions is not None and parameters.extensions.get("cost") is True


def telling_cost(known: Known, variables: Inputs, limits: Limits) -> Known:
    """The same operation, with an answer that tells, whichever way it is answered.

    Where a value is wrong, there is no price, and the operation will be refused for it.
    """
    try:
        told = cost_of_known(known, variables, limits)
    except Refusal:
        return known
    last = known.pieces[-1].removesuffix(b"}") + b',"extensions":{"cost":%b}}' % msgspec.json.encode(told._asdict())
    return replace(known, pieces=(*known.pieces[:-1], last), max_age=0)


def cost_of_known(known: Known, variables: Inputs, limits: Limits) -> Told:
    """What an operation of the query style costs."""
    if known.watch is not None:
        return cost_of_changes(known.watch, variables, limits)
    parts = [each for _, each in known.writes] or [*known.calls.values()]
    return cost_of_parts([(each, variables) for each in (known.ready, *parts) if each is not None], limits)


def cost_of_parts(parts: Iterable[tuple[Ready | ReadyWrite | ReadyCall, Inputs]], limits: Limits) -> Told:
    """What reads, changes and calls cost together."""
    parts = tuple(parts)
    price = sum(
        each.price(inputs, limits.page) if isinstance(each, ReadyCall) else each.cost.price(each.binder(inputs))
        for each, inputs in parts
    )
    deepest = max((each.cost.depth for each, _ in parts), default=0)
    return Told(price, limits.complexity, deepest)


def cost_of_changes(ready: ReadyWatch, inputs: Inputs, limits: Limits, many: int = 1) -> Told:
    """What so many changes at a time cost."""
    return Told(ready.price(ready.binder(inputs), many), limits.complexity, ready.cost.depth)
