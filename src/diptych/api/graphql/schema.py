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
    GraphQLFloat,
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
    ValueNode,
    specified_directives,
    value_from_ast_untyped,
)

from diptych.api.ask_builder import DEFAULT_SIZE, NESTED_SIZE
from diptych.api.descriptions import describe
from diptych.api.graphql.mutations import call_fields, mutation_fields
from diptych.api.graphql.names import NODE
from diptych.api.graphql.node_lookup import node_types
from diptych.ask.slots import CHANGE_KIND
from diptych.model.defs import ActionDef, FieldDef, QueryDef, RelationDef
from diptych.model.scalars import BIGINT, DATE, DATETIME, JSON, Scalar, decimal
from diptych.model.view import ResourceView, View
from diptych.model.viewer_object import ROOT, TEXTS, VIEWER

Input = GraphQLScalarType | GraphQLEnumType
_BUILT_IN: Mapping[str, GraphQLScalarType] = {
    "Int": GraphQLInt,
    "Float": GraphQLFloat,
    "String": GraphQLString,
    "Boolean": GraphQLBoolean,
    "ID": GraphQLID,
}
_PAGE_INFO = {
    "hasNextPage": "Is there a row after this page?",
    "hasPreviousPage": "Is there a row before this page?",
    "startCursor": "The cursor of the first row.",
    "endCursor": "The cursor of the last row.",
}
EMPTY_ROOT = "nothing"
"""The only field of Query for a role that can read nothing; GraphQL requires at least one."""


class _Unknown(dict[str, Any]):
    """Variables inside a literal, whose values are not known yet: each is taken as null."""

    def get(self, key: str, default: Any = None) -> Any:
        return None


_UNKNOWN = _Unknown(any=None)


def _custom(scalar: Scalar, name: str) -> GraphQLScalarType:
    def parse(value: Any) -> Any:
        scalar.parse(value)
        return value

    def literal(node: ValueNode) -> Any:
        return parse(value_from_ast_untyped(node, _UNKNOWN))

    return GraphQLScalarType(
        name, coerce_input_value=parse, coerce_input_literal=literal, description=scalar.description
    )


def _decimal(value: Any) -> Any:
    decimal(18, 0).parse(str(value).replace(".", "", 1)[:18] if isinstance(value, str) else value)
    return value


_CUSTOM: Mapping[str, GraphQLScalarType] = {
    **{scalar.name: _custom(scalar, scalar.name) for scalar in (BIGINT, DATE, DATETIME, JSON)},
    "Decimal": GraphQLScalarType("Decimal", parse_value=_decimal, description=decimal(18, 2).description),
}
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


def build_schema(view: View) -> GraphQLSchema:
    return _Builder(view).schema()


class _Builder:
    def __init__(self, view: View) -> None:
        self.view = view
        self._inputs: dict[str, Input] = {**_BUILT_IN, **_CUSTOM}
        self._filters: dict[tuple[str, tuple[str, ...]], GraphQLInputObjectType] = {}
        self._nodes = {each.resource.name for each in node_types(view)}
        self._objects = {name: self._object(resource) for name, resource in view.resources.items()}
        self._wheres = {name: self._where(resource) for name, resource in view.resources.items()}
        self._list_wheres = {name: self._list_where(name) for name in view.resources}
        self._orders = {name: self._order(resource) for name, resource in view.resources.items()}
        self._connections = {name: self._connection(name) for name in view.resources}

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
        changes = mutation_fields(self.view, self._objects, self._input)
        changes.update(call_fields(ActionDef, self.view, self._objects, self._input))
        text = "Everything that can be changed. All fields of a request run in order, in one transaction."
        mutation = GraphQLObjectType("Mutation", changes, description=text) if changes else None
        watched = {resource.resource.changed: self._changed(resource) for resource in self.view.resources.values()}
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
        return {definition.one: one, **self._lists(definition.many, definition.name, f"{definition.name} by page.")}

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
        return GraphQLField(GraphQLNonNull(self._change(resource)), arguments, description=text)

    def _change(self, resource: ResourceView) -> GraphQLObjectType:
        definition = resource.resource
        row = f"The {definition.name} after the change, if you may read it now."
        fields = {
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
            fields[name] = GraphQLField(self._output(field.field), description=describe(field.field) or None)
        for name, way in resource.relations.items():
            fields.update(self._relation(name, way.relation))
        return fields

    def _viewer(self) -> GraphQLObjectType:
        viewer = self.view.resources[VIEWER]
        return GraphQLObjectType(VIEWER, self._fields(viewer), description=viewer.resource.description)

    def _output(self, field: FieldDef) -> Any:
        kind: Any = self._input(field.scalar)
        if field.computed in TEXTS:
            kind = GraphQLList(GraphQLNonNull(GraphQLString))
        return kind if field.nullable or field.hideable else GraphQLNonNull(kind)

    def _relation(self, name: str, relation: RelationDef) -> dict[str, GraphQLField]:
        if relation.kind != "one":
            return self._lists(name, relation.target, relation.description or f"Its {name}.", NESTED_SIZE)
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

    def _input(self, scalar: Scalar) -> Input:
        name = scalar.graphql or scalar.name
        if name not in self._inputs:
            values = {choice: GraphQLEnumValue(choice) for choice in scalar.choices}
            self._inputs[name] = GraphQLEnumType(name, values, description=scalar.description or None)
        return self._inputs[name]

    def _where(self, resource: ResourceView) -> GraphQLInputObjectType:
        name = resource.resource.name

        def fields() -> dict[str, GraphQLInputField]:
            own = GraphQLList(GraphQLNonNull(self._wheres[name]))
            filters = {
                key: GraphQLInputField(self._filter(view.field.scalar)) for key, view in resource.searchable.items()
            }
            for key, way in resource.relations.items():
                target = way.relation.target
                kind = self._wheres[target] if way.relation.kind == "one" else self._list_wheres[target]
                filters[key] = GraphQLInputField(kind)
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
            return {
                word: GraphQLInputField(self._wheres[name], description=f"{text} of them matches.")
                for word, text in words.items()
            }

        return GraphQLInputObjectType(name + "ListWhere", fields, description=f"A condition on many {name}.")

    def _filter(self, scalar: Scalar) -> GraphQLInputObjectType:
        name = scalar.graphql or scalar.name
        if (name, scalar.ops) not in self._filters:
            kind = self._input(scalar)
            special: dict[str, Any] = {"in": GraphQLList(GraphQLNonNull(kind)), "isNull": GraphQLBoolean}
            fields = {op: GraphQLInputField(special.get(op, kind)) for op in scalar.ops}
            made = GraphQLInputObjectType(name + "Filter", fields, description=f"Comparisons of {name}.")
            self._filters[name, scalar.ops] = made
        return self._filters[name, scalar.ops]

    def _order(self, resource: ResourceView) -> GraphQLInputObjectType:
        name = resource.resource.name
        fields = {
            key: GraphQLInputField(_DIRECTION)
            for key, view in resource.searchable.items()
            if view.field.scalar.sortable
        }
        return GraphQLInputObjectType(
            name + "Order", fields, description=f"One key of a sort of {name}: exactly one field.", is_one_of=True
        )
