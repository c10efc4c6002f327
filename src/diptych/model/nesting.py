"""Nested writes of a role: the relations of a resource that a write of its row can write too, and how.

    {"title": "New", "comments": {"create": […], "update": […], "delete": […]}}

A word is there only if the role may make its write on some row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.naming import upper_first
from diptych.model.resource_view import InputView, ResourceView
from diptych.model.view import View

NestWord = Literal["set", "disconnect", "delete", "update", "connect", "create"]
NestTaking = Literal["create", "update"]
_TAKING: tuple[NestTaking, ...] = ("create", "update")
WORDS: tuple[NestWord, ...] = ("set", "disconnect", "delete", "update", "connect", "create")
"""What a nested write does to the rows of a to-many relation, in the order in which it is done."""


ROW_REF, ROW_ID = "RowRef", "RowId"
"""The types of an item that names a row, with its version or without."""


def nest_type(resource: str, relation: RelationDef) -> str:
    """The name of the type of a relation among the values of a row: `UserPostsWrite`."""
    return f"{resource}{upper_first(relation.name)}Write"


def under_type(target: str, inverse: str) -> str:
    """The name of the type of a new row of a to-many relation: `PostUnderAuthor`."""
    return f"{target}Under{upper_first(inverse)}"


def update_type(target: str) -> str:
    """The name of the type of an item that changes a row: `PostUpdate`."""
    return f"{target}Update"


def link_type(resource: str, relation: RelationDef) -> str:
    """The name of the type of an item that connects a row: `PostTagsLink`."""
    return f"{resource}{upper_first(relation.name)}Link"


class NestView(Struct, frozen=True, eq=False):
    """A relation that a role can write with its row: what it may do, and the field that refers to the other row."""

    relation: RelationDef
    words: tuple[NestWord, ...]
    """What the role may do."""
    known: tuple[NestWord, ...]
    """What anyone may do."""
    key: str
    theirs: str = ""
    """The field of the link that refers to the other row, if there is a link; `key` is its field for this one."""
    by: str = ""
    """The unique key of the link over both."""


def nests_of(resource: ResourceView, view: View, verb: NestTaking) -> Mapping[str, NestView]:
    """The relations that the role can write with a row of this resource, in the order of the model."""
    return {name: nest for name, nest in all_nests(resource, view, verb).items() if nest.words}


def all_nests(resource: ResourceView, view: View, verb: NestTaking) -> Mapping[str, NestView]:
    """The relations that the role sees, also those that only others can write."""
    key = ("nests", resource.resource.name, verb)
    known: Mapping[str, NestView] | None = view.memo.get(key)
    if known is None:
        shown = (way.relation for way in resource.ways.values() if not _by_several(way.relation))
        nests = [
            _through(relation, view, verb) if relation.kind == "through" else _nest(relation, resource, view, verb)
            for relation in shown
        ]
        view.memo[key] = known = {nest.relation.name: nest for nest in nests}
    return known


def _by_several(relation: RelationDef) -> bool:
    """Is it a reference by several columns? Those are fields of their own, by which it is written."""
    return bool(relation.columns or relation.other_columns)


def offered(relation: str, resource: ResourceView, view: View) -> tuple[NestWord, ...]:
    """What the role may do to a relation when it creates a row, or when it updates one."""
    words: dict[NestWord, None] = {}
    for verb in _TAKING:
        nest = nests_of(resource, view, verb).get(relation) if resource.may(verb) else None
        words |= dict.fromkeys(nest.words if nest else ())
    return tuple(word for word in reversed(WORDS) if word in words)


def link_key(link: ResourceDef, relation: RelationDef) -> str:
    """The unique key of a link over both of its references; "" if it has none."""
    ends = {relation.link_mine + "Id", relation.link_theirs + "Id"}
    return next((name for name, fields in link.unique_keys.items() if set(fields) == ends), "")


def link_fields(nest: NestView, view: View) -> Mapping[str, InputView]:
    """The fields of the link that a client may give when it connects two rows."""
    takes = view.resources[nest.relation.link].takes("create")
    return {name: taken for name, taken in takes.items() if name not in (nest.key, nest.theirs, "id")}


def _through(relation: RelationDef, view: View, verb: NestTaking) -> NestView:
    """A relation through a link: rows are connected by rows of the link, and never changed or deleted."""
    mine, theirs = relation.link_mine + "Id", relation.link_theirs + "Id"
    link, target = view.resources[relation.link], view.resources[relation.target]
    by = link_key(link.resource, relation)
    takes = link.takes("create")
    links = link.may("create") and mine in takes and theirs in takes
    bare = all(name in (mine, theirs) or not taken.required for name, taken in takes.items())
    known: list[NestWord] = ["set", "disconnect"] if by and verb == "update" else []
    known += ["connect"] if by else []
    known += ["create"]
    finds = all(name in link.fields for name in (mine, theirs))
    connects, disconnects = links and by in link.upsert_keys, link.may("delete") and finds
    may_do = {
        "set": connects and disconnects,
        "disconnect": disconnects,
        "connect": connects,
        "create": links and bare and target.may("create"),
    }
    return NestView(relation, tuple(word for word in known if may_do[word]), tuple(known), mine, theirs, by)


def _nest(relation: RelationDef, resource: ResourceView, view: View, verb: NestTaking) -> NestView:
    target = view.resources[relation.target]
    if relation.kind == "one":
        key = relation.name + "Id"
        may = key in resource.takes(verb) and target.may("create")
        return NestView(relation, ("create",) if may else (), ("create",), key)
    key = relation.inverse + "Id"
    nullable = target.resource.fields[key].nullable
    known = [word for word in WORDS if verb == "update" or word in ("connect", "create")]
    known = [word for word in known if word != "set" and (nullable or word != "disconnect")]
    connects = key in target.takes("update")
    may_do = {
        "disconnect": connects,
        "delete": target.may("delete"),
        "update": bool(target.takes("update")),
        "connect": connects,
        "create": target.may("create") and key in target.takes("create"),
    }
    return NestView(relation, tuple(word for word in known if may_do[word]), tuple(known), key)
