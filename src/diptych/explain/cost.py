"""What a request costs, in words: how deep it is, its price, and how that comes about.

    Depth  4 of 10
    Price  111 of 5000 = 1 + 10 posts × (1 + 5 comments × 2)
"""

from __future__ import annotations

from collections.abc import Iterator

from diptych.ask.asked import Limits
from diptych.ask.wish import CallWish, WriteWish
from diptych.calls import cost_of_call
from diptych.check.cost import Cost, Resources, Values, cost_of, cost_of_watch, cost_of_write
from diptych.explain.wanted import Wanted


def cost_lines(wanted: Wanted, resources: Resources, limits: Limits) -> list[str]:
    """The depth and the price of a request."""
    if wanted.watch is not None:
        return _watch_lines(wanted, resources, limits)
    parts = [*_parts(wanted, resources, limits)]
    price = sum(cost.price(values) for cost, values in parts)
    words = [cost.price.told(values) for cost, values in parts]
    lists = any(cost.price.steps for cost, _ in parts)
    told = f" = {' + '.join(words)}" if lists or len(words) > 1 else ""
    deep = max((cost.depth for cost, _ in parts), default=0)
    return [f"Depth  {deep} of {limits.depth}", f"Price  {price} of {limits.complexity}{told}"]


def _parts(wanted: Wanted, resources: Resources, limits: Limits) -> Iterator[tuple[Cost, Values]]:
    wish, values = wanted.reads
    if wish.asks:
        yield cost_of(wish.asks, resources), values
    for deed, given in wanted.deeds:
        if isinstance(deed, WriteWish):
            yield cost_of_write(deed.ask, resources), given
        else:
            yield _call_part(deed, given, resources, limits)


def _call_part(wish: CallWish, values: Values, resources: Resources, limits: Limits) -> tuple[Cost, Values]:
    """How many rows a call will list is not known, so that is as many as it may."""
    return cost_of_call(wish.ask, len(wish.slots), resources), [*values, None, limits.page]


def _watch_lines(wanted: Wanted, resources: Resources, limits: Limits) -> list[str]:
    assert wanted.watch is not None
    wish, values = wanted.watch
    cost, filtering = cost_of_watch(wish.ask, resources)
    told = f" = {cost.price.told(values)}" if cost.price.steps else ""
    found = f", and {filtering} to find them" if filtering else ""
    return [
        f"Depth  {cost.depth} of {limits.depth}",
        f"Price  {cost.price(values)} for each change{found}, of {limits.complexity}{told}",
    ]
