"""Walking an Ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.ask.nodes import Edges, Follow, Nodes, Part, Pick, Read


def follows(parts: Iterable[Pick | Part]) -> Iterator[Follow]:
    """The relations that the parts of one Read follow."""
    for part in parts:
        match part:
            case Follow():
                yield part
            case Nodes(pick=pick):
                yield from follows(pick)
            case Edges(parts=edges):
                for edge in edges:
                    yield from follows(edge.pick)


def reads(asks: Iterable[Read]) -> Iterator[Read]:
    """Every Read of some Asks, outer before inner."""
    for read in asks:
        yield read
        yield from reads(follow.read for follow in follows(read.pick))
