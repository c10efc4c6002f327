"""Builds the parts of an Ask that are about numbers of rows, for both styles: summaries, groups, sorts by relations.

A style extracts names and RawValues only. A path of names is `total.sum` in REST and `{total: {sum: …}}` in GraphQL:

    ["customer", "name"]            Via("customer", Col(("name",)))
    ["orders", "total", "sum"]      Measure("sum", Col(("total",)), "orders")
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from diptych.ask.nodes import GroupObject, Groups, GroupValue, OrderBy, TypeName
from diptych.ask.slots import RawValue
from diptych.errors import Path
from diptych.model.aggregates import (
    COUNT,
    SUMMARY,
    VALUE,
    buckets,
    functions,
    groupable,
    is_measured_key,
    measure_scalar,
    measured,
    measures_type,
    summary_type,
)
from diptych.model.resource_view import FieldView, ResourceView
from diptych.model.rules.expr import Col, Expr, GroupKey, Measure, Part, Via, all_leaves, and_, not_, or_
from diptych.model.scalars import Scalar
from diptych.model.view import View

_COUNT = Measure("count")


class Selected(NamedTuple):
    """A selected name with its label, and what is selected of it, if it is an object."""

    name: str
    label: str
    inner: tuple[Selected, ...] | None = None


def sort_value(path: Sequence[str], resource: ResourceView, view: View) -> Expr | None:
    """The value at the end of a path: a field of a related row, or a number of related rows; None if there is none."""
    name, *rest = path
    if not rest:
        field = resource.searchable.get(name)
        return Col((name,)) if field is not None and field.field.scalar.sortable else None
    way = resource.ways.get(name)
    if way is None:
        return _member_at(path, resource)
    target = view.resources[way.relation.target]
    if way.relation.kind != "one":
        return measure_at(rest, target, name)
    inner = sort_value(rest, target, view)
    return None if inner is None else Via(name, inner)


def _member_at(path: Sequence[str], resource: ResourceView) -> Part | None:
    """The member of a value object at the end of a path: `address.city`; None if there is none to sort by."""
    field = resource.searchable.get(path[0])
    members = None if field is None or len(path) != 2 else field.field.scalar.members
    member = members.get(path[1]) if members else None
    return Part(Col((path[0],)), path[1], member.scalar) if member is not None and member.scalar.sortable else None


def measure_at(path: Sequence[str], resource: ResourceView, relation: str = "") -> Measure | None:
    """The measure at the end of a path: `count` or `total.sum`; None if there is none."""
    if list(path) == [COUNT]:
        return Measure("count", relation=relation) if relation else _COUNT
    field = measured(resource).get(path[0])
    if field is None or len(path) != 2 or path[1] not in functions(field.field.scalar):
        return None
    return Measure(path[1], Col((path[0],)), relation)


def counts_rows(where: Expr) -> bool:
    """Does a filter depend on numbers of related rows?"""
    return any(isinstance(part, Measure) for part in all_leaves(where))


class NumberFilters(ABC):
    """Builds filters by numbers of rows; faults are collected as everywhere."""

    @abstractmethod
    def fault(self, path: Path, message: str) -> None: ...

    @abstractmethod
    def comparisons(self, raw: RawValue, column: Expr, scalar: Scalar) -> Expr:
        """The comparisons of one value."""

    def number_filter(self, word: str, raw: RawValue, resource: ResourceView, relation: str = "") -> Expr:
        """A condition on numbers of rows: `count: {gte: 3}`, `total: {sum: {gte: "10"}}`."""
        if word == COUNT:
            return self.comparisons(raw, Measure("count", relation=relation), measure_scalar("count", None))
        field = measured(resource).get(word)
        if field is None:
            self.fault(raw.path, f"'{word}' is no number of {resource.resource.name}")
            return and_()
        scalar = field.field.scalar
        if not isinstance(raw.value, dict) or not raw.value:
            self.fault(raw.path, f"expected an object with {', '.join(functions(scalar))}")
            return and_()
        return and_(*(self._measured(fn, child, word, scalar, relation) for fn, child in raw.entries()))

    def _measured(self, fn: str, raw: RawValue, name: str, scalar: Scalar, relation: str) -> Expr:
        if fn not in functions(scalar):
            self.fault(raw.path, f"'{fn}' is none of {', '.join(functions(scalar))}")
            return and_()
        measure = Measure(fn, Col((name,)), relation)
        return self.comparisons(raw, measure, measure_scalar(measure.fn, scalar))

    def having(self, raw: RawValue, resource: ResourceView) -> Expr:
        """The condition on groups."""
        if not isinstance(raw.value, dict):
            self.fault(raw.path, "expected an object of numbers")
            return and_()
        return and_(*(self._having_term(key, child, resource) for key, child in raw.entries()))

    def _having_term(self, key: str, raw: RawValue, resource: ResourceView) -> Expr:
        if raw.value is None:
            self.fault(raw.path, "null is no filter; leave it out, or use isNull")
            return and_()
        if key in ("and", "or"):
            if not isinstance(raw.value, list | dict):
                self.fault(raw.path, "expected a list of filters")
                return and_()
            parts = (self.having(part, resource) for part in raw.items())
            return and_(*parts) if key == "and" else or_(*parts)
        if key == "not":
            return not_(self.having(raw, resource))
        return self.number_filter(key, raw, resource)

    # groups

    def group_key(self, name: str, by: str, path: Path, resource: ResourceView) -> GroupKey | None:
        """A key to group by, with its bucket."""
        field = groupable(resource).get(name)
        if field is None:
            self.fault(path, f"{resource.resource.name} has no field '{name}' to group by")
            return None
        if by not in buckets(field.field.scalar):
            self.fault(path, f"'{by}' is none of {', '.join(buckets(field.field.scalar))}")
            return None
        return GroupKey(Col((name,)), by)

    def group_keys(self, keys: Iterable[GroupKey | None], path: Path) -> tuple[GroupKey, ...]:
        """All keys of groups: at least one, and each field once."""
        known = tuple(key for key in keys if key is not None)
        names = [key.of for key in known]
        if len(set(names)) < len(names):
            self.fault(path, "a field occurs twice")
        return known

    def picked(
        self, items: Iterable[Selected], resource: ResourceView, groups: Groups | None, type_name: str, path: Path
    ) -> tuple[GroupValue | GroupObject | TypeName, ...]:
        """What is selected of a group, or of a summary."""
        cells: dict[str, GroupValue | GroupObject | TypeName] = {}
        for item in items:
            part = self._picked(item, resource, groups, type_name, path)
            if item.label in cells:
                self.fault(path, f"'{item.label}' occurs twice")
            elif part is not None:
                cells[item.label] = part
        return tuple(cells.values())

    def _picked(
        self, item: Selected, resource: ResourceView, groups: Groups | None, type_name: str, path: Path
    ) -> GroupValue | GroupObject | TypeName | None:
        name, label = item.name, item.label
        if name == "__typename":
            return TypeName(label, type_name)
        field = resource.searchable.get(name)
        if name == COUNT or (groups is not None and name in groupable(resource) and field and shows_key(field)):
            key = _COUNT if groups is None or name == COUNT else key_of_groups(name, groups)
            if key is None:
                self.fault(path, f"'{name}' is no key of these groups: add it to by")
            elif item.inner is not None:
                self.fault(path, f"'{name}' is a value and takes no ( )")
            return None if key is None else GroupValue(label, key)
        if item.inner is None:
            self.fault(path, f"'{name}' is no number: select from it, as in total(sum)")
            return None
        if name == SUMMARY and groups is not None:
            return GroupObject(label, self.picked(item.inner, resource, None, summary_type(resource.resource), path))
        if name not in measured(resource) or field is None:
            self.fault(path, f"{resource.resource.name} has no field '{name}' with measures")
            return None
        return GroupObject(label, self._measures(item.inner, field, groups, path))

    def _measures(
        self, items: Iterable[Selected], field: FieldView, groups: Groups | None, path: Path
    ) -> tuple[GroupValue | GroupObject | TypeName, ...]:
        """The measures of one field, and its key."""
        scalar, name = field.field.scalar, field.field.name
        cells: dict[str, GroupValue | TypeName] = {}
        for item in items:
            if item.label in cells:
                self.fault(path, f"'{item.label}' occurs twice")
            if item.name == "__typename":
                cells[item.label] = TypeName(item.label, measures_type(scalar, with_key=groups is not None))
            elif item.name in functions(scalar) and item.inner is None:
                cells[item.label] = GroupValue(item.label, Measure(item.name, Col((name,))))
            elif item.name == VALUE and groups is not None and (key := key_of_groups(name, groups)) is not None:
                cells[item.label] = GroupValue(item.label, key)
            elif item.name == VALUE and groups is not None:
                self.fault(path, f"'{name}' is no key of these groups: add it to by")
            else:
                self.fault(path, f"'{item.name}' is none of {', '.join(functions(scalar))}")
        return tuple(cells.values())

    def group_sort(
        self, names: Sequence[str], descending: bool, path: Path, resource: ResourceView, groups: Groups
    ) -> OrderBy | None:
        """A key of a sort of groups: a key, `count`, `total.sum`, or `summary.createdAt.max`."""
        by: Expr | None = None
        field = groupable(resource).get(names[0])
        value = [VALUE] if field is not None and is_measured_key(field.field.scalar) else []
        if field is not None and names[1:] in ([], value):
            by = key_of_groups(names[0], groups)
        elif names[0] == SUMMARY and len(names) > 1:
            by = measure_at(names[1:], resource)
        elif field is None or is_measured_key(field.field.scalar):
            by = measure_at(names, resource)
        if by is None:
            self.fault(path, f"'{'.'.join(names)}' is neither a key nor a measure of these groups")
            return None
        return OrderBy(by, descending)


def key_of_groups(name: str, groups: Groups) -> GroupKey | None:
    """The key of groups by a field."""
    return next((key for key in groups.by if key.of == Col((name,))), None)


def shows_key(field: FieldView) -> bool:
    """Does a group show the key of a field itself, and not measures of it?"""
    return not is_measured_key(field.field.scalar)
