"""A change of many rows: which rows it reaches, the change of each of them, and the Read of its answer.

    updatePosts(where: {published: {eq: false}}, patch: {published: true}, most: 200)

    the rows       match the filter, and the viewer may read and change them, by the rules as they are
    each of them   Write("update", "Post", …): an update like any other, by all of its rules

What the change would make of a row is no part of the filter: one row that may not become so refuses all. So does one
that may not be deleted, of the links that a `set` leaves out: it would not be what was asked for.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from diptych.ask.nodes import ConnectionPart, Nodes, Page, Read, RowSet, Write
from diptych.ask.slots import SIZE
from diptych.model.rules.expr import Col, Compare, Expr, Slot, and_
from diptych.model.view import View
from diptych.policy.access import narrow_expr
from diptych.policy.within import belongs


def rows_of(write: Write) -> RowSet:
    """The rows of a change of many."""
    assert write.rows is not None
    return write.rows


def each_of(write: Write) -> Write:
    """The change of one of the rows."""
    return replace(write, rows=None, parts=())


def reached(write: Write, view: View) -> Expr:
    """The rows that match, and that the viewer may read and change; of the links of a row, all that the viewer sees."""
    resource = view.resources[write.resource]
    where = narrow_expr(rows_of(write).where, resource, view)
    if write.within is not None:
        return and_(where, resource.read, belongs(write.within, view))
    if write.verb == "delete":
        return and_(where, resource.read, resource.delete)
    fields = (resource.writes[assign.name].update for assign in write.values)
    return and_(where, resource.read, resource.update, *fields)


def asked(write: Write) -> Read:
    """The answer as a page of the rows, to measure and price it."""
    rows = rows_of(write)
    parts = cast("tuple[ConnectionPart, ...]", write.parts)
    return Read(write.resource, "page", parts, rows.where, page=Page(rows.most))


def shown_rows(write: Write, key: Slot) -> tuple[Read, ...]:
    """The Reads of the rows that the answer shows: `key` is the slot of their ids, the next that of their number."""
    where = Compare("in", Col(("id",)), key)
    page = Page(Slot(key.index + 1, SIZE))
    nodes = (part for part in write.parts if isinstance(part, Nodes))
    return tuple(Read(write.resource, "list", part.pick, where, page=page) for part in nodes)
