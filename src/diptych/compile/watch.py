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

from diptych.ask.nodes import ChangePart, Field, Pick, Watch
from diptych.ask.slots import CHANGE_KIND
from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, finish, identifier, join, sql, text
from diptych.compile.plan import ConstBind, Plan, SlotBind
from diptych.compile.read import Reads
from diptych.compile.rows import Piece
from diptych.compile.where import Row
from diptych.model.defs import SERVER_FIELDS, ResourceDef
from diptych.model.expr import Choose, Col, Expr, IsNull, Mask, Not, leaves, rewrite
from diptych.model.model import Model
from diptych.model.scalars import BIGINT, DATETIME, INT, JSON, STRING, Scalar

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
    return Plan(statement, binds, tuple(dialect.getter(each) for each in binds), searches=writer.searches)


class FeedRow(Row):
    """A row as the feed has stored it, before or after a change; and where the row is now, if that matters."""

    __slots__ = ("_dialect", "_fill", "_required", "_side", "_texts", "_whole", "looked", "now")

    def __init__(self, resource: ResourceDef, side: str, dialect: Dialect, now: Row | None = None) -> None:
        super().__init__(resource, "_f")
        self.now = now
        self.looked: dict[str, Fragment] = {}
        """The columns that were asked for and that older changes may lack though they are never null."""
        self._side = side
        self._dialect = dialect
        self._fill = {
            field.column: ConstBind(field.default_value.value, field.scalar)
            for field in resource.fields.values()
            if field.stored and not field.nullable and field.default is not None
        }
        self._required = {
            field.column
            for field in resource.fields.values()
            if field.stored and not field.nullable and field.name not in SERVER_FIELDS
        }
        self._texts = {field.column for field in resource.fields.values() if field.scalar in (STRING, JSON)}
        self._whole = [each.column for each in resource.fields.values() if each.scalar is JSON and not each.nullable]

    def column(self, name: str) -> Fragment:
        """A column that was added since then has its default, or none at all. (A JSON null in JSON is no value to a
        database.)"""
        found = self._stored(self._side, name)
        if name in self._whole:
            found = sql(self._dialect.stored_json, found)
        fill = self._fill.get(name)
        if fill is not None:
            return sql("coalesce({}, {})", found, self._dialect.value(fill))
        if name in self._required:
            self.looked[name] = found
        return found


    def _stored(self, side: str, name: str) -> Fragment:
        """A value as it is stored; what an update has left as it was may stand elsewhere."""
        found = self._dialect.stored.format(side, identifier(name).text.strip('"'))
        if name not in self._texts:
            return Fragment(found)
        later = self._dialect.later.format(self.resource.table, name)
        if side == "old":
            later = self._stored("new", name).text
        return Fragment(self._dialect.left_out.format(found, later, name))


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
        found = self._held(seen, row)
        if gone != seen:
            now = self.open(row.resource.name)
            there = sql("EXISTS (SELECT 1 FROM {}{})", self.source(now), self.all(now, sql("{} = {}", now.id, row.id)))
            found = sql("CASE WHEN {} THEN {} ELSE {} END", there, found, self._held(gone, row))
        return sql(self.dialect.boolean, sql("_f." + side + " IS NOT NULL AND {}", found))

    def shows(self, rule: Expr, row: Row) -> Fragment:
        if not isinstance(row, FeedRow) or row.now is None:
            return self.condition(rule, row)
        return sql("({} AND {})", self._held(rule, row), self.condition(rule, row.now))

    def _held(self, rule: Expr, row: FeedRow) -> Fragment:
        """A condition over a stored row. A negation would hold of what is missing, and so must not be asked."""
        row.looked.clear()
        found = self.condition(rule, row)
        if not row.looked or not _negates(rule, row.resource):
            return found
        return sql("({} AND {})", join(" AND ", (sql("{} IS NOT NULL", each) for each in row.looked.values())), found)

    def test(self, value: Fragment, scalar: Scalar, row: Row) -> Fragment | None:
        """A change that lacks a column that is never null shows no row, rather than one that its type forbids."""
        found = super().test(value, scalar, row)
        return sql("{} IS NOT NULL", value) if found is None and isinstance(row, FeedRow) else found

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
        pieces += ['"', self._kind, '",', *self.json(Fragment("_f.row_id"), STRING, nullable=False), ","]
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
        """Of what is computed and never null, the conditions that it is there: what it comes from may be gone."""
        for pick in picks:
            if isinstance(pick, Field):
                field = stored.resource.fields[pick.name]
                computed = None if field.nullable or field.hideable else field.computed
                if computed is not None and self.nullable(computed, stored.resource):
                    yield sql("{} IS NOT NULL", self.value(computed, stored))


def _negates(rule: Expr, resource: ResourceDef) -> bool:
    """Can it hold because a value is missing, by itself or by what is computed?"""
    seen: list[Expr] = []

    def look(part: Expr) -> None:
        if isinstance(part, Not | IsNull | Mask | Choose):
            seen.append(part)

    rewrite(rule, look)
    own = (part.path[0] for part in leaves(rule) if isinstance(part, Col) and len(part.path) == 1)
    computed = (resource.fields[name].computed for name in own)
    return bool(seen) or any(each is not None and _negates(each, resource) for each in computed)
