"""Traversal of the Reads in an Ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.ask.nodes import ConnectionPart, Edges, Follow, GroupObject, GroupValue, Nodes, Pick, Read


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
    collected: list[Read] = []
    for read in asks:
        collected.append(read)
        nested = [pick.read for pick in picks(read.pick) if isinstance(pick, Follow)]
        if nested:
            collected += reads(nested)
    return collected


def group_values(parts: Iterable[Pick | ConnectionPart]) -> list[GroupValue]:
    """All keys and measures that are picked, also inside objects and the nodes of a page."""
    collected: list[GroupValue] = []
    for part in picks(parts):
        if isinstance(part, GroupValue):
            collected.append(part)
        elif isinstance(part, GroupObject):
            collected += group_values(part.parts)
    return collected
