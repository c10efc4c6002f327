"""Rows of the past → SQL: what a change or a version has stored, under the rules that hold for it.

A rule of the row is judged over the stored values (`FeedRow`), a rule of a field over these and over the row as it is
now; so nobody sees more of a version than of the row then, and now. The versions of a row are read from the audit log:

    { post(id: "…") { history { at post { title } } } }

    … FROM (SELECT version AS id, at, …, old, new FROM diptych_audit WHERE resource = 'posts' AND …) _t1
      WHERE _t1.row_id = CAST(_t0."id" AS text) AND EXISTS (SELECT 1 FROM (SELECT _t1.old, _t1.new, …) _f WHERE …)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from diptych.ask.nodes import Field, Follow, Pick
from diptych.compile.feed_row import FeedRow, negates
from diptych.compile.fragment import Fragment, identifier, join, literal_text, sql
from diptych.compile.page_columns import PageColumns
from diptych.compile.rows import Piece
from diptych.compile.table_ref import TableRef
from diptych.compile.version_sql import LATER, STORED, VERSIONS
from diptych.model.defs import RelationDef
from diptych.model.rules.expr import Expr
from diptych.model.scalars import Scalar


class PastRows(PageColumns):
    """Writes stored rows, and versions of rows."""

    # stored rows

    def shows(self, rule: Expr, row: TableRef) -> Fragment:
        """The condition under which a part of a row shows."""
        if not isinstance(row, FeedRow) or row.now is None:
            return self.condition(rule, row)
        return sql("({} AND {})", self.held(rule, row), self.condition(rule, row.now))

    def held(self, rule: Expr, row: FeedRow) -> Fragment:
        """A condition over a stored row. A negation would hold of what is missing, and so must not be asked."""
        row.looked.clear()
        condition = self.condition(rule, row)
        if not row.looked or not negates(rule, row.resource):
            return condition
        return sql(
            "({} AND {})", join(" AND ", (sql("{} IS NOT NULL", value) for value in row.looked.values())), condition
        )

    def test(self, value: Fragment, scalar: Scalar, row: TableRef) -> Fragment | None:
        """A change that lacks a column that is never null shows no row, rather than one that its type forbids."""
        test = super().test(value, scalar, row)
        return sql("{} IS NOT NULL", value) if test is None and isinstance(row, FeedRow) else test

    def present(self, picks: Iterable[Pick], stored: FeedRow) -> Iterator[Fragment]:
        """Of what is computed and never null, the conditions that it is there: what it comes from may be gone."""
        for pick in picks:
            if isinstance(pick, Field):
                field = stored.resource.fields[pick.name]
                computed = None if field.nullable or field.hideable else field.computed
                if computed is not None and self.nullable(computed, stored.resource):
                    yield sql("{} IS NOT NULL", self.value(computed, stored))

    # versions of rows

    def source(self, row: TableRef) -> Fragment:
        if not row.resource.versions_of:
            return super().source(row)
        table = self.model.resources[row.resource.versions_of].table
        return sql(f"({VERSIONS[self.dialect.name]}) {row.alias}", literal_text(table))

    def tie(self, row: TableRef, relation: RelationDef, target: TableRef, link: Expr) -> Fragment:
        if relation.past and relation.kind == "many":
            return sql("{} = CAST({} AS text)", target.column(relation.column), row.id)
        return super().tie(row, relation, target, link)

    def _has(self, row: TableRef, relation: RelationDef, where: Expr, link: Expr) -> Fragment:
        if not (relation.past and relation.kind == "one"):
            return super()._has(row, relation, where, link)
        held = self.held(where, self._stored_row(relation, None))
        return sql("EXISTS (SELECT 1 FROM {} WHERE {})", self._scope(row, relation), held)

    def past_row(self, pick: Follow, row: TableRef) -> list[Piece]:
        """The row as it was in a version."""
        relation = row.resource.relations[pick.relation]
        now = self.open(relation.target)
        stored = self._stored_row(relation, now)
        picks = cast("tuple[Pick, ...]", pick.read.pick)
        there = (stored.is_row(now), pick.read.where, *self.present(picks, stored))
        shown = sql(
            "SELECT {} FROM {} CROSS JOIN {}{}",
            self.object(picks, stored),
            self._scope(row, relation),
            self.source(now),
            self.all(now, *there),
        )
        return [sql("coalesce(({}), 'null')", shown)]

    def _stored_row(self, relation: RelationDef, now: TableRef | None) -> FeedRow:
        resource = self.model.resources[relation.target]
        self.opened.add(resource.name)
        return FeedRow(resource, "new", self.dialect, now, later=LATER[self.dialect.name])

    def _scope(self, row: TableRef, relation: RelationDef) -> Fragment:
        """A version under the names by which stored rows are read."""
        table = identifier(self.model.resources[relation.target].table)
        return sql(STORED[self.dialect.name].replace("_v.", f"{row.alias}."), table)
