"""The cost of a request as text: its depth, its price and how that is computed; and who may cache the answer.

Depth  4 of 10
Price  111 of 5000 = 1 + 10 posts × (1 + 5 comments × 2)
Cache  private: User is not declared public
"""

from __future__ import annotations

from collections.abc import Iterator

from diptych.ask.measures import Limits
from diptych.ask.nodes import Call
from diptych.ask.slots import SlotValues
from diptych.ask.wish import WriteWish
from diptych.engine.call import cost_of_call
from diptych.explain.understood import Wanted
from diptych.model.call_defs import QueryDef
from diptych.model.defs import Resources
from diptych.policy.cache_age import max_age, max_age_of_call
from diptych.policy.cost import Cost, cost_of, cost_of_watch, cost_of_write


def measured_request(wanted: Wanted, resources: Resources, limits: Limits) -> tuple[int, int]:
    """The depth and the price of a request; of a subscription, those of one change."""
    if wanted.watch is not None:
        wish, values = wanted.watch
        cost, _ = cost_of_watch(wish.ask, resources)
        return cost.depth, cost.price(values)
    parts = [*_parts(wanted, resources, limits)]
    return max((cost.depth for cost, _ in parts), default=0), sum(cost.price(values) for cost, values in parts)


def cost_lines(wanted: Wanted, resources: Resources, limits: Limits) -> list[str]:
    """The depth and the price of a request."""
    if wanted.watch is not None:
        return _watch_lines(wanted, resources, limits)
    parts = [*_parts(wanted, resources, limits)]
    deep, price = measured_request(wanted, resources, limits)
    words = [cost.price.describe(values) for cost, values in parts]
    lists = any(cost.price.steps for cost, _ in parts)
    breakdown = f" = {' + '.join(words)}" if lists or len(words) > 1 else ""
    lines = [f"Depth  {deep} of {limits.depth}", f"Price  {price} of {limits.complexity}{breakdown}"]
    if price > limits.complexity:
        left = limits.complexity - price
        hints = [cost.price.hint(values, left + cost.price(values)) for cost, values in parts]
        lines += [f"       {hint}" for hint in hints if hint is not None][:1]
    return lines


def _parts(wanted: Wanted, resources: Resources, limits: Limits) -> Iterator[tuple[Cost, SlotValues]]:
    wish, values = wanted.reads
    if wish.asks:
        yield cost_of(wish.asks, resources), values
    for op, inputs in wanted.ops:
        if isinstance(op, WriteWish):
            yield cost_of_write(op.ask, resources), inputs
        else:
            # how many rows a call will list is not known, so the page limit is assumed
            yield cost_of_call(op.ask, len(op.slots), resources), [*inputs, None, limits.page]


def _watch_lines(wanted: Wanted, resources: Resources, limits: Limits) -> list[str]:
    assert wanted.watch is not None
    wish, values = wanted.watch
    cost, filtering = cost_of_watch(wish.ask, resources)
    breakdown = f" = {cost.price.describe(values)}" if cost.price.steps else ""
    search = f", and {filtering} to find them" if filtering else ""
    return [
        f"Depth  {cost.depth} of {limits.depth}",
        f"Price  {cost.price(values)} for each change{search}, of {limits.complexity}{breakdown}",
    ]


def cache_lines(wanted: Wanted) -> list[str]:
    """One line on caching; none for a write, which is never cached."""
    ops, model = [op.ask for op, _ in wanted.ops], wanted.view.model
    calls = [op for op in ops if isinstance(op, Call) and isinstance(model[op.resource].call(op.name), QueryDef)]
    asks = wanted.reads[0].asks
    if len(calls) < len(ops) or not (asks or calls):
        return []
    ages = [*([max_age(asks, wanted.view)] if asks else []), *(max_age_of_call(call, wanted.view) for call in calls)]
    seconds, because = min(ages)
    return [f"Cache  by anyone, for {seconds} s: {because}" if seconds else f"Cache  private: {because}"]
