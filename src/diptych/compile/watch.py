"""Watch → SQL: the changes between two positions of the feed, as one viewer sees them.

    subscription { postChanged { kind rowId post { title } } }

    SELECT CAST('[' || oldest || ',[' || group_concat('[' || _f.position || … || CASE WHEN _f._becomes THEN coalesce(
             (SELECT '{"title":' || json_quote(json_extract(_f.new, '$.title')) || '}'
                FROM "posts" _t0 WHERE _t0."id" = json_extract(_f.new, '$.id') AND _t0."published"), 'null') … AS BLOB)
      FROM (SELECT _f.*, (the old row could be seen) AS _was, (the new one can) AS _becomes FROM diptych_feed _f
             WHERE _f.position > ?1 AND _f.position <= ?2 AND _f.resource = 'posts') _f WHERE (_f._was OR _f._becomes) …

Conditions are the same as those of a read, over another row: its columns are values of the feed, and what they lead to
are the tables as they are now. A part of the row shows if its rule holds for the row as it was stored, and for the row
as it is now; none does if the row cannot be read now, or if something that is never null came from a row that is gone.

The answer is `[oldest, [[position, mark, kind, id, at, row, …], …]]`: `oldest` is the oldest position that is kept,
from the same snapshot, so that a reader knows that nothing was trimmed before it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from diptych.ask.nodes import ChangePart, Watch
from diptych.ask.slots import CHANGE_KIND
from diptych.compile.dialect import Dialect
from diptych.compile.feed_row import FeedRow
from diptych.compile.fragment import Fragment, identifier, literal_text, sql
from diptych.compile.plan import Plan, SlotBind
from diptych.compile.read import Reads
from diptych.compile.rows import Piece
from diptych.compile.table_ref import TableRef
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.rules.expr import Expr
from diptych.model.scalars import BIGINT, DATETIME, INT, STRING

BOUNDS = ("after", "upto", "most")
"""The values that follow those of the slots: the range of positions, and the most changes to return."""
_KIND = (
    "CASE WHEN {} THEN 'DELETED' WHEN NOT {}._becomes THEN 'LEFT' WHEN _f.old IS NULL THEN 'CREATED' ELSE 'UPDATED' END"
)


def compile_watch(
    watch: Watch,
    seen: Expr,
    deleted: Expr,
    readable: Expr,
    slots: int,
    model: Model,
    dialect: Dialect,
    sizes: Mapping[int, int] | None = None,
) -> Plan:
    """The plan of a Watch with this number of slots.

    `seen` says which rows it sees, as they were and became, `deleted` the same of rows that were deleted since, and
    `readable` which the viewer may read now.
    """
    writer = WatchStatements(model, dialect, sizes)
    statement = writer.changes(watch, seen, deleted, readable, slots)
    return dialect.plan(statement, searches=writer.searches)


def feed_range(resource: ResourceDef, after: Fragment, upto: Fragment) -> Fragment:
    """The rows of the feed in a range that are changes of a resource."""
    return sql("_f.position > {} AND _f.position <= {} AND _f.resource = {}", after, upto, literal_text(resource.table))


class WatchStatements(Reads):
    def changes(self, watch: Watch, seen: Expr, deleted: Expr, readable: Expr, slots: int) -> Fragment:
        """The whole statement."""
        resource = self.model.resources[watch.resource]
        after, upto, most = self.bounds(slots)
        rows = sql(
            "{} LIMIT {}",
            self.rows(watch, seen, deleted, readable, feed_range(resource, after, upto)),
            sql(self.dialect.unseen, most),
        )
        whole = self.dialect.concat(["[", *self.oldest(), ",[", sql(self.dialect.rows, rows), "]]"])
        return sql("SELECT {}", sql(self.dialect.bounded, whole))

    def bounds(self, slots: int) -> tuple[Fragment, ...]:
        """The values of BOUNDS."""
        return tuple(self.dialect.value(SlotBind(slots + at, BIGINT)) for at in range(len(BOUNDS)))

    def oldest(self) -> Sequence[Piece]:
        """The oldest position that is kept."""
        return self.json(Fragment(self.dialect.oldest), INT, nullable=False)

    def rows(self, watch: Watch, seen: Expr, deleted: Expr, readable: Expr, among: Fragment) -> Fragment:
        """The changes of some rows of the feed that the viewer sees, each as JSON, in their order."""
        self.joins = False
        resource = self.model.resources[watch.resource]
        was, becomes = (self._sees(seen, deleted, self._row(resource, side), side) for side in ("old", "new"))
        source = sql(self.dialect.changes, among, identifier(resource.table), was, becomes)
        change_json = self.dialect.concat(self._change_json(watch.parts, resource, readable))
        return sql("SELECT {} AS _j FROM {}{} ORDER BY _f.position", change_json, source, self._kinds(watch))

    def _sees(self, seen: Expr, deleted: Expr, row: FeedRow, side: str) -> Fragment:
        condition = self.held(seen, row)
        if deleted != seen:
            now = self.open(row.resource.name)
            same = self.all(now, row.is_row(now), row.resource.present)
            there = sql("EXISTS (SELECT 1 FROM {}{})", self.source(now), same)
            condition = sql("CASE WHEN {} THEN {} ELSE {} END", there, condition, self.held(deleted, row))
        return sql(self.dialect.boolean, sql("_f." + side + " IS NOT NULL AND {}", condition))

    def _row(self, resource: ResourceDef, side: str, now: TableRef | None = None) -> FeedRow:
        self.opened.add(resource.name)
        return FeedRow(resource, side, self.dialect, now)

    def _kind(self, resource: ResourceDef) -> Fragment:
        gone = "_f.new IS NULL"
        if resource.trash:
            was, now = (self.dialect.stored.format(side, "deleted_at") for side in ("old", "new"))
            gone = f"{gone} OR (_f.old IS NOT NULL AND {was} IS NULL AND {now} IS NOT NULL)"
        return Fragment("(" + _KIND.format(gone, self.dialect.judged) + ")")

    def _kinds(self, watch: Watch) -> Fragment:
        if watch.kinds is None:
            return Fragment("")
        wanted = self.dialect.value(SlotBind(watch.kinds.index, CHANGE_KIND, many=True))
        return sql(" AND " + self.dialect.is_in, self._kind(self.model.resources[watch.resource]), wanted)

    def _change_json(self, parts: Iterable[ChangePart], resource: ResourceDef, readable: Expr) -> Sequence[Piece]:
        pieces: list[Piece] = ["["]
        pieces += [*self.json(Fragment("_f.position"), INT, nullable=False), ","]
        pieces += [*self.json(Fragment("_f.mark"), INT, nullable=False), ","]
        pieces += ['"', self._kind(resource), '",', *self.json(Fragment("_f.row_id"), STRING, nullable=False), ","]
        pieces += self.json(Fragment("_f.at"), DATETIME, nullable=False)
        for part in parts:
            if part.what == "row":
                pieces += [",", self._shown(part, resource, readable)]
        return [*pieces, "]"]

    def _shown(self, part: ChangePart, resource: ResourceDef, readable: Expr) -> Fragment:
        """The row after the change, if there is one that can be read now."""
        now = self.open(resource.name)
        stored = self._row(resource, "new", now)
        there = (stored.is_row(now), readable, *self.present(part.pick, stored))
        select = sql("SELECT {} FROM {}{}", self.object(part.pick, stored), self.source(now), self.all(now, *there))
        return sql(f"CASE WHEN {self.dialect.judged}._becomes THEN coalesce(({{}}), 'null') ELSE 'null' END", select)
