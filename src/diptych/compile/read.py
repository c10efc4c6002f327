"""Read → SQL that builds the JSON of the answer inside the database, in one statement.

The JSON text is made by concatenation, which both databases do fastest: constant pieces (labels and
punctuation) and columns alternate. A to-one relation is a scalar sub-select, a to-many relation gathers the
texts of its rows.

    { user(id: "…") { name posts(first: 2) { title } } }

    SELECT CAST('{"name":' || json_quote(_t0."name") || ',"posts":[' || (SELECT coalesce(group_concat(_j, ','), '')
      FROM (SELECT '{"title":' || json_quote(_t1."title") || '}' AS _j FROM "posts" _t1
            WHERE _t1."author_id" = _t0."id" ORDER BY _t1."id" LIMIT ?2) _r) || ']}' AS BLOB)
      FROM "users" _t0 WHERE _t0."id" = ?1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from diptych.ask import walk
from diptych.ask.nodes import Field, Follow, GroupObject, GroupValue, MemberPick, Page, Pick, Read, TypeName
from diptych.compile.dialect import Dialect
from diptych.compile.feed_row import FeedRow
from diptych.compile.fragment import Fallible, Fragment, join, label, sql
from diptych.compile.page_columns import has_columns
from diptych.compile.past import PastRows
from diptych.compile.plan import Plan, SlotBind
from diptych.compile.rows import Piece
from diptych.compile.table_ref import TableRef
from diptych.model.defs import FieldDef
from diptych.model.model import Model
from diptych.model.rules.expr import TRUE, Col, Expr, Part, Slot, is_condition
from diptych.model.scalars import STRING

_MOST_JOINS = 32
"""SQLite takes no more than 64 tables in a join."""


_FEED_END = (
    "coalesce((SELECT '[' || position || ',' || mark || ']' FROM diptych_feed WHERE position IS NOT NULL "
    "ORDER BY position DESC LIMIT 1), '[0,0]')"
)
"""The newest position of the feed, with its mark."""


def compile_reads(
    asks: Sequence[Read],
    model: Model,
    dialect: Dialect,
    sizes: Mapping[int, int] | None = None,
    *,
    with_change_cursor: bool = False,
    as_columns: bool = True,
) -> Plan:
    """One statement that answers all the Asks of a request: a column for each, or the parts of a page.

    `sizes` are page sizes that are known beforehand, by slot, for the planner to see. With `with_change_cursor`, a last
    column has the newest position of the feed in the snapshot of the statement. Without `as_columns`, a page is one
    text, and the row beyond it is not read.
    """
    reads = Reads(model, dialect, sizes)
    if as_columns and len(asks) == 1 and not with_change_cursor and has_columns(asks[0]):
        statement, columns, layout = reads.page_columns(asks[0], reads.open(asks[0].resource))
        return dialect.plan(statement, columns, reads.searches, layout, batches=not reads.searches)
    whole = reads.statement_with_cursor(asks) if with_change_cursor else reads.statement(asks)
    return dialect.plan(whole, len(asks) + with_change_cursor, reads.searches, batches=not reads.searches)


class Reads(PastRows):
    """Writes Reads for one dialect."""

    def statement(self, asks: Sequence[Read]) -> Fragment:
        """The whole statement. A single Ask needs no sub-select: without a row there is no answer."""
        if len(asks) == 1 and asks[0].take == "one":
            lists = any(read.page is not None for read in walk.reads(asks))  # one row by itself is not long
            template = self.dialect.bounded if lists else self.dialect.answer
            return self._one(asks[0], self.open(asks[0].resource), template=template)
        if len(asks) == 1 and asks[0].take == "summary":
            return self._summary(asks[0], self.open(asks[0].resource), template=self.dialect.answer)
        if len(asks) == 1 and asks[0].take == "list":
            return sql(self.dialect.only_rows, self._rows_of(asks[0], self.open(asks[0].resource), ()))
        return sql("SELECT {}", join(", ", self._columns(asks)))

    def statement_with_cursor(self, asks: Sequence[Read]) -> Fragment:
        """The whole statement, with the newest position of the feed."""
        return sql("SELECT {}, {}", join(", ", self._columns(asks)), sql(self.dialect.bounded, Fragment(_FEED_END)))

    def _columns(self, asks: Sequence[Read]) -> list[Fragment]:
        return [sql(self.dialect.bounded, self._root(ask)) for ask in asks]

    def _root(self, read: Read) -> Fragment:
        row = self.open(read.resource)
        if read.take == "one":
            return sql("({})", self._one(read, row))
        return self.dialect.concat(self._many(read, row, ()))

    def _one(self, read: Read, row: TableRef, *tied: Fragment, template: str = "{}") -> Fragment:
        text = sql(template, self.object(cast("tuple[Pick, ...]", read.pick), row))
        rows = sql("SELECT {} FROM {}{}", text, self.joined(row), self.all(row, *tied, read.where))
        # what has this key may be several rows of a view: batches of reads rely on one at most
        return rows if row.resource.managed else sql("{} LIMIT 1", rows)

    def _many(self, read: Read, row: TableRef, tied: tuple[Fragment, ...]) -> list[Piece]:
        if read.take == "summary":
            return [sql("({})", self._summary(read, row, *tied))]
        read, row = self.as_rows(read, row)
        if read.take == "page":
            return [sql("({})", self.page(read, row, tied))]
        if read.take == "each":
            return ["[", self._each(read, row), "]"]
        return ["[", sql(self.dialect.rows, self._rows_of(read, row, tied)), "]"]

    def _summary(self, read: Read, row: TableRef, *tied: Fragment, template: str = "{}") -> Fragment:
        """A SELECT of the JSON text of numbers of rows."""
        rows = self.grouped(read, row, tied)
        text = self.object(cast("tuple[Pick, ...]", read.pick), rows)
        return sql("SELECT {} FROM {}", sql(template, text), self.source(rows))

    def _each(self, read: Read, row: TableRef) -> Fragment:
        """The texts of the rows with some ids, in the order of the ids; null where there is none."""
        ids = cast(Slot, cast(Page, read.page).ids)
        one = self._one(read, row, sql("{} = _e.value", row.id))
        return sql(self.dialect.each, self.dialect.value(SlotBind(ids.index, ids.scalar, many=True)), one)

    def _rows_of(self, read: Read, row: TableRef, tied: tuple[Fragment, ...]) -> Fragment:
        """A SELECT of the texts of the rows of a list, in its order: backward, they are read in reverse."""
        inner = self.object(cast("tuple[Pick, ...]", read.pick), row)
        rows = sql("SELECT {} AS _j FROM {}{}{}", inner, self.joined(row), *self.slice(read, row, tied))
        if cast(Page, read.page).backward:
            rows = sql("SELECT _j FROM (SELECT _j, row_number() OVER () AS _i FROM ({}) _b) _b ORDER BY _i DESC", rows)
        return rows

    # the JSON of one row

    def object(self, picks: Sequence[Pick], row: TableRef) -> Fragment:
        """The JSON text of a row."""
        return self.dialect.concat(self._object(picks, row))

    def _object(self, picks: Sequence[Pick], row: TableRef) -> list[Piece]:
        pieces: list[Piece] = ["{"]
        for index, pick in enumerate(picks):
            pieces.append("," * (index > 0) + label(pick.label))
            pieces.extend(self._pick(pick, row))
        return [*pieces, "}"]

    def _pick(self, pick: Pick, row: TableRef) -> list[Piece]:
        match pick:
            case TypeName():
                return [f'"{pick.type}"']
            case Field():
                return self._field(pick, row)
            case GroupValue(of=of):
                scalar = self.scalar(of, row.resource) or STRING
                return self.json(self.value(of, row), scalar, self.nullable(of, row.resource))
            case GroupObject(parts=parts):
                return self._object(parts, row)
            case Follow():
                return self._joined_one(pick, row) if self._always_there(pick, row) else self._follow(pick, row)

    def _field(self, pick: Field, row: TableRef) -> list[Piece]:
        field = row.resource.fields[pick.name]
        if field.python is not None:
            return self._shows(pick.rule, row)
        expr = field.computed or Col((pick.name,))
        if field.scalar.members is not None:
            return self._value_object(pick, expr, field, row)
        value = self.value(expr, row, field.scalar)
        test = None if is_condition(expr) else self.test(value, field.scalar, row)
        if pick.rule == TRUE:
            return self.json(value, field.scalar, self.nullable(expr, row.resource), test)
        return self.json(value, field.scalar, True, test, self.shows(pick.rule, row))

    def _value_object(self, pick: Field, expr: Expr, field: FieldDef, row: TableRef) -> list[Piece]:
        """The JSON text of a value object, with the members that are picked: null if one is not allowed by its type."""
        members = field.scalar.members or {}
        pieces: list[Piece] = ["{"]
        picked = [MemberPick(name, name) for name in members] if pick.inside is None else pick.inside
        for index, inner in enumerate(picked):
            pieces.append("," * (index > 0) + label(inner.label))
            if isinstance(inner, TypeName):
                pieces.append(f'"{inner.type}"')
                continue
            member = members[inner.name]
            value = self.value(Part(expr, member.name, member.scalar), row)
            pieces.extend(self.json(value, member.scalar, member.nullable, self.test(value, member.scalar, row)))
        column = self.value(expr, row, field.scalar)
        there = sql(self.dialect.test(field.scalar), column)
        whole = sql("CASE WHEN {} THEN {} END", there, self.dialect.concat([*pieces, "}"]))
        if pick.rule == TRUE and not self.nullable(expr, row.resource):
            return [Fallible(f"({whole.text})", whole.binds)]
        if pick.rule != TRUE:
            whole = sql("CASE WHEN {} THEN {} END", self.shows(pick.rule, row), whole)
        return [sql("coalesce({}, 'null')", whole)]

    def _shows(self, rule: Expr, row: TableRef) -> list[Piece]:
        """Of a field that Python computes, whether it shows."""
        return ["true" if rule == TRUE else sql("CASE WHEN {} THEN 'true' ELSE 'false' END", self.shows(rule, row))]

    def _follow(self, pick: Follow, row: TableRef) -> list[Piece]:
        relation = row.resource.relations[pick.relation]
        if relation.past and relation.kind == "one":
            return self.past_row(pick, row)
        target = self.open(relation.target)
        tied = [self.tie(row, relation, target, pick.link)]
        if pick.rule != TRUE:
            tied.append(self.shows(pick.rule, row))
        if relation.kind != "one":
            return self._many(pick.read, target, tuple(tied))
        related = sql("({})", self._one(pick.read, target, *tied))
        if relation.nullable or relation.hideable:
            return [sql("coalesce({}, 'null')", related)]
        return [Fallible(related.text, related.binds)]

    def _always_there(self, pick: Follow, row: TableRef) -> bool:
        """Is the related row always there and always visible, so that a join neither drops nor doubles a row?"""
        relation = row.resource.relations[pick.relation]
        plain = pick.rule == TRUE and pick.read.where == TRUE and row.resource.managed
        room = self.joins and len(row.joins) < _MOST_JOINS and not (relation.past or isinstance(row, FeedRow))
        return room and plain and relation.kind == "one" and not relation.nullable

    def _joined_one(self, pick: Follow, row: TableRef) -> list[Piece]:
        relation = row.resource.relations[pick.relation]
        target = self.open(relation.target)
        target.joins = row.joins
        row.joins.append(sql(" CROSS JOIN {} ON {}", self.source(target), self.tie(row, relation, target, TRUE)))
        return self._object(cast("tuple[Pick, ...]", pick.read.pick), target)
