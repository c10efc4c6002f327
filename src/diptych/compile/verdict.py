"""Rules → SQL that evaluates them, for explain: conditions as booleans, and the values that they refer to.

    is Post 0190… published or the viewer's own?

    SELECT ((_t0."published" OR _t0."author_id" = ?2) IS TRUE), json(_t0."published"), json(_t0."author_id")
      FROM "posts" _t0 WHERE _t0."id" = ?1

The SQL of a condition is the same that guards a statement of the service, so both give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from diptych.ask.guarded import GuardedWrite
from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, join, sql
from diptych.compile.own_row import own_row
from diptych.compile.plan import Plan
from diptych.compile.read import Reads
from diptych.compile.table_ref import TableRef
from diptych.compile.write import new_row
from diptych.model.model import Model
from diptych.model.rules.expr import TRUE, Expr, Has, Slot

SHOWN = 3
"""How many hidden rows of a list are shown as examples."""


class Asking(Struct, frozen=True):
    """An expression, over the row as it is, or over the row as it would become."""

    expr: Expr
    new: bool = False


class Listing(Struct, frozen=True):
    """Rows of a list: those that anyone could ask for, and those that the viewer sees of them.

    Of a list below a row, `relation` leads there: `mine` then holds of the row itself, and `link` of what ties them.
    """

    resource: str
    everyone: Expr
    seen: Expr
    parent: str = ""
    relation: str = ""
    id: Slot | None = None
    mine: Expr = TRUE
    link: Expr = TRUE


def compile_verdict(
    conditions: Sequence[Asking],
    values: Sequence[Asking],
    resource: str,
    id: Slot | None,
    model: Model,
    dialect: Dialect,
    changed: GuardedWrite | None = None,
) -> Plan:
    """A row of a boolean for each condition, then the JSON of each value: of the row with this id, if it is there.

    `changed` makes it the row that it would become; without an id, that is all there is.
    """
    reads = _Verdicts(model, dialect)
    old = reads.open(resource) if id is not None else None
    new = new_row(changed, reads, old) if changed is not None else None
    rows: Mapping[bool, TableRef | None] = {False: old, True: new}
    columns: list[Fragment] = []
    for asking in conditions:
        columns.append(sql(dialect.boolean, reads.condition(asking.expr, _there(rows[asking.new]))))
    columns += [reads.value_json(asking.expr, _there(rows[asking.new])) for asking in values]
    picked = join(", ", columns) if columns else Fragment("NULL")
    if old is None or id is None:
        return dialect.plan(sql("SELECT {}", picked))
    own = own_row(old, id, dialect)
    return dialect.plan(sql("SELECT {} FROM {} WHERE {}", picked, reads.source(old), own))


def compile_counts(listing: Listing, model: Model, dialect: Dialect) -> Plan:
    """One row of two numbers: how many rows there are, and how many the viewer sees."""
    reads = _Verdicts(model, dialect)
    both = [reads.listed(listing, "count(*)", seen=seen) for seen in (False, True)]
    return dialect.plan(sql("SELECT ({}), ({})", *both))


def compile_hidden(listing: Listing, model: Model, dialect: Dialect) -> Plan:
    """The ids, as JSON, of the first rows that are there and that the viewer does not see."""
    return dialect.plan(_Verdicts(model, dialect).hidden(listing))


class _Verdicts(Reads):
    def value_json(self, expr: Expr, row: TableRef) -> Fragment:
        """A value as JSON text; of related rows, how many there are for which the condition holds, and how many."""
        if isinstance(expr, Has):
            return self._counted(expr, row)
        scalar = self.scalar(expr, row.resource)
        assert scalar is not None
        return sql("CAST({} AS TEXT)", self.dialect.concat(self.json(self.value(expr, row), scalar, nullable=True)))

    def _counted(self, has: Has, row: TableRef) -> Fragment:
        relation = row.resource.relations[has.relation]
        target = self.open(relation.target)
        tied = self.tie(row, relation, target, has.link or TRUE)
        if relation.kind == "one" and isinstance(has.where, Has):
            inner = self._counted(has.where, target)
            return sql("coalesce((SELECT {} FROM {}{}), '[0,0]')", inner, self.source(target), self.all(target, tied))
        count = "CAST((SELECT count(*) FROM {}{}) AS TEXT)"
        matching = sql(count, self.source(target), self.all(target, tied, has.where))
        return self.dialect.concat(["[", matching, ",", sql(count, self.source(target), self.all(target, tied)), "]"])

    def listed(self, listing: Listing, what: str, *, seen: bool) -> Fragment:
        row, source, tied, seeing = self._rows_of_listing(listing)
        where = self.all(row, *seeing, listing.seen) if seen else self.all(row, *tied, listing.everyone)
        return sql("SELECT " + what + " FROM {}{}", source, where)

    def hidden(self, listing: Listing) -> Fragment:
        row, source, tied, seeing = self._rows_of_listing(listing)
        sees = join(" AND ", [*seeing, self.condition(listing.seen, row)])
        key = self.dialect.concat(self.json(row.id, row.resource.key, nullable=True))
        where = self.all(row, *tied, listing.everyone, sql("({}) IS NOT TRUE", sees))
        return sql("SELECT {} FROM {}{} ORDER BY {} LIMIT " + str(SHOWN), key, source, where, row.id)

    def _rows_of_listing(self, listing: Listing) -> tuple[TableRef, Fragment, list[Fragment], list[Fragment]]:
        """A row of the list, where it comes from, and what ties it there: for everyone, and for the viewer."""
        if listing.id is None:
            row = self.open(listing.resource)
            return row, self.source(row), [], []
        parent, row = self.open(listing.parent), self.open(listing.resource)
        relation = parent.resource.relations[listing.relation]
        own = own_row(parent, listing.id, self.dialect)
        tied = [own, self.tie(parent, relation, row, TRUE)]
        seeing = [own, self.tie(parent, relation, row, listing.link), self.condition(listing.mine, parent)]
        return row, sql("{}, {}", self.source(parent), self.source(row)), tied, seeing


def _there(row: TableRef | None) -> TableRef:
    assert row is not None
    return row
