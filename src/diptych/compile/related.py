"""Values of other rows → SQL: of the row that a to-one relation leads to, and numbers of many.

Via("customer", Col(("name",)))          (SELECT _t1."name" FROM "users" _t1 WHERE _t1."id" = _t0."customer_id")
Measure("count", relation="orders")      (SELECT _s._s0 FROM (SELECT count(*) AS _s0 FROM "orders" _t1 WHERE …) _s)
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from diptych.compile.aggregates import BUCKETS, measure_sql
from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, join, sql
from diptych.compile.table_ref import GroupRef, TableRef
from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.rules.expr import TRUE, Col, Expr, GroupKey, Measure, Via, is_condition, leaves
from diptych.model.scalars import STRING, Scalar


class RelatedValues(ABC):
    """Writes values of related rows and of groups."""

    dialect: Dialect

    @abstractmethod
    def open(self, resource: str) -> TableRef: ...

    @abstractmethod
    def source(self, row: TableRef) -> Fragment: ...

    @abstractmethod
    def all(self, row: TableRef, *conditions: Fragment | Expr) -> Fragment: ...

    @abstractmethod
    def tie(self, row: TableRef, relation: RelationDef, target: TableRef, link: Expr) -> Fragment: ...

    @abstractmethod
    def condition(self, expr: Expr, row: TableRef) -> Fragment: ...

    @abstractmethod
    def value(self, expr: Expr, row: TableRef, scalar: Scalar | None = None) -> Fragment: ...

    @abstractmethod
    def scalar(self, expr: Expr, resource: ResourceDef) -> Scalar | None: ...

    def of_others(self, expr: GroupKey | Measure | Via, row: TableRef) -> Fragment:
        """A value of a group, or of related rows."""
        if isinstance(row, GroupRef) and expr in row.values:
            return row.values[expr]
        if isinstance(expr, Via):
            return self._via(row, row.resource.relations[expr.relation], expr.of, expr.where)
        assert isinstance(expr, Measure), expr
        return self._measure(expr, row)

    def _via(self, row: TableRef, relation: RelationDef, of: Expr, where: Expr) -> Fragment:
        """A value of the row that a to-one relation leads to."""
        target = self.open(relation.target)
        condition = self.all(target, self.tie(row, relation, target, TRUE), where)
        return sql("(SELECT {} FROM {}{})", self.value(of, target), self.source(target), condition)

    def _measure(self, measure: Measure, row: TableRef) -> Fragment:
        """A measure of the rows that a relation leads to."""
        relation = row.resource.relations[measure.relation]
        target = self.open(relation.target)
        tied = [self.tie(row, relation, target, measure.link or TRUE)]
        if measure.rule != TRUE:
            tied.append(self.condition(measure.rule, row))
        parts, whole = self.measure_parts(measure, target)
        where = self.all(target, *tied, measure.where)
        columns = [sql(f"{{}} AS _s{index}", part) for index, part in enumerate(parts)]
        inner = sql("SELECT {} FROM {}{}", join(", ", columns), self.source(target), where)
        names = [Fragment(f"_s._s{index}") for index in range(len(parts))]
        return sql("(SELECT {} FROM ({}) _s)", sql(whole, *names), inner)

    def measure_parts(self, measure: Measure, row: TableRef) -> tuple[list[Fragment], str]:
        """The aggregates that a measure is made of, and how: a template over them."""
        if measure.fn == "count":
            return [Fragment("count(*)")], "{0}"
        scalar = self.scalar(measure.of, row.resource) or STRING
        value = self._valid(measure.of, row, scalar)
        names = [part.path[-1] for part in leaves(measure.of) if isinstance(part, Col)]
        parts, whole = measure_sql(self.dialect.name, measure.fn, scalar, names[-1] if names else "")
        return [sql(part, value) for part in parts], whole

    def key_value(self, key: GroupKey, row: TableRef) -> Fragment:
        """The key of the group that a row is in."""
        scalar = self.scalar(key.of, row.resource) or STRING
        value = self._valid(key.of, row, scalar)
        return value if key.by == "value" else sql(BUCKETS[self.dialect.name, scalar, key.by], value)

    def _valid(self, of: Expr, row: TableRef, scalar: Scalar) -> Fragment:
        """A value; null if its type does not allow it."""
        value = self.value(of, row)
        test = "" if is_condition(of) else self.dialect.test(scalar)
        return sql("CASE WHEN {} THEN {} END", sql(test, value), value) if test else value
