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


def reads(asks: Iterable[Read]) -> Iterator[Read]:
    """All Reads of some Asks with the nested ones, outer before inner."""
    for read in asks:
        yield read
        yield from reads(pick.read for pick in picks(read.pick) if isinstance(pick, Follow))
