"""Traversal of the Reads in an Ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.ask.nodes import ConnectionPart, Edges, Follow, Nodes, Pick, Read


def picks(parts: Iterable[Pick | ConnectionPart]) -> Iterator[Pick | ConnectionPart]:
    """What one Read picks of its rows, also inside the nodes and edges of a page."""
    for part in parts:
        match part:
            case Nodes(pick=inner):
                yield from inner
            case Edges(parts=edges):
                for edge in edges:
                    yield from edge.pick
            case _:
                yield part


def reads(asks: Iterable[Read]) -> list[Read]:
    """All Reads of some Asks with the nested ones, outer before inner."""
    found: list[Read] = []
    for read in asks:
        found.append(read)
        nested = [pick.read for pick in picks(read.pick) if isinstance(pick, Follow)]
        if nested:
            found += reads(nested)
    return found
