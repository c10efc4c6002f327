"""The oracle of numbers of rows: summaries, groups, and sorts and filters by related rows, over lists of dicts.

    AggregateOracle(model, viewer, rows).numbers(ask, values)      {"count": 2, "total": {"sum": "15.75"}}

A sum of more than 18 digits raises LongSum: whether a store refuses it depends on whether it needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from diptych.ask.nodes import (
    ConnectionPart,
    EdgePart,
    Follow,
    GroupObject,
    GroupValue,
    Nodes,
    OrderBy,
    Pick,
    Read,
    Total,
    TypeName,
)
from diptych.model.defs import ResourceDef
from diptych.model.rules.expr import TRUE, And, Col, Compare, Expr, GroupKey, IsNull, Measure, Not, Or, Slot, Via
from diptych.model.scalars import BIGINT, DATE, Scalar
from tests.support.oracle import Cut, Oracle, Row, compare, wire

_LENGTHS = {"year": 4, "month": 7, "day": 10, "hour": 13}
_FIRST = "0001-01-01T00:00:00.000000Z"


class LongSum(Exception):
    """A sum has more than 18 digits."""


class Group:
    """Rows that share the values of some keys."""

    def __init__(self, keys: Mapping[GroupKey, Any], rows: Sequence[Row]) -> None:
        self.keys = keys
        self.rows = rows


class AggregateOracle(Oracle):
    """Answers Asks with numbers of rows too."""

    def numbers(self, ask: Read, values: Sequence[Any]) -> Any:
        """The answer of a summary or of groups; of any other Ask, the answer of the oracle."""
        self.values = values
        if ask.take == "summary":
            return self._summary(ask, self.listed(ask))
        if ask.take == "groups":
            return self._groups(ask)
        return self.answer(ask, values)

    def _value(self, expr: Expr, row: Row) -> Any:
        match expr:
            case Via(name, of):
                found = self.sight.related(row.resource.relations[name], row)
                return self._value(of, found[0]) if found else None
            case Measure(relation=name):
                return self._measure(expr, self.sight.related(row.resource.relations[name], row))
        return super()._value(expr, row)

    def _pick(self, pick: Pick | ConnectionPart | EdgePart, row: Row) -> Any:
        if isinstance(pick, Follow) and pick.read.take == "summary":
            rows = self.sight.related(row.resource.relations[pick.relation], row)
            return self._summary(pick.read, self._list(pick.read, rows))
        return super()._pick(pick, row)

    # groups

    def _summary(self, read: Read, rows: Sequence[Row]) -> Any:
        return self._cells(read.pick, Group({}, rows), self.model.resources[read.resource])

    def _groups(self, read: Read) -> Any:
        assert read.groups is not None and read.page is not None
        resource = self.model.resources[read.resource]
        found: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.listed(Read(read.resource, "list", (), read.where)):
            keys = tuple(_bucket(key, self._value(key.of, row), resource) for key in read.groups.by)
            found.setdefault(keys, []).append(row)
        groups = [Group(dict(zip(read.groups.by, keys, strict=True)), rows) for keys, rows in found.items()]
        groups = [group for group in groups if self._has(read.groups.having, group)]
        rest = [key for key in read.groups.by if key not in {order.by for order in read.order}]
        order = (*read.order, *map(OrderBy, rest))

        def by_keys(one: Group, other: Group) -> int:
            for key in order:
                left, right = self._of_group(key.by, one), self._of_group(key.by, other)
                if left is None or right is None:
                    if (left is None) != (right is None):
                        return 1 if left is None else -1
                elif left != right:
                    return -1 if (left < right) != key.descending else 1
            return 0

        groups.sort(key=functools.cmp_to_key(by_keys))
        size = self.values[read.page.size.index]
        for part in read.pick:
            if isinstance(part, Nodes):
                nodes = [self._cells(part.pick, group, resource) for group in groups[:size]]
                total = {"total": len(groups)} if any(isinstance(each, Total) for each in read.pick) else {}
                return {"nodes": nodes, "all": [self._cells(part.pick, group, resource) for group in groups]} | total
        return [self._cells(read.pick, group, resource) for group in groups[:size]]

    def _cells(self, parts: Iterable[Any], group: Group, resource: ResourceDef) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for part in parts:
            match part:
                case GroupValue(label, of):
                    shown[label] = wire(self._type(of, resource), self._of_group(of, group))
                case GroupObject(label, inner):
                    shown[label] = self._cells(inner, group, resource)
                case TypeName(label, name):
                    shown[label] = name
        return shown

    def _type(self, of: Expr, resource: ResourceDef) -> Scalar:
        match of:
            case GroupKey(Col((name,))) | Measure("min" | "max", Col((name,))):
                return resource.fields[name].scalar
            case Measure("sum"):
                return BIGINT
        return DATE  # shown as it is

    def _of_group(self, expr: Expr, group: Group) -> Any:
        match expr:
            case GroupKey():
                return group.keys[expr]
            case Measure():
                return self._measure(expr, group.rows)
            case Slot(index):
                return self.values[index]
        raise ValueError(expr)

    def _has(self, expr: Expr, group: Group) -> bool:
        if expr == TRUE:
            return True
        match expr:
            case And(of):
                return all([self._has(part, group) for part in of])
            case Or(of):
                return any([self._has(part, group) for part in of])
            case Not(of):
                return not self._has(of, group)
            case IsNull(of):
                return self._of_group(of, group) is None
            case Compare(op, left, right):
                return compare(op, self._of_group(left, group), self._of_group(right, group))
        raise ValueError(expr)

    def _measure(self, measure: Measure, rows: Sequence[Row]) -> Any:
        if measure.fn == "count":
            return len(rows)
        values = [value for row in rows if (value := self._value(measure.of, row)) is not None]
        match measure.fn:
            case "distinct":
                return len(set(values))
            case "min":
                return min(values, default=None)
            case "max":
                return max(values, default=None)
        total = sum(values) if values else None
        if total is None:
            return None
        scale = -int(total.as_tuple().exponent) if isinstance(total, Decimal) else 0
        whole = int(total.scaleb(scale)) if isinstance(total, Decimal) else total
        if abs(whole) >= 10**18:
            raise LongSum
        return total if measure.fn == "sum" else float(whole) / float(len(values) * 10**scale)

    def cut(self, read: Read, rows: Sequence[Row]) -> Cut:
        return self._cut(read, rows)


def _bucket(key: GroupKey, value: Any, resource: ResourceDef) -> Any:
    """The first moment of the year, month, day or hour."""
    if value is None or key.by == "value":
        return value
    length = _LENGTHS[key.by]
    return (value[:length] + _FIRST[length:])[: len(value)]
