"""An Ask in words, without a value: for the slow log.

    posts where published = ? and author.id = viewer.id, by createdAt descending: title, author (name)

Names are those of the API; `?` stands for a value of the request.
"""

from __future__ import annotations

from collections.abc import Iterable

from diptych.ask.nodes import (
    Ask,
    Call,
    ConnectionPart,
    Edges,
    Field,
    Follow,
    GroupObject,
    GroupValue,
    Nodes,
    OrderBy,
    PageInfo,
    Pick,
    Read,
    Total,
    Watch,
    Write,
)
from diptych.model.defs import Resources
from diptych.model.describe.rule_text import render
from diptych.model.rules.expr import TRUE, Expr
from diptych.model.viewer_object import VIEWER

_SHOWN = 20
"""The most fields of one row that are named."""
_DEEPEST = 5


def ask_text(ask: Ask, resources: Resources) -> str:
    """What a request asks for."""
    match ask:
        case Read():
            return _read(ask, resources, 0)
        case Write():
            return _write(ask, resources)
        case Watch(resource, where=where):
            return f"changes of {resources[resource].many}{_where(where)}"
        case Call(resource, name):
            return f"{name} of {resource}"


def _read(read: Read, resources: Resources, depth: int) -> str:
    if read.resource == VIEWER:
        return f"the viewer{_picked(read.pick, resources, depth)}"
    definition = resources[read.resource]
    name = definition.one if read.take == "one" else definition.many
    words = {"summary": "numbers of ", "groups": "groups of ", "each": "by their ids, "}.get(read.take, "")
    trash = "deleted " * read.deleted
    by = "" if read.groups is None else f" by {', '.join(render(key) for key in read.groups.by)}"
    order = ", ".join(map(_order, read.order))
    offset = ", from an offset" * (read.page is not None and read.page.offset is not None)
    ordered = f", sorted by {order}" if order else ""
    return f"{words}{trash}{name}{by}{_where(read.where)}{ordered}{offset}{_picked(read.pick, resources, depth)}"


def _write(write: Write, resources: Resources) -> str:
    definition = resources[write.resource]
    names = ", ".join(assign.name for assign in write.values[:_SHOWN])
    if write.rows is not None:
        what = f"{definition.many}{_where(write.rows.where)}"
    else:
        what = definition.one + (f" by {write.key}" if write.key else "")
    return f"{write.verb} {what}" + (f": {names}" if names else "") + _answer(write, resources)


def _answer(write: Write, resources: Resources) -> str:
    """What a write answers with, if that is more than fields of its row."""
    nested = [pick for pick in write.pick if isinstance(pick, Follow)]
    return f"; answered with {_names(nested, resources, 0)}" if nested else ""


def _where(where: Expr) -> str:
    return "" if where == TRUE else f" where {render(where)}"


def _order(key: OrderBy) -> str:
    return render(key.by) + " descending" * key.descending


def _picked(parts: Iterable[Pick | ConnectionPart], resources: Resources, depth: int) -> str:
    names = _names(parts, resources, depth)
    if not names:
        return ""
    return f": {names}" if depth == 0 else f" ({names})"


def _names(parts: Iterable[Pick | ConnectionPart], resources: Resources, depth: int) -> str:
    if depth > _DEEPEST:
        return "…"
    names = list(dict.fromkeys(name for part in parts if (name := _name(part, resources, depth))))
    return ", ".join((*names[:_SHOWN], "…") if len(names) > _SHOWN else names)


def _name(part: Pick | ConnectionPart, resources: Resources, depth: int) -> str:
    match part:
        case Field(name):
            return name
        case Follow(relation, read=read):
            inner = _names(read.pick, resources, depth + 1)
            order = ", ".join(map(_order, read.order))
            more = _where(read.where) + (f", sorted by {order}" if order else "")
            return f"{relation}{more}" + (f" ({inner})" if inner else "")
        case Nodes(pick=pick):
            return _names(pick, resources, depth)
        case Edges(parts=edges):
            return _names([pick for edge in edges for pick in edge.pick], resources, depth)
        case Total():
            return "totalCount"
        case GroupValue(of=of):
            return render(of)
        case GroupObject(parts=cells):
            return _names([cell for cell in cells if isinstance(cell, GroupValue | GroupObject)], resources, depth)
        case PageInfo():
            return ""
    return ""
