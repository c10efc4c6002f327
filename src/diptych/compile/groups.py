"""Groups of rows → SQL: a sub-select with columns for keys and aggregates, which is then read like a table.

    SELECT '{"status":' || … || ',"total":{"sum":' || … || '}}'
    FROM (SELECT _t0."status" AS _k0, sum(_t0."total") AS _m0 FROM "orders" _t0 WHERE … GROUP BY 1) _t1
    WHERE _t1._m0 >= ?1 ORDER BY _t1._m0 DESC, _t1._k0 LIMIT ?2

So `having` is a WHERE, and pages of groups are written as those of rows are. A summary has no keys and one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from diptych.ask.nodes import Read
from diptych.ask.walk import group_values
from diptych.compile.fragment import Fragment, join, sql
from diptych.compile.keyset import SortColumn
from diptych.compile.rows import Rows
from diptych.compile.table_ref import GroupRef, TableRef
from diptych.model.rules.expr import Expr, Measure, rewrite


class GroupedRows(Rows):
    """Writes rows, and groups of them."""

    def grouped(self, read: Read, row: TableRef, tied: Iterable[Fragment] = ()) -> GroupRef:
        """The groups of the rows of a Read."""
        groups = self.open_groups(read.resource)
        by = () if read.groups is None else read.groups.by
        columns: list[Fragment] = []
        for index, key in enumerate(by):
            columns.append(sql(f"{{}} AS _k{index}", self.key_value(key, row)))
            groups.values[key] = Fragment(f"{groups.alias}._k{index}")
        count = 0
        for measure in dict.fromkeys(_measures(_exprs(read))):
            parts, whole = self.measure_parts(measure, row)
            columns += [sql(f"{{}} AS _m{index}", part) for index, part in enumerate(parts, count)]
            names = [Fragment(f"{groups.alias}._m{index}") for index in range(count, count + len(parts))]
            groups.values[measure] = sql(whole, *names)
            count += len(parts)
        if not columns:
            columns = [Fragment("count(*) AS _m0")]
        numbers = ", ".join(str(index + 1) for index in range(len(by)))
        group_by = Fragment(f" GROUP BY {numbers}" if by else "")
        where = self.all(row, *tied, read.where)
        groups.select = sql("SELECT {} FROM {}{}{}", join(", ", columns), self.source(row), where, group_by)
        return groups

    def open_groups(self, resource: str) -> GroupRef:
        row = self.open(resource)
        return GroupRef(row.resource, row.alias)

    def as_rows(self, read: Read, row: TableRef) -> tuple[Read, TableRef]:
        """Groups as the rows of a list or a page, filtered by `having`; any other Read as it is."""
        if read.groups is None:
            return read, row
        groups = self.grouped(read, row)
        outer = replace(read, take="page" if read.groups.paged else "list", where=read.groups.having)
        self.groups_of[id(read.page)] = groups
        return outer, groups

    def stored_key(self, read: Read, key: SortColumn, digest: Fragment) -> Fragment | None:
        groups = self.groups_of.get(id(read.page)) if read.groups is not None else None
        if groups is None:
            return None
        same = sql("{} = {}", sql(self.dialect.digest, key.value), digest)
        return sql("(SELECT {} FROM {} WHERE {} LIMIT 1)", key.value, self.source(groups), same)


def _exprs(read: Read) -> Iterator[Expr]:
    """All expressions over the groups."""
    yield from (cell.of for cell in group_values(read.pick))
    yield from (key.by for key in read.order)
    if read.groups is not None:
        yield read.groups.having


def _measures(exprs: Iterable[Expr]) -> Sequence[Measure]:
    """The measures in some expressions."""
    measures: list[Measure] = []

    def leaf(part: Expr) -> Expr | None:
        if isinstance(part, Measure):
            measures.append(part)
            return part
        return None

    for expr in exprs:
        rewrite(expr, leaf)
    return measures
