"""One row of a nested write, and the Write that it becomes.

    {"title": "New", "comments": {"delete": [{"id": "…"}]}}

    NestedRow("delete", Comment, id=…, within=("Post", "comments", Ref(-1)))
        → Write("delete", "Comment", Slot(0), within=Within("Post", "comments", Slot(1)))

A row with a `cut` means several: all links of the row around it but those that a `set` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from diptych.api.ask_builder import AskBuilder
from diptych.ask.nodes import RowSet, Within, Write, WriteVerb
from diptych.ask.slots import MOST, RawValue
from diptych.ask.wish import Follows, WriteWish
from diptych.errors import Path
from diptych.model.nesting import NestView
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import Col, Compare, Expr, and_, not_
from diptych.model.view import View

RelationPaths = frozenset[tuple[str, ...]]
"""Relations, as paths from a row."""


class LinkCut(NamedTuple):
    """The links that a `set` deletes: those to other rows, up to the limit of a request."""

    nest: NestView
    others: RawValue
    most: int


class NestedRow(Struct, eq=False):
    """One row of a nested write."""

    verb: WriteVerb
    resource: ResourceView
    values: RawValue
    """Its plain fields, with references to the rows around it."""
    place: Path = ()
    """Its place in the request, if the paths of its values are its own."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    id: RawValue | None = None
    version: RawValue | None = None
    within: tuple[str, str, RawValue] | None = None
    """The row that it must belong to: the resource, the relation and a reference."""
    by: str = ""
    """The unique key by which it is found, if it is a link."""
    later: RelationPaths = frozenset()
    """The relations that the same nested write writes after it, as in `Follows`."""
    cut: LinkCut | None = None
    """The links that it deletes, if these are those that a `set` leaves out."""

    parent: RawValue | None = None
    """The id of the row around it, if that is not written itself."""
    named: bool = False
    """Is it a link to a row that an `id` names, not to a new one?"""
    like: NestedRow | None = None
    """A row of the same list with the same fields, none of them null: it has the same Write."""

    @property
    def shape(self) -> tuple[Any, ...] | None:
        """What besides its fields can change its Write, or where its values come from."""
        if self.cut is None and self.parent is None and not self.named:
            return None
        others = None if self.cut is None else (bool(self.cut.others.value), self.cut.most)
        return others, self.parent and self.parent.path, self.named

    def wish(self, view: View) -> WriteWish:
        """The Write of this row, which is not answered."""
        builder = AskBuilder(view)
        if self.cut is not None and self.within is not None:
            return builder.write(self._cut(builder, self.cut, self.within), self.values.path)
        key = builder.row_id(self.resource, self.id, self.values if self.verb == "create" else None)
        if self.by and self.verb == "delete":
            values = builder.key_of(self.resource, self.values)
        else:
            values = builder.values(self.verb, self.resource, self.values)
        version = builder.version(self.version)
        within = None
        if self.within is not None:
            name, relation, raw = self.within
            slot = builder.slots.take(view.model[name].key, raw, target=name)
            within = Within(name, relation, slot)
        ask = Write(self.verb, self.resource.resource.name, key, values, version, within=within)
        if self.by:
            ask = replace(ask, key=self.by, keep=self.verb == "upsert")
        wish = builder.write(ask, self.values.path)
        return replace(wish, follows=Follows(self.later)) if self.later else wish

    def _cut(self, builder: AskBuilder, cut: LinkCut, around: tuple[str, str, RawValue]) -> Write:
        """The deletion of all links of the row around it but those to some rows."""
        (name, relation, raw), nest = around, cut.nest
        key = builder.no_id(self.resource)
        parent = builder.slots.take(builder.view.model[name].key, raw, target=name)
        where: Expr = Compare("eq", Col((nest.key,)), parent)
        if cut.others.value:
            target = builder.view.model[nest.relation.target]
            others = builder.slots.take(target.key, cut.others, many=True, target=target.name)
            where = and_(where, not_(Compare("in", Col((nest.theirs,)), others)))
        most = builder.slots.take(MOST, RawValue(cut.most, self.values.path, fixed=True))
        rows, within = RowSet(where, most), Within(name, relation, parent)
        return Write("delete", self.resource.resource.name, key, within=within, rows=rows)
