"""How much a document holds, in numbers, from its text alone: graphql-core is the dear part of a hostile request.

A scan over the tokens counts what stands in each selection, how deep it is, what is spread where, how long lists and
filters are (`scan.py`). Every fragment is counted by itself, and then added up wherever it is spread, so that a few of
them that unfold to very much are as cheap as any. The price is a lower bound: page sizes that are written down, without
what only a model knows, or a variable says.

This only counts; whether it is too much, the checks say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from diptych.api.graphql.scan import MOST, Outline, Part, Scan
from diptych.ask.asked import Asked, Limits


def measure_text(text: str, limits: Limits, asked: Asked) -> Outline:
    """Count what a text holds, as far as it may."""
    asked.document = len(text.encode())
    if asked.document > limits.document:
        return Outline()
    scan = Scan(asked, limits)
    scan.run(text)
    outline = scan.outline
    asked.definitions = len(outline.operations) + len(outline.fragments) + scan.again
    for part in _inner_first(outline):
        _unfold(part, outline.fragments, limits)
    for part in outline.operations:
        _unfold(part, outline.fragments, limits)
        asked.expanded += part.selections
        asked.described += math.ceil(part.described)
        asked.nesting = max(asked.nesting, part.nesting)
        # what a subscription tells of a change is no level: the row in it is the first
        asked.depth = max(asked.depth, part.depth - (part.kind == "subscription"))
    asked.least = min((part.price for part in outline.operations), default=0)
    return outline


def _inner_first(outline: Outline) -> list[Part]:
    """The fragments, each after those that it spreads. Where there is a circle of them, that is noted."""
    parts = outline.fragments
    found: list[Part] = []
    done: set[str] = set()
    for start in parts:
        path = [(start, iter(parts[start].spreads))] if start not in done else []
        done.add(start)
        around = {start}
        while path:
            name, spreads = path[-1]
            for spread, *_ in spreads:
                if spread in around:
                    outline.circle = spread
                elif spread in parts and spread not in done:
                    done.add(spread)
                    around.add(spread)
                    path.append((spread, iter(parts[spread].spreads)))
                    break
            else:
                path.pop()
                around.discard(name)
                found.append(parts[name])
    return found


def _unfold(part: Part, fragments: Mapping[str, Part], limits: Limits) -> None:
    """Add what is spread in a part, which is unfolded already; not further than anyone wants to know."""
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


def measure_values(values: list[Any], limits: Limits, asked: Asked) -> None:
    """Count the values in all variables, as far as they may be."""
    left: list[Any] = [values]
    while left and asked.values <= limits.values:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        asked.values += len(inside)
        left.extend(inside)
