"""Aggregates: which measures and buckets a type has, and the types of their values.

    total: Decimal     sum avg min max distinct        by its value
    createdAt: DateTime    min max distinct            by its value, year, month, day or hour
    status: an enum            distinct                by its value

A sum of integers is a BigInt, and one of decimals a Decimal of the same scale; both have at most SUM_DIGITS digits, and
a longer one is refused. The average is a Float: the sum divided by the count, each as the nearest double, so that it is
the same on every store. A Float has no sum and no average, since these would depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.model.decimal_scalar import decimal
from diptych.model.defs import ResourceDef, Resources
from diptych.model.naming import upper_first
from diptych.model.resource_view import FieldView, ResourceView
from diptych.model.rules.expr import Bucket, Col, Expr, Fn, GroupKey, Mask, Measure, Part, Via, is_condition
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, DATETIME, FLOAT, IDS, INT, STRING, Scalar

SUM_DIGITS = 18
"""The most digits of a sum."""
COUNT, SUMMARY, VALUE = "count", "summary", "value"
_TAKEN = frozenset({COUNT, SUMMARY, "some", "none", "every", "and", "or", "not"})
"""Names that mean something else where fields are measured."""
_LEFT_OUT = frozenset({"id", "version"})
_NUMBER: tuple[Fn, ...] = ("sum", "avg", "min", "max", "distinct")
_RANGE: tuple[Fn, ...] = ("min", "max", "distinct")
_DISTINCT: tuple[Fn, ...] = ("distinct",)
_BUCKETS: Mapping[Scalar, tuple[Bucket, ...]] = {
    DATETIME: ("value", "year", "month", "day", "hour"),
    DATE: ("value", "year", "month", "day"),
    FLOAT: (),
}


def functions(scalar: Scalar) -> tuple[Fn, ...]:
    """The measures of values of a type."""
    if scalar in (INT, BIGINT) or scalar.digits:
        return _NUMBER
    if scalar in (STRING, FLOAT, DATE, DATETIME):
        return _RANGE
    return _DISTINCT if _is_comparable(scalar) else ()


def buckets(scalar: Scalar) -> tuple[Bucket, ...]:
    """What rows can be grouped by."""
    return _BUCKETS.get(scalar, ("value",) if _is_comparable(scalar) else ())


def _is_comparable(scalar: Scalar) -> bool:
    return scalar.sortable and "eq" in scalar.ops


def is_measured_key(scalar: Scalar) -> bool:
    """Does a group show measures of such a field, and its key as their `value`? Of other fields it shows the key."""
    return scalar in (INT, BIGINT, FLOAT, *IDS) or scalar.digits is not None


def measured(resource: ResourceView) -> dict[str, FieldView]:
    """The fields of a resource that have measures."""
    return {name: shown for name, shown in _usable(resource) if functions(shown.field.scalar)}


def groupable(resource: ResourceView) -> dict[str, FieldView]:
    """The fields of a resource that its rows can be grouped by."""
    return {name: shown for name, shown in _usable(resource) if buckets(shown.field.scalar)}


def _usable(resource: ResourceView) -> list[tuple[str, FieldView]]:
    return [
        (name, shown)
        for name, shown in resource.fields.items()
        if shown.field.python is None and name not in _LEFT_OUT and name not in _TAKEN
    ]


def measures_type(scalar: Scalar, *, with_key: bool) -> str:
    """The name of the GraphQL type of measures of a field; in groups `with_key`, its value."""
    if functions(scalar) == _DISTINCT and not (with_key and is_measured_key(scalar)):
        return "DistinctMeasures"
    name = scalar.graphql or scalar.name
    return f"{name}KeyMeasures" if with_key and is_measured_key(scalar) and buckets(scalar) else f"{name}Measures"


def summary_type(resource: ResourceDef) -> str:
    """The name of the GraphQL type of a summary: `OrdersSummary`."""
    return upper_first(resource.many) + "Summary"


def group_type(resource: ResourceDef) -> str:
    """The name of the GraphQL type of a group: `OrdersGroup`."""
    return upper_first(resource.many) + "Group"


def measure_scalar(fn: Fn, scalar: Scalar | None) -> Scalar:
    """The type of a measure of values of a type."""
    if fn in ("count", "distinct") or scalar is None:
        return INT
    if fn == "avg":
        return FLOAT
    if fn == "sum":
        return decimal(SUM_DIGITS, scalar.digits[1]) if scalar.digits else BIGINT
    return scalar


def expr_scalar(expr: Expr, resource: ResourceDef, resources: Resources) -> Scalar | None:
    """The type of a sort key, where it is known."""
    match expr:
        case Col(path):
            for step in path[:-1]:
                resource = resources[resource.relations[step].target]
            return resource.fields[path[-1]].scalar
        case Part(scalar=scalar):
            return scalar
        case Via(relation, of):
            return expr_scalar(of, resources[resource.relations[relation].target], resources)
        case Measure(fn, of, relation):
            inner = resources[resource.relations[relation].target] if relation else resource
            return measure_scalar(fn, None if fn == "count" else expr_scalar(of, inner, resources))
        case GroupKey(of) | Mask(of=of):
            return expr_scalar(of, resource, resources)
    return BOOLEAN if is_condition(expr) else None
