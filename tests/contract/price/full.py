"""A world in which every relation is full, at any depth: each of nine rows has all nine as its peers, and one of them
as its best. So a request without filters returns as many objects as it can.

`shapes` draws such requests: lists, connections with nodes and edges in any mixture, aliases, relations to one; as a
document and, where the resource style can ask the same, as a URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from diptych import Model, Resource, grant, inverse, through

PEERS = 9
ALIASES = 30
"""How many aliases a request may have."""


class Peer(Resource):
    name: str
    best: Peer
    peers: list[Peer] = through("Link", "here", "there")
    links: list[Link] = inverse("here")

    access = (grant("read"),)


class Link(Resource):
    here: Peer
    there: Peer

    access = (grant("read"),)


model = Model(Peer, Link)


def number(kind: int, at: int) -> str:
    return f"01900000-0000-7000-8000-{kind:02d}{at:010d}"


ONE = number(1, 0)


def rows() -> dict[str, list[dict[str, Any]]]:
    """Everyone is everyone's peer."""
    when = "2026-01-01T00:00:00.000000Z"
    own = {"version": 1, "createdAt": when, "updatedAt": when}
    ids = [number(1, at) for at in range(PEERS)]
    peers = [{"id": id, "name": f"p{at}", "bestId": ids[max(at - 1, 0)], **own} for at, id in enumerate(ids)]
    pairs = [(here, there) for here in ids for there in ids]
    links = [{"id": number(2, at), "hereId": here, "thereId": there, **own} for at, (here, there) in enumerate(pairs)]
    return {"Peer": peers, "Link": links}


@dataclass(frozen=True)
class Asking:
    """One request in the styles that have it."""

    document: str
    url: str | None


def shape(random: Random, pages: bool) -> Asking:
    """A request; without pages, the resource style can ask it too."""
    drawer = _Drawer(random, pages)
    if random.random() < 0.4:
        inner, fields = drawer.selection("Peer", 5)
        return Asking(f'{{ peer(id: "{ONE}") {inner} }}', f"/peers/{ONE}?fields={fields}" if fields else None)
    size = drawer.size()
    inner, fields = drawer.selection("Peer", 5)
    document = f"{{ peersConnection(first: {size}) {{ nodes {inner} }} }}"
    return Asking(document, f"/peers?first={size}&fields={fields}" if fields else None)


class _Drawer:
    def __init__(self, random: Random, pages: bool) -> None:
        self.random = random
        self.pages = pages
        self.number = 0
        self.left = 12

    def size(self) -> int:
        return self.random.choice((1, 1, 2, 2, 3, 4))

    def alias(self) -> str:
        self.number += 1
        return f"a{self.number}"

    def selection(self, resource: str, depth: int) -> tuple[str, str]:
        """What is selected of a row, in both styles; no fields if the resource style cannot say it."""
        parts = [("id", "id")]
        ways = ("peers", "peers", "links", "best") if resource == "Peer" else ("here", "there")
        for _ in range(self.random.choice((0, 1, 1, 2, 3)) if depth else 0):
            if self.left > 0 and self.number < ALIASES:
                self.left -= 1
                parts.append(self.way(self.random.choice(ways), depth - 1))
        fields = ",".join(field for _, field in parts) if all(field for _, field in parts) else ""
        return f"{{ {' '.join(text for text, _ in parts)} }}", fields

    def way(self, name: str, depth: int) -> tuple[str, str]:
        alias = self.alias()
        if name in ("best", "here", "there"):
            inner, fields = self.selection("Peer", depth)
            return f"{alias}: {name} {inner}", f"{alias}:{name}({fields})" if fields else ""
        size, target = self.size(), "Link" if name == "links" else "Peer"
        if not self.pages or self.random.random() < 0.4:
            inner, fields = self.selection(target, depth)
            return (
                f"{alias}: {name}(first: {size}) {inner}",
                f"{alias}:{name}[first={size}]({fields})" if fields else "",
            )
        return (
            f"{alias}: {name}Connection({self.random.choice(('first', 'last'))}: {size}) {self.page(target, depth)}",
            "",
        )

    def page(self, target: str, depth: int) -> str:
        """Any mixture of nodes and edges; what leads on, and the number of all, are no objects and come later."""
        parts: list[str] = []
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            if self.number + 3 > ALIASES:
                return f"{{ {' '.join(parts) or 'nodes { id }'} }}"
            kind = self.random.choice(("nodes", "edges", "cursors", "pairs"))
            if kind == "nodes":
                parts.append(f"{self.alias()}: nodes {self.selection(target, depth)[0]}")
            else:
                alias, *names = [self.alias() for _ in range({"edges": 2, "cursors": 1, "pairs": 3}[kind])]
                inner = [f"{name}: node {self.selection(target, depth)[0]}" for name in names]
                parts.append(f"{alias}: edges {{ {' '.join((*inner, 'cursor'))} }}")
        return f"{{ {' '.join(parts)} }}"
