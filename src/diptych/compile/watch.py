"""Watch → SQL: the changes between two positions of the feed, as one viewer sees them.

    subscription { postChanged { kind id post { title } } }

    SELECT CAST('[' || oldest || ',[' || group_concat('[' || _f.position || … || CASE WHEN _f._becomes THEN coalesce(
             (SELECT '{"title":' || json_quote(json_extract(_f.new, '$.title')) || '}'
                FROM "posts" _t0 WHERE _t0."id" = json_extract(_f.new, '$.id') AND _t0."published"), 'null') … AS BLOB)
      FROM (SELECT _f.*, (the old row could be seen) AS _was, (the new one can) AS _becomes FROM diptych_feed _f
             WHERE _f.position > ?1 AND _f.position <= ?2 AND _f.resource = 'posts') _f WHERE (_f._was OR _f._becomes) …

Conditions are the same as those of a read, over another row: its columns are values of the feed, and what they lead to
are the tables as they are now. A part of the row shows if its rule holds for the row as it was stored, and for the row
as it is now; none does if the row cannot be read now, or if something that is never null came from a row that is gone.

The answer is `[oldest, [[position, mark, kind, id, at, row, …], …]]`: `oldest` is the oldest position that is kept,
from the same snapshot, so that whoever follows knows that nothing was trimmed before it was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from diptych.ask.nodes import ChangePart, Field, Follow, Pick, Watch
from diptych.ask.slots import CHANGE_KIND
from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, finish, identifier, sql, text
from diptych.compile.plan import ConstBind, Plan, SlotBind
from diptych.compile.read import Reads
from diptych.compile.rows import Piece
from diptych.compile.where import Row
from diptych.model.defs import ResourceDef
from diptych.model.expr import TRUE, Expr
from diptych.model.model import Model
from diptych.model.scalars import BIGINT, DATETIME, INT, JSON

BOUNDS = ("after", "upto", "most")
"""The values that follow those of the slots: the range of positions, and how many changes are told at most."""
_KIND = (
    "CASE WHEN _f.new IS NULL THEN 'DELETED' WHEN NOT {}._becomes THEN 'LEFT' WHEN _f.old IS NULL THEN 'CREATED' "
    "ELSE 'UPDATED' END"
)


def compile_watch(
    watch: Watch, seen: Expr, gone: Expr, readable: Expr, slots: int, model: Model, dialect: Dialect,
    sizes: Mapping[int, int] | None = None,
) -> Plan:  # fmt: skip
    """The plan of a Watch that has so many slots: `seen` says which rows it sees, as they were and became, `gone` the
    same of rows that are no longer there, and `readable` which the viewer may read now."""
    writer = _Watches(model, dialect, sizes)
    statement, binds = finish(writer.changes(watch, seen, gone, readable, slots), dialect.placeholder)
    return Plan(statement, binds, tuple(dialect.getter(each) for each in binds))


class FeedRow(Row):
    """A row as the feed has stored it, before or after a change; and where the row is now, if that matters."""

    __slots__ = ("_dialect", "_fill", "_side", "_whole", "now")

    def __init__(self, resource: ResourceDef, side: str, dialect: Dialect, now: Row | None = None) -> None:
        super().__init__(resource, "_f")
        self.now = now
        self._side = side
        self._dialect = dialect
        self._fill = {
            field.column: ConstBind(field.default_value.value, field.scalar)
            for field in resource.fields.values()
            if field.stored and not field.nullable and field.default is not None
        }
        self._whole = [each.column for each in resource.fields.values() if each.scalar is JSON and not each.nullable]

    def column(self, name: str) -> Fragment:
        """A column that was added since then has its default. A JSON null in JSON is no value to a database."""
        found = Fragment(self._dialect.stored.format(self._side, identifier(name).text.strip('"')))
        if name in self._whole:
            found = sql(self._dialect.stored_json, found)
        fill = self._fill.get(name)
        return found if fill is None else sql("coalesce({}, {})", found, self._dialect.value(fill))


class _Watches(Reads):
    def changes(self, watch: Watch, seen: Expr, gone: Expr, readable: Expr, slots: int) -> Fragment:
        """The whole statement."""
        self.joins = False
        resource = self.model.resources[watch.resource]
        was, becomes = (self._sees(seen, gone, self._row(resource, side), side) for side in ("old", "new"))
        after, upto, most = (self.dialect.value(SlotBind(slots + at, BIGINT)) for at in range(len(BOUNDS)))
        between = sql("_f.position > {} AND _f.position <= {} AND _f.resource = {}", after, upto, text(resource.table))
        source = sql(self.dialect.changes, between, identifier(resource.table), was, becomes)
        told = self.dialect.concat(self._told(watch.parts, resource, readable))
        rows = sql("SELECT {} AS _j FROM {}{} ORDER BY _f.position LIMIT {}", told, source, self._kinds(watch),
                   sql(self.dialect.limit, most))  # fmt: skip
        oldest = self.json(Fragment(self.dialect.oldest), INT, nullable=False)
        whole = self.dialect.concat(["[", *oldest, ",[", sql(self.dialect.rows, rows), "]]"])
        return sql("SELECT {}", sql(self.dialect.bounded, whole))

    def _sees(self, seen: Expr, gone: Expr, row: FeedRow, side: str) -> Fragment:
        found = self.condition(seen, row)
        if gone != seen:
            now = self.open(row.resource.name)
            there = sql("EXISTS (SELECT 1 FROM {}{})", self.source(now), self.all(now, sql("{} = {}", now.id, row.id)))
            found = sql("CASE WHEN {} THEN {} ELSE {} END", there, found, self.condition(gone, row))
        return sql(self.dialect.boolean, sql("_f." + side + " IS NOT NULL AND {}", found))

    def shows(self, rule: Expr, row: Row) -> Fragment:
        then = self.condition(rule, row)
        now = row.now if isinstance(row, FeedRow) else None
        return then if now is None else sql("({} AND {})", then, self.condition(rule, now))

    def _row(self, resource: ResourceDef, side: str, now: Row | None = None) -> FeedRow:
        self.opened.add(resource.name)
        return FeedRow(resource, side, self.dialect, now)

    @property
    def _kind(self) -> Fragment:
        return Fragment("(" + _KIND.format(self.dialect.judged) + ")")

    def _kinds(self, watch: Watch) -> Fragment:
        if watch.kinds is None:
            return Fragment("")
        wanted = self.dialect.value(SlotBind(watch.kinds.index, CHANGE_KIND, many=True))
        return sql(" AND " + self.dialect.is_in, self._kind, wanted)

    def _told(self, parts: Iterable[ChangePart], resource: ResourceDef, readable: Expr) -> Sequence[Piece]:
        pieces: list[Piece] = ["["]
        pieces += [*self.json(Fragment("_f.position"), INT, nullable=False), ","]
        pieces += [*self.json(Fragment("_f.mark"), INT, nullable=False), ","]
        pieces += ['"', self._kind, '","', Fragment("_f.row_id"), '",']
        pieces += self.json(Fragment("_f.at"), DATETIME, nullable=False)
        for part in parts:
            if part.what == "row":
                pieces += [",", self._shown(part, resource, readable)]
        return [*pieces, "]"]

    def _shown(self, part: ChangePart, resource: ResourceDef, readable: Expr) -> Fragment:
        """The row after the change, if there is one that can be read now."""
        now = self.open(resource.name)
        stored = self._row(resource, "new", now)
        there = (sql("{} = {}", now.id, stored.id), readable, *self._present(part.pick, stored))
        found = sql("SELECT {} FROM {}{}", self.object(part.pick, stored), self.source(now), self.all(now, *there))
        return sql(f"CASE WHEN {self.dialect.judged}._becomes THEN coalesce(({{}}), 'null') ELSE 'null' END", found)

    def _present(self, picks: Iterable[Pick], stored: FeedRow) -> Iterator[Fragment]:
        """Of what is picked and never null, the conditions that it is there: the row that it comes from may be gone."""
        for pick in picks:
            if isinstance(pick, Follow):
                relation = stored.resource.relations[pick.relation]
                if relation.kind == "one" and not (relation.nullable or relation.hideable):
                    yield self._has(stored, relation, TRUE, TRUE)
            elif isinstance(pick, Field):
                field = stored.resource.fields[pick.name]
                computed = None if field.nullable or field.hideable else field.computed
                if computed is not None and self.nullable(computed, stored.resource):
                    yield sql("{} IS NOT NULL", self.value(computed, stored))
