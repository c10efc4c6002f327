"""The cost of a request, in a response header or in `extensions`, for clients that ask for it.

    "extensions": {"cost": true}    →    "extensions": {"cost": {"price": 153, "allowed": 5000, "depth": 3}}
    Prefer: cost                    →    Cost: price=153, allowed=5000, depth=3

The price is computed from the values of the request; for a subscription, it is the price of one change. A response with
its cost is private: no shared cache may keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from diptych.api.graphql.http import Parameters
from diptych.api.reply import Header, Reply
from diptych.api.rest.precondition import preferences
from diptych.ask.measures import Limits
from diptych.engine.call import PreparedCall
from diptych.engine.read_plan import PreparedRead
from diptych.engine.watch import PreparedWatch
from diptych.engine.write_op import PreparedWrite
from diptych.errors import Refusal
from diptych.policy.values import Inputs
from diptych.serve.endpoint.known_operation import KnownOperation
from diptych.serve.http.request import Request

_APPLIED = b"preference-applied"


class ReportedCost(NamedTuple):
    """The price of a request, the highest price allowed, and the depth of the request."""

    price: int
    allowed: int
    depth: int


def with_cost(request: Request, reply: Reply, measure: Callable[[], ReportedCost]) -> Reply:
    """The reply, with a `Cost` header (a dictionary of RFC 9651) if a REST client sends `Prefer: cost`."""
    sent = request.headers.get(b"prefer")
    if sent is None or "cost" not in preferences(sent):
        return reply
    before = [value for name, value in reply.headers if name == _APPLIED]
    applied: Header = (_APPLIED, b", ".join((*before, b"cost")))
    cost: Header = (b"cost", b"price=%d, allowed=%d, depth=%d" % measure())
    kept = tuple(header for header in reply.headers if header[0] != _APPLIED)
    return Reply(reply.status, (*kept, cost, applied), reply.body, reply.stream)


def asks_cost(parameters: Parameters) -> bool:
    """Does a GraphQL client send `extensions.cost`?"""
    return parameters.extensions is not None and parameters.extensions.get("cost") is True


def add_cost(known: KnownOperation, variables: Inputs, limits: Limits) -> KnownOperation:
    """The same operation with its cost in the response, on every transport.

    An operation with an invalid value has no price; it will be refused for that value.
    """
    try:
        measured = cost_of_known(known, variables, limits)
    except Refusal:
        return known
    last = known.pieces[-1].removesuffix(b"}") + b',"extensions":{"cost":%b}}' % msgspec.json.encode(measured._asdict())
    return replace(known, pieces=(*known.pieces[:-1], last), max_age=0)


def cost_of_known(known: KnownOperation, variables: Inputs, limits: Limits) -> ReportedCost:
    """The cost of a GraphQL operation."""
    if known.watch is not None:
        return cost_of_changes(known.watch, variables, limits)
    parts = [write for _, write in known.writes] or [*known.calls.values()]
    return cost_of_parts([(part, variables) for part in (known.prepared, *parts) if part is not None], limits)


def cost_of_parts(
    parts: Iterable[tuple[PreparedRead | PreparedWrite | PreparedCall, Inputs]], limits: Limits
) -> ReportedCost:
    """The cost of reads, writes and calls together."""
    parts = tuple(parts)
    price = sum(
        part.price(part.binder(inputs), limits.page)
        if isinstance(part, PreparedCall)
        else part.cost.price(part.binder(inputs))
        for part, inputs in parts
    )
    deepest = max((part.cost.depth for part, _ in parts), default=0)
    return ReportedCost(price, limits.complexity, deepest)


def cost_of_changes(prepared: PreparedWatch, inputs: Inputs, limits: Limits, many: int = 1) -> ReportedCost:
    return ReportedCost(prepared.price(prepared.binder(inputs), many), limits.complexity, prepared.cost.depth)
