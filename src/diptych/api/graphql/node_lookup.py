"""`node(id:)` and `nodes(ids:)`: a row of any type, by its id alone, as Relay refetches it.

An id is a plain UUID, the same in both styles, and does not contain its type. So each type that the viewer may read is
looked into, by one Read each, in the one statement of the request; rules, prices and limits hold for these Reads as for
all others. The row is the first that is found:

    { node(id: "…") { id ... on Post { title } } }

    Read("User", "one", (Field("id"),), id = …), Read("Post", "one", (Field("id"), Field("title")), id = …), …

Resources with integer ids are no nodes: their ids are not unique among types. A model that uses one of the names itself
(`Node`, `node`, `nodes`) has none of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from diptych.api.graphql.names import NODE
from diptych.ask.nodes import Read
from diptych.errors import Code, Refusal
from diptych.model.defs import ResourceDef
from diptych.model.resource_view import ResourceView
from diptych.model.scalars import ID
from diptych.model.view import View

NODE_FIELDS = ("node", "nodes")
_MOST = 1_000
"""Reads of one request: each is a column of its statement, and PostgreSQL has at most 1,664."""
_NULL = b"null"
_items = msgspec.json.Decoder(list[msgspec.Raw])


def is_node(resource: ResourceDef) -> bool:
    """Are its ids unique among types? (The viewer has no table.)"""
    return resource.table != "" and resource.key is ID


def _has_nodes(model: Mapping[str, ResourceDef]) -> bool:
    """Are there nodes, and no resource or query of the model has one of their names?"""
    taken = {name for resource in model.values() for name in (resource.one, resource.many, resource.connection)}
    taken |= {call.root for resource in model.values() for call in resource.calls}
    return NODE not in model and taken.isdisjoint(NODE_FIELDS) and any(map(is_node, model.values()))


def node_types(view: View) -> list[ResourceView]:
    """The types that a node may have for this viewer, in the order of the model."""
    return (
        [resource for resource in view.resources.values() if is_node(resource.resource)]
        if _has_nodes(view.model)
        else []
    )


def is_foreign_node(requested: set[str], view: View) -> bool:
    """Is it a node field that other roles have and this one does not?"""
    return bool(requested.intersection(NODE_FIELDS)) and _has_nodes(view.model) and not node_types(view)


def check_lookups(asks: Sequence[Read]) -> None:
    """Refuse more Reads than a statement can have."""
    if len(asks) > _MOST:
        cause = f"node and nodes look into every type: the request reads {len(asks)} times; {_MOST} are allowed."
        raise Refusal(Code.TOO_COMPLEX, cause)


class NodeLookup(Struct, frozen=True):
    """A root field whose row is in one of several answers; `many` if each of them is a list."""

    types: int
    many: bool

    def choose(self, answers: Sequence[bytes | None]) -> bytes | None:
        """The row, or of each place the row."""
        if not self.many:
            return next((answer for answer in answers if answer is not None), None)
        places = zip(*(_items.decode(answer or b"[]") for answer in answers), strict=True)
        rows = (next((row for row in map(bytes, place) if row != _NULL), _NULL) for place in places)
        return b"[" + b",".join(rows) + b"]"


def one_answer_each(lookups: Sequence[NodeLookup], answers: Sequence[bytes | None]) -> list[bytes | None]:
    """One answer for each root field."""
    chosen, start = [], 0
    for lookup in lookups:
        end = start + lookup.types
        chosen.append(lookup.choose(answers[start:end]))
        start = end
    return chosen
