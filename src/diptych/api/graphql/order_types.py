"""GraphQL types of sort keys: `UserOrder`, with a line for each field, relation and value object to sort by.

users(orderBy: [{name: ASC}, {address: {city: DESC}}, {posts: {count: DESC}}])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphql import GraphQLEnumType, GraphQLInputField, GraphQLInputObjectType

from diptych.api.descriptions import reason
from diptych.model.resource_view import ResourceView
from diptych.model.scalars import Scalar


class OrderTypes:
    """The types of the sort keys of one view; `of_many` is the type of a number of rows of a resource."""

    def __init__(
        self,
        resources: Mapping[str, ResourceView],
        direction: GraphQLEnumType,
        of_many: Callable[[str], GraphQLInputObjectType],
    ) -> None:
        self._direction = direction
        self._of_many = of_many
        self._values: dict[str, GraphQLInputObjectType] = {}
        self.types = {name: self._order(resource) for name, resource in resources.items()}

    def _order(self, resource: ResourceView) -> GraphQLInputObjectType:
        name = resource.resource.name

        def fields() -> dict[str, GraphQLInputField]:
            own = {}
            for key, view in resource.searchable.items():
                order = self._direction if view.field.scalar.sortable else self._value(view.field.scalar)
                if order is not None:
                    own[key] = GraphQLInputField(order, deprecation_reason=reason(view.field.deprecated))
            for key, way in resource.ways.items():
                target = way.relation.target
                kind = self.types[target] if way.relation.kind == "one" else self._of_many(target)
                own[key] = GraphQLInputField(kind, deprecation_reason=reason(way.relation.deprecated))
            return own

        return GraphQLInputObjectType(
            name + "Order", fields, description=f"One key of a sort of {name}: exactly one field.", is_one_of=True
        )

    def _value(self, scalar: Scalar) -> GraphQLInputObjectType | None:
        """A member of a value object to sort by, if it has any."""
        members = [name for name, member in (scalar.members or {}).items() if member.scalar.sortable]
        if members and scalar.name not in self._values:
            fields = {name: GraphQLInputField(self._direction) for name in members}
            text = f"A member of {scalar.name} to sort by: exactly one."
            made = GraphQLInputObjectType(scalar.name + "Order", fields, description=text, is_one_of=True)
            self._values[scalar.name] = made
        return self._values.get(scalar.name) if members else None
