"""Measures a document by its text, before it is parsed: graphql-core is the expensive part of a hostile request.

A scan over the tokens counts selections, depth, fragment spreads, lists and filters (`scan.py`). Every fragment is
counted once, and added up at each spread, so fragments that expand exponentially take no longer than others. The price
is a lower bound, computed from literal page sizes, without the weights of the model and without variables.

Nothing is refused here: the checks do that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from diptych.api.graphql.scan import MOST, Definition, Outline, Scan
from diptych.ask.measures import Limits, RequestMeasures
from diptych.ask.page_hint import PagedList, PageHint, page_hint


def measure_text(text: str, limits: Limits, measures: RequestMeasures) -> Outline:
    """Measure a text, up to the limits on bytes and tokens."""
    measures.document = len(text.encode())
    if measures.document > limits.document:
        return Outline()
    scan = Scan(measures, limits)
    scan.run(text)
    outline = scan.outline
    measures.definitions = len(outline.operations) + len(outline.fragments) + scan.duplicates
    for part in _inner_first(outline):
        _expand(part, outline.fragments, limits)
    for part in outline.operations:
        _expand(part, outline.fragments, limits)
        measures.expanded += part.selections
        measures.described += math.ceil(part.described)
        measures.nesting = max(measures.nesting, part.nesting)
        # the event of a subscription is not a level: its row is the first
        measures.depth = max(measures.depth, part.depth - (part.kind == "subscription"))
    measures.least = min((part.price for part in outline.operations), default=0)
    if measures.least > limits.complexity:
        measures.hint = _hint(outline.operations[0], limits.complexity)
    return outline


def _hint(part: Definition, allowed: int) -> PageHint | None:
    """Which page of an operation would have to be smaller. It may have lists whose page size is not a literal."""
    lists: list[PagedList] = []
    constant = part.price
    around: list[tuple[int, int]] = []  # the level and the number of each list around the current one
    for level, field, price in reversed(part.lists):  # outer ones first
        while around and around[-1][0] >= level:
            around.pop()
        outer = around[-1][1] if around else 0
        row = price + (not field.name.endswith("Connection"))
        if outer:
            above = lists[outer - 1]
            lists[outer - 1] = above._replace(row_price=max(above.row_price - field.size * row, 0))
        else:
            constant -= field.size * row
        lists.append(PagedList(outer, field.size, row, field.key))
        around.append((level, len(lists)))
    return page_hint(max(constant, 0), lists, allowed)


def _inner_first(outline: Outline) -> list[Definition]:
    """The fragments, each after those that it spreads; `outline.cycle` is set if there is a cycle."""
    parts = outline.fragments
    ordered: list[Definition] = []
    done: set[str] = set()
    for start in parts:
        path = [(start, iter(parts[start].spreads))] if start not in done else []
        done.add(start)
        around = {start}
        while path:
            name, spreads = path[-1]
            for spread, *_ in spreads:
                if spread in around:
                    outline.cycle = spread
                elif spread in parts and spread not in done:
                    done.add(spread)
                    around.add(spread)
                    path.append((spread, iter(parts[spread].spreads)))
                    break
            else:
                path.pop()
                around.discard(name)
                ordered.append(parts[name])
    return ordered


def _expand(part: Definition, fragments: Mapping[str, Definition], limits: Limits) -> None:
    """Add the fragments that are spread in a definition. They are expanded already; counts stop above the limits."""
    for spread in part.spreads:
        inner = fragments.get(spread.name)
        if inner is None or inner is part:
            continue
        part.selections = min(part.selections + inner.selections, limits.expanded + 1)
        weighed, listed = spread.weight * spread.share * inner.weighed, spread.weight * inner.listed
        described = weighed + listed if spread.about else spread.weight * inner.described
        part.weighed = min(part.weighed + weighed * (spread.weight == 1), MOST)
        part.listed = min(part.listed + listed + weighed * (spread.weight > 1), MOST)
        part.described = min(part.described + described, MOST)
        part.nesting = max(part.nesting, spread.nesting + inner.nesting)
        if not spread.about:
            part.depth = max(part.depth, spread.depth + inner.depth)


def measure_values(values: list[Any], limits: Limits, measures: RequestMeasures) -> None:
    """Count the values of all variables, up to the limit."""
    left: list[Any] = [values]
    while left and measures.values <= limits.values:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        measures.values += len(inside)
        left.extend(inside)
