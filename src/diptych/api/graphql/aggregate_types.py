"""GraphQL types of numbers of rows: summaries, groups, and the filters and sorts by them.

Measures have one type for each scalar (`DecimalMeasures`), which all resources share; a resource has six types of its
own, with a line for each field in each: `OrdersSummary`, `OrdersSummaryOrder`, `OrdersGroup`, `OrdersGroupBy`,
`OrdersGroupOrder` and `OrdersHaving`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLEnumValue,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
)

from diptych.api.ask_builder import DEFAULT_SIZE
from diptych.api.descriptions import describe_search, reason
from diptych.model.aggregates import (
    COUNT,
    SUMMARY,
    VALUE,
    buckets,
    functions,
    group_type,
    groupable,
    is_measured_key,
    measure_scalar,
    measured,
    measures_type,
    summary_type,
)
from diptych.model.naming import upper_first
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import Bucket
from diptych.model.scalars import INT, Scalar
from diptych.model.view import View

T = TypeVar("T", GraphQLObjectType, GraphQLInputObjectType)
_TEXTS = {
    "sum": "Their sum; refused if it has more than 18 digits.",
    "avg": "Their average.",
    "min": "The least.",
    "max": "The greatest.",
    "distinct": "The number of different values.",
    "value": "The key of the group.",
}
_BUCKETS: Mapping[tuple[Bucket, ...], str] = {
    ("value",): "ValueBucket",
    ("value", "year", "month", "day"): "DateBucket",
    ("value", "year", "month", "day", "hour"): "TimeBucket",
}
_ENUMS = {
    names: GraphQLEnumType(
        title,
        {name.upper(): GraphQLEnumValue(name.upper()) for name in names},
        description="What rows are grouped by: a value, or the time in UTC that has it.",
    )
    for names, title in _BUCKETS.items()
}


def search_argument(resource: ResourceView) -> dict[str, GraphQLArgument]:
    """The argument of a full-text search, where the role has one."""
    if not resource.searched:
        return {}
    return {"search": GraphQLArgument(GraphQLString, description=describe_search(resource))}


class AggregateTypes:
    """Makes these types for one role, each when it is first needed."""

    def __init__(
        self,
        view: View,
        wheres: Mapping[str, GraphQLInputObjectType],
        filter_of: Callable[[Scalar], GraphQLInputObjectType],
        input_of: Callable[[Scalar], Any],
        page_info: GraphQLObjectType,
        direction: GraphQLEnumType,
    ) -> None:
        self.view = view
        self._wheres = wheres
        self._filter_of = filter_of
        self._input_of = input_of
        self._page_info = page_info
        self._direction = direction
        self._made: dict[str, Any] = {}

    # fields

    def roots(self, resource: ResourceView) -> dict[str, GraphQLField]:
        """The root fields of a resource."""
        definition = resource.resource
        fields = {definition.summary: self.summary(definition.name)}
        if groupable(resource):
            group = self._group(resource)
            listed = GraphQLNonNull(GraphQLList(GraphQLNonNull(group)))
            text = f"Groups of {definition.name} by page."
            fields[definition.groups] = GraphQLField(listed, self._arguments(resource), description=text)
            page = GraphQLNonNull(self._connection(resource, group))
            name = definition.groups + "Connection"
            fields[name] = GraphQLField(page, self._arguments(resource, connection=True), description=text)
        return fields

    def summary(self, name: str) -> GraphQLField:
        """Numbers of the rows of a resource, or of a relation to it."""
        resource = self.view.resources[name]
        where = {"where": GraphQLArgument(self._wheres[name], description="A filter."), **search_argument(resource)}
        return GraphQLField(GraphQLNonNull(self._summary(resource)), where, description="Numbers of the rows.")

    def _arguments(self, resource: ResourceView, *, connection: bool = False) -> dict[str, GraphQLArgument]:
        by = GraphQLNonNull(GraphQLList(GraphQLNonNull(self._group_by(resource))))
        order = GraphQLList(GraphQLNonNull(self._group_order(resource)))
        size = f"The number of groups, 1 to 100 ({DEFAULT_SIZE})."
        arguments = {
            "by": GraphQLArgument(by, description="The keys, at most 5."),
            "where": GraphQLArgument(self._wheres[resource.resource.name], description="A filter of the rows."),
            **search_argument(resource),
            "having": GraphQLArgument(self._having(resource), description="A filter of the groups."),
            "orderBy": GraphQLArgument(order, description="The sort keys; nulls are last, keys break ties."),
            "first": GraphQLArgument(GraphQLInt, description=size),
            "after": GraphQLArgument(GraphQLString, description="Start after this cursor."),
        }
        if connection:
            arguments["last"] = GraphQLArgument(GraphQLInt, description="The number of groups from the end.")
            arguments["before"] = GraphQLArgument(GraphQLString, description="End before this cursor.")
        arguments["offset"] = GraphQLArgument(GraphQLInt, description="The number of groups to skip.")
        return arguments

    def filters(self, resource: ResourceView) -> dict[str, GraphQLInputField]:
        """Conditions on numbers of rows."""
        fields = {COUNT: GraphQLInputField(self._filter_of(INT), description="How many there are.")}
        for name, shown in measured(resource).items():
            why = reason(shown.field.deprecated)
            fields[name] = GraphQLInputField(self._measures_filter(shown.field.scalar), deprecation_reason=why)
        return fields

    # types of a resource

    def _once(self, name: str, make: Callable[[], T]) -> T:
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def _summary(self, resource: ResourceView) -> GraphQLObjectType:
        name = summary_type(resource.resource)

        def fields() -> dict[str, GraphQLField]:
            own = {COUNT: GraphQLField(GraphQLNonNull(GraphQLInt))}
            for field, shown in measured(resource).items():
                kind = GraphQLNonNull(self._measures(shown.field.scalar, with_key=False))
                own[field] = GraphQLField(kind, deprecation_reason=reason(shown.field.deprecated))
            return own

        text = f"Numbers of many {resource.resource.name}."
        return self._once(name, lambda: GraphQLObjectType(name, fields, description=text))

    def order(self, resource_name: str) -> GraphQLInputObjectType:
        """One key of a sort by numbers of rows."""
        resource = self.view.resources[resource_name]
        name = summary_type(resource.resource) + "Order"

        def fields() -> dict[str, GraphQLInputField]:
            own = {COUNT: GraphQLInputField(self._direction)}
            for field, shown in measured(resource).items():
                kind = self._measures_order(shown.field.scalar, with_key=False)
                own[field] = GraphQLInputField(kind, deprecation_reason=reason(shown.field.deprecated))
            return own

        return self._one_of(name, fields, f"A number of many {resource_name} to sort by: exactly one.")

    def _group(self, resource: ResourceView) -> GraphQLObjectType:
        name = group_type(resource.resource)
        keys = groupable(resource)

        def fields() -> dict[str, GraphQLField]:
            own = {COUNT: GraphQLField(GraphQLNonNull(GraphQLInt))}
            for field, shown in {**keys, **measured(resource)}.items():
                scalar = shown.field.scalar
                if is_measured_key(scalar):
                    own[field] = GraphQLField(GraphQLNonNull(self._measures(scalar, with_key=True)))
                else:
                    own[field] = GraphQLField(self._input_of(scalar))
                own[field].deprecation_reason = reason(shown.field.deprecated)
            return {**own, SUMMARY: GraphQLField(GraphQLNonNull(self._summary(resource)))}

        text = f"{resource.resource.name} that share the keys of `by`: only these can be selected as values."
        return self._once(name, lambda: GraphQLObjectType(name, fields, description=text))

    def _connection(self, resource: ResourceView, group: GraphQLObjectType) -> GraphQLObjectType:
        fields = {
            "nodes": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(group)))),
            "pageInfo": GraphQLField(GraphQLNonNull(self._page_info)),
            "totalCount": GraphQLField(GraphQLNonNull(GraphQLInt), description="The number of groups on all pages."),
        }
        return GraphQLObjectType(group_type(resource.resource) + "Connection", fields, description="A page of groups.")

    def _group_by(self, resource: ResourceView) -> GraphQLInputObjectType:
        def fields() -> dict[str, GraphQLInputField]:
            return {
                name: GraphQLInputField(
                    _ENUMS[buckets(shown.field.scalar)], deprecation_reason=reason(shown.field.deprecated)
                )
                for name, shown in groupable(resource).items()
            }

        return self._one_of(group_type(resource.resource) + "By", fields, "A key of groups: exactly one field.")

    def _group_order(self, resource: ResourceView) -> GraphQLInputObjectType:
        def fields() -> dict[str, GraphQLInputField]:
            own: dict[str, GraphQLInputField] = {COUNT: GraphQLInputField(self._direction)}
            for name, shown in {**groupable(resource), **measured(resource)}.items():
                scalar = shown.field.scalar
                nested = is_measured_key(scalar)
                kind = self._measures_order(scalar, with_key=True) if nested else self._direction
                own[name] = GraphQLInputField(kind, deprecation_reason=reason(shown.field.deprecated))
            return {**own, SUMMARY: GraphQLInputField(self.order(resource.resource.name))}

        text = "One key of a sort of groups: a key of `by`, or a number."
        return self._one_of(group_type(resource.resource) + "Order", fields, text)

    def _having(self, resource: ResourceView) -> GraphQLInputObjectType:
        name = upper_first(resource.resource.many) + "Having"

        def fields() -> dict[str, GraphQLInputField]:
            own = GraphQLList(GraphQLNonNull(self._made[name]))
            words = {"and": GraphQLInputField(own), "or": GraphQLInputField(own)}
            return {**self.filters(resource), **words, "not": GraphQLInputField(self._made[name])}

        text = f"A condition on groups of {resource.resource.name}."
        return self._once(name, lambda: GraphQLInputObjectType(name, fields, description=text))

    # types of scalars

    def _measures(self, scalar: Scalar, *, with_key: bool) -> GraphQLObjectType:
        name = measures_type(scalar, with_key=with_key)

        def make() -> GraphQLObjectType:
            fields: dict[str, GraphQLField] = {}
            if name.endswith("KeyMeasures"):
                fields[VALUE] = GraphQLField(self._input_of(scalar), description=_TEXTS[VALUE])
            for fn in functions(scalar):
                kind = self._input_of(measure_scalar(fn, scalar))
                fields[fn] = GraphQLField(GraphQLNonNull(kind) if fn == "distinct" else kind, description=_TEXTS[fn])
            return GraphQLObjectType(name, fields, description="Measures of a field; nulls are in none.")

        return self._once(name, make)

    def _measures_filter(self, scalar: Scalar) -> GraphQLInputObjectType:
        name = measures_type(scalar, with_key=False) + "Filter"

        def make() -> GraphQLInputObjectType:
            fields: dict[str, GraphQLInputField] = {
                fn: GraphQLInputField(self._filter_of(measure_scalar(fn, scalar))) for fn in functions(scalar)
            }
            return GraphQLInputObjectType(name, fields, description="Conditions on measures of a field.")

        return self._once(name, make)

    def _measures_order(self, scalar: Scalar, *, with_key: bool) -> GraphQLInputObjectType:
        fns = functions(scalar)
        with_key = with_key and is_measured_key(scalar) and bool(buckets(scalar))
        name = {5: "Number", 3: "Range"}.get(len(fns), "Distinct") + ("KeyOrder" if with_key else "MeasuresOrder")

        def fields() -> dict[str, GraphQLInputField]:
            return {fn: GraphQLInputField(self._direction) for fn in (*([VALUE] if with_key else []), *fns)}

        return self._one_of(name, fields, "A measure to sort by: exactly one.")

    def _one_of(self, name: str, fields: Callable[[], Any], text: str) -> GraphQLInputObjectType:
        return self._once(name, lambda: GraphQLInputObjectType(name, fields, description=text, is_one_of=True))
