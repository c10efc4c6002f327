"""Builds the GraphQL schema of one role: what it can select, and nothing that only others can.

graphql-core holds the schema, validates documents against it and answers introspection. It executes nothing else: no
field has a resolver, since every response comes from one SQL statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLEnumValue,
    GraphQLField,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
    Undefined,
    specified_directives,
)

from diptych.api.ask_builder import DEFAULT_SIZE, NESTED_SIZE
from diptych.api.descriptions import describe_field, reason
from diptych.api.graphql.aggregate_types import AggregateTypes, search_argument
from diptych.api.graphql.mutations import DELETED, call_fields, mutation_fields
from diptych.api.graphql.names import NODE
from diptych.api.graphql.node_lookup import node_types
from diptych.api.graphql.order_types import OrderTypes
from diptych.api.graphql.scalar_types import SCALAR_TYPES
from diptych.ask.slots import CHANGE_KIND
from diptych.model.call_defs import ActionDef, QueryDef
from diptych.model.defs import FieldDef, RelationDef
from diptych.model.deprecation import Deprecation
from diptych.model.operators import OPERATORS
from diptych.model.resource_view import ResourceView
from diptych.model.scalar_values import to_json
from diptych.model.scalars import DATETIME, Member, Scalar
from diptych.model.view import View
from diptych.model.viewer_object import ROOT, TEXTS, VIEWER

Input = GraphQLScalarType | GraphQLEnumType
_PAGE_INFO = {
    "hasNextPage": "Is there a row after this page?",
    "hasPreviousPage": "Is there a row before this page?",
    "startCursor": "The cursor of the first row.",
    "endCursor": "The cursor of the last row.",
}
EMPTY_ROOT = "nothing"
"""The only field of Query for a role that can read nothing; GraphQL requires at least one."""


_DIRECTION = GraphQLEnumType(
    "Direction", {"ASC": GraphQLEnumValue("ASC"), "DESC": GraphQLEnumValue("DESC")}, description="A sort direction."
)
_INFO = GraphQLObjectType(
    "PageInfo",
    {
        name: GraphQLField(GraphQLString if "Cursor" in name else GraphQLNonNull(GraphQLBoolean), description=text)
        for name, text in _PAGE_INFO.items()
    },
    description="The cursors of a page, and whether there are more rows.",
)
_NODE = GraphQLInterfaceType(
    NODE,
    {"id": GraphQLField(GraphQLNonNull(GraphQLID), description="A UUID: no two rows of any types have the same.")},
    description="A row of any type whose ids are UUIDs.",
)


def deprecate(fields: dict[str, GraphQLField], deprecated: Deprecation | None) -> dict[str, GraphQLField]:
    """Mark GraphQL fields as deprecated, if there is a deprecation; return them."""
    for field in fields.values() if deprecated is not None else ():
        field.deprecation_reason = reason(deprecated)
    return fields


def build_schema(view: View) -> GraphQLSchema:
    return _Builder(view).schema()


class _Builder:
    def __init__(self, view: View) -> None:
        self.view = view
        self._inputs: dict[str, Input] = dict(SCALAR_TYPES)
        self._value_objects: dict[str, GraphQLObjectType] = {}
        self._value_inputs: dict[str, GraphQLInputObjectType] = {}
        self._filters: dict[tuple[str, tuple[str, ...]], GraphQLInputObjectType] = {}
        self._nodes = {node_type.resource.name for node_type in node_types(view)}
        shown = view.shown
        self._objects = {name: self._object(resource) for name, resource in shown.items()}
        self._wheres = {name: self._where(resource) for name, resource in shown.items()}
        self._list_wheres = {name: self._list_where(name) for name in view.resources}
        self._aggregates = AggregateTypes(view, self._wheres, self._filter, self._input, _INFO, _DIRECTION)
        self._orders = OrderTypes(shown, _DIRECTION, self._aggregates.order).types
        self._connections = {name: self._connection(name) for name in shown}

    def schema(self) -> GraphQLSchema:
        fields: dict[str, GraphQLField] = {}
        for resource in self.view.resources.values():
            fields.update(self._roots(resource))
        if self._nodes:
            fields.update(self._node_roots())
        fields.update(call_fields(QueryDef, self.view, self._objects, self._input))
        empty = not fields
        fields[ROOT] = GraphQLField(self._viewer(), description="Who sends the request; null without a token.")
        if empty:
            fields[EMPTY_ROOT] = GraphQLField(GraphQLBoolean, description="You may read nothing here.")
        query = GraphQLObjectType("Query", fields, description="Everything that can be read.")
        changes = mutation_fields(self.view, self._objects, self._wheres, self._input)
        changes.update(call_fields(ActionDef, self.view, self._objects, self._input))
        text = "Everything that can be changed. All fields of a request run in order, in one transaction."
        mutation = GraphQLObjectType("Mutation", changes, description=text) if changes else None
        watched = {
            resource.resource.changed: self._changed(resource)
            for resource in self.view.resources.values()
            if resource.resource.followed
        }
        text = "Every change, as it is committed."
        subscription = GraphQLObjectType("Subscription", watched, description=text) if watched else None
        return GraphQLSchema(query, mutation, subscription, directives=specified_directives)

    def _roots(self, resource: ResourceView) -> dict[str, GraphQLField]:
        definition = resource.resource
        one = GraphQLField(
            self._objects[definition.name],
            {"id": GraphQLArgument(GraphQLNonNull(GraphQLID))},
            description=f"One {definition.name} by its id; null if there is none.",
        )
        roots = {definition.one: one, **self._lists(definition.many, definition.name, f"{definition.name} by page.")}
        if resource.may("restore"):
            for field in roots.values():
                field.args["deleted"] = GraphQLArgument(DELETED, description="With ONLY, of the deleted rows.")
        return deprecate({**roots, **self._aggregates.roots(resource)}, definition.deprecated)

    @staticmethod
    def _node_roots() -> dict[str, GraphQLField]:
        one = GraphQLArgument(GraphQLNonNull(GraphQLID))
        many = GraphQLArgument(GraphQLNonNull(GraphQLList(GraphQLNonNull(GraphQLID))), description="At most 100.")
        return {
            "node": GraphQLField(_NODE, {"id": one}, description="A row of any type by its id; null if there is none."),
            "nodes": GraphQLField(
                GraphQLNonNull(GraphQLList(_NODE)),
                {"ids": many},
                description="Rows of any types, one for each id; null where there is none.",
            ),
        }

    def _lists(self, name: str, target: str, description: str, size: int = DEFAULT_SIZE) -> dict[str, GraphQLField]:
        """A list of a resource, and the same as a connection; `size` is the default page."""
        return {
            name: GraphQLField(
                GraphQLNonNull(GraphQLList(GraphQLNonNull(self._objects[target]))),
                self._arguments(target, size, connection=False),
                description=description,
            ),
            name + "Connection": GraphQLField(
                GraphQLNonNull(self._connections[target]),
                self._arguments(target, size, connection=True),
                description=description,
            ),
        }

    def _arguments(self, target: str, size: int, *, connection: bool) -> dict[str, GraphQLArgument]:
        arguments: dict[str, GraphQLArgument] = {}
        if connection:
            arguments["first"] = GraphQLArgument(
                GraphQLInt, description=f"The number of rows from the start, 1 to 100 ({size})."
            )
            arguments["last"] = GraphQLArgument(GraphQLInt, description="The number of rows from the end, 1 to 100.")
        else:
            arguments["first"] = GraphQLArgument(
                GraphQLInt, default_value=size, description="The number of rows, 1 to 100."
            )
        arguments["after"] = GraphQLArgument(GraphQLString, description="Start after this cursor.")
        if connection:
            arguments["before"] = GraphQLArgument(GraphQLString, description="End before this cursor.")
        arguments["offset"] = GraphQLArgument(GraphQLInt, description="The number of rows to skip.")
        arguments["where"] = GraphQLArgument(self._wheres[target], description="A filter.")
        arguments |= search_argument(self.view.resources[target])
        order = GraphQLList(GraphQLNonNull(self._orders[target]))
        arguments["orderBy"] = GraphQLArgument(order, description="The sort keys; nulls are last, ids break ties.")
        return arguments

    # subscriptions

    def _changed(self, resource: ResourceView) -> GraphQLField:
        definition = resource.resource
        kinds = GraphQLList(GraphQLNonNull(self._input(CHANGE_KIND)))
        arguments = {
            "id": GraphQLArgument(GraphQLID, description="Only changes of the row with this id."),
            "where": GraphQLArgument(self._wheres[definition.name], description="A filter."),
            "kinds": GraphQLArgument(kinds, description="Only changes of these kinds."),
            "after": GraphQLArgument(GraphQLString, description="Start after this cursor; without it, now."),
        }
        text = f"The changes of {definition.name}, as they are committed."
        why = reason(definition.deprecated)
        return GraphQLField(GraphQLNonNull(self._change(resource)), arguments, description=text, deprecation_reason=why)

    def _change(self, resource: ResourceView) -> GraphQLObjectType:
        definition = resource.resource
        row = f"The {definition.name} after the change, if you may read it now."
        event = "The id of this change, the same wherever it is reported."
        fields = {
            "eventId": GraphQLField(GraphQLNonNull(GraphQLID), description=event),
            "cursor": GraphQLField(GraphQLNonNull(GraphQLString), description="Resumes after this change."),
            "kind": GraphQLField(GraphQLNonNull(self._input(CHANGE_KIND))),
            "rowId": GraphQLField(GraphQLNonNull(GraphQLID), description=f"The id of the {definition.name}."),
            "at": GraphQLField(GraphQLNonNull(self._input(DATETIME)), description="When it was changed."),
            definition.one: GraphQLField(self._objects[definition.name], description=row),
        }
        return GraphQLObjectType(definition.name + "Change", fields, description=f"A change of one {definition.name}.")

    # output types

    def _object(self, resource: ResourceView) -> GraphQLObjectType:
        name = resource.resource.name
        text = resource.resource.description or None
        interfaces = (_NODE,) if name in self._nodes else ()
        return GraphQLObjectType(name, lambda: self._fields(resource), interfaces, description=text)

    def _fields(self, resource: ResourceView) -> dict[str, GraphQLField]:
        fields: dict[str, GraphQLField] = {}
        for name, field in resource.fields.items():
            fields[name] = GraphQLField(
                self._output(field.field),
                description=describe_field(field.field) or None,
                deprecation_reason=reason(field.field.deprecated),
            )
        for name, way in resource.relations.items():
            fields.update(deprecate(self._relation(name, way.relation), way.relation.deprecated))
        return fields

    def _viewer(self) -> GraphQLObjectType:
        viewer = self.view.resources[VIEWER]
        return GraphQLObjectType(VIEWER, self._fields(viewer), description=viewer.resource.description)

    def _output(self, field: FieldDef) -> Any:
        members = field.scalar.members
        kind: Any = self._input(field.scalar) if members is None else self._value_object(field.scalar, members)
        if field.computed in TEXTS:
            kind = GraphQLList(GraphQLNonNull(GraphQLString))
        return kind if field.nullable or field.hideable else GraphQLNonNull(kind)

    def _value_object(self, scalar: Scalar, members: Mapping[str, Member]) -> GraphQLObjectType:
        if scalar.name not in self._value_objects:
            fields = {}
            for name, member in members.items():
                kind = self._input(member.scalar)
                fields[name] = GraphQLField(kind if member.nullable else GraphQLNonNull(kind))
            made = GraphQLObjectType(scalar.name, fields, description=scalar.description or None)
            self._value_objects[scalar.name] = made
        return self._value_objects[scalar.name]

    def _value_input(self, scalar: Scalar, members: Mapping[str, Member]) -> GraphQLInputObjectType:
        """The input of a value object: whole, or, in an update, the members that change."""
        is_patch = bool(scalar.graphql)
        name = scalar.graphql or scalar.name + "Input"
        if name not in self._value_inputs:
            fields = {}
            for key, member in members.items():
                kind = self._input(member.scalar)
                has_default = member.default is not None and not is_patch
                default = to_json(member.scalar, member.default) if has_default else Undefined
                wanted = not is_patch and not member.nullable
                fields[key] = GraphQLInputField(GraphQLNonNull(kind) if wanted else kind, default_value=default)
            text = f"The members of {scalar.name} to change; others keep their values." if is_patch else None
            self._value_inputs[name] = GraphQLInputObjectType(name, fields, description=text)
        return self._value_inputs[name]

    def _relation(self, name: str, relation: RelationDef) -> dict[str, GraphQLField]:
        if relation.kind != "one":
            lists = self._lists(name, relation.target, relation.description or f"Its {name}.", NESTED_SIZE)
            return lists if relation.past else {**lists, name + "Summary": self._aggregates.summary(relation.target)}
        target = self._objects[relation.target]
        optional = relation.nullable or relation.hideable
        kind = target if optional else GraphQLNonNull(target)
        return {name: GraphQLField(kind, description=relation.description or f"Its {name}.")}

    def _connection(self, name: str) -> GraphQLObjectType:
        target = self._objects[name]
        edge = GraphQLObjectType(
            name + "Edge",
            {
                "cursor": GraphQLField(GraphQLNonNull(GraphQLString), description="The cursor of this row."),
                "node": GraphQLField(GraphQLNonNull(target)),
            },
            description=f"A {name} with its cursor.",
        )
        fields = {
            "nodes": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(target)))),
            "edges": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(edge)))),
            "pageInfo": GraphQLField(GraphQLNonNull(_INFO)),
            "totalCount": GraphQLField(GraphQLNonNull(GraphQLInt), description="The number of rows on all pages."),
        }
        return GraphQLObjectType(name + "Connection", fields, description=f"A page of {name}.")

    # input types

    def _input(self, scalar: Scalar) -> Any:
        if scalar.members is not None:
            return self._value_input(scalar, scalar.members)
        if scalar.items is not None:
            return GraphQLList(GraphQLNonNull(self._input(scalar.items)))
        name = scalar.graphql or scalar.name
        if name not in self._inputs:
            values = {
                choice: GraphQLEnumValue(choice, deprecation_reason=reason(scalar.deprecated.get(choice)))
                for choice in scalar.choices
            }
            self._inputs[name] = GraphQLEnumType(name, values, description=scalar.description or None)
        return self._inputs[name]

    def _where(self, resource: ResourceView) -> GraphQLInputObjectType:
        name = resource.resource.name

        def fields() -> dict[str, GraphQLInputField]:
            own = GraphQLList(GraphQLNonNull(self._wheres[name]))
            filters = {
                key: GraphQLInputField(
                    self._filter(view.field.scalar), deprecation_reason=reason(view.field.deprecated)
                )
                for key, view in resource.searchable.items()
            }
            for key, way in resource.ways.items():
                target = way.relation.target
                kind = self._wheres[target] if way.relation.kind == "one" else self._list_wheres[target]
                filters[key] = GraphQLInputField(kind, deprecation_reason=reason(way.relation.deprecated))
            return {
                **filters,
                "and": GraphQLInputField(own, description="All of these match."),
                "or": GraphQLInputField(own, description="Any of these matches."),
                "not": GraphQLInputField(self._wheres[name], description="This does not match."),
            }

        return GraphQLInputObjectType(name + "Where", fields, description=f"A condition on {name}.")

    def _list_where(self, name: str) -> GraphQLInputObjectType:
        words = {"some": "At least one", "none": "None", "every": "Every one"}

        def fields() -> dict[str, GraphQLInputField]:
            quantified = {
                word: GraphQLInputField(self._wheres[name], description=f"{text} of them matches.")
                for word, text in words.items()
            }
            return {**quantified, **self._aggregates.filters(self.view.resources[name])}

        return GraphQLInputObjectType(name + "ListWhere", fields, description=f"A condition on many {name}.")

    def _filter(self, scalar: Scalar) -> GraphQLInputObjectType:
        if scalar.members is not None:
            return self._value_filter(scalar, scalar.members)
        item = scalar.items or scalar
        name = (item.graphql or item.name) + "List" * (scalar is not item)
        if (name, scalar.ops) not in self._filters:
            kind = self._input(item)
            taken = {"value": kind, "list": GraphQLList(GraphQLNonNull(kind)), "truth": GraphQLBoolean}
            fields = {op: GraphQLInputField(taken[OPERATORS[op].takes]) for op in scalar.ops}
            made = GraphQLInputObjectType(name + "Filter", fields, description=f"Comparisons of {name}.")
            self._filters[name, scalar.ops] = made
        return self._filters[name, scalar.ops]

    def _value_filter(self, scalar: Scalar, members: Mapping[str, Member]) -> GraphQLInputObjectType:
        if (scalar.name, scalar.ops) not in self._filters:
            fields = {name: GraphQLInputField(self._filter(member.scalar)) for name, member in members.items()}
            fields["isNull"] = GraphQLInputField(GraphQLBoolean)
            text = f"A condition on the members of {scalar.name}; all of them must hold."
            made = GraphQLInputObjectType(scalar.name + "Filter", fields, description=text)
            self._filters[scalar.name, scalar.ops] = made
        return self._filters[scalar.name, scalar.ops]
