"""How many objects an answer holds: counted in the JSON, by what was asked, and in no other way like the price.

`objects` counts as the contract does: an edge and its node are one object, and a row that a connection shows among its
nodes and its edges too is counted where there are more. `things` counts every JSON object that is a row or an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from diptych.ask.nodes import ConnectionPart, Edges, Follow, Nodes, Pick, Read

Parts = Sequence[Pick | ConnectionPart]


def objects(read: Read, answer: Any) -> int:
    """The objects of an answer."""
    if answer is None:
        return 0
    if read.take == "one":
        return 1 + _below(read.pick, answer)
    if read.take == "list":
        return sum(1 + _below(read.pick, row) for row in answer)
    nodes = [(part.pick, row) for part in read.pick if isinstance(part, Nodes) for row in answer[part.label]]
    edges = [*_edges(read, answer)]
    shown = [(pick, row) for pick, row in edges if row is not None]
    return max(len(nodes), len(edges)) + sum(_below(pick, row) for pick, row in (*nodes, *shown))


def _edges(read: Read, answer: Any) -> Iterator[tuple[Parts, Any]]:
    """Every node of every edge; of an edge that shows none, itself."""
    for part in read.pick:
        for edge in answer[part.label] if isinstance(part, Edges) else ():
            nodes = [(each.pick, edge[each.label]) for each in part.parts if each.kind == "node"]  # type: ignore[union-attr]  # never None here
            yield from nodes or [((), None)]


def _below(pick: Parts, row: Any) -> int:
    return sum(objects(part.read, row[part.label]) for part in pick if isinstance(part, Follow))


def things(read: Read, answer: Any) -> int:
    """Every row and every edge in an answer, each time that it stands there."""
    if answer is None:
        return 0
    if read.take != "page":
        rows = [answer] if read.take == "one" else answer
        return sum(1 + _things_below(read.pick, row) for row in rows)
    total = 0
    for part in read.pick:
        if isinstance(part, Nodes):
            total += sum(1 + _things_below(part.pick, row) for row in answer[part.label])
        elif isinstance(part, Edges):
            for edge in answer[part.label]:
                nodes = [each for each in part.parts if each.kind == "node"]
                total += 1 + sum(1 + _things_below(each.pick, edge[each.label]) for each in nodes)
    return total


def _things_below(pick: Parts, row: Any) -> int:
    return sum(things(part.read, row[part.label]) for part in pick if isinstance(part, Follow))
