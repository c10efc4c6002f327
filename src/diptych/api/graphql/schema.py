"""View → GraphQL schema: exactly what one role can ask for, and nothing that only others can.

graphql-core holds the schema, validates documents against it, and answers introspection from it. It executes
nothing else: no field here has a resolver, since every answer comes out of one SQL statement.
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

from diptych.api.draft import DEFAULT_SIZE
from diptych.api.graphql.mutations import call_fields, mutation_fields
from diptych.api.words import describe
from diptych.ask.slots import CHANGE_KIND
from diptych.model.defs import ActionDef, FieldDef, QueryDef, RelationDef
from diptych.model.scalars import BIGINT, DATE, DATETIME, JSON, Scalar, decimal
from diptych.model.view import ResourceView, View

Input = GraphQLScalarType | GraphQLEnumType
_BUILT_IN: Mapping[str, GraphQLScalarType] = {
    "Int": GraphQLInt, "Float": GraphQLFloat, "String": GraphQLString, "Boolean": GraphQLBoolean, "ID": GraphQLID,
}  # fmt: skip
_PAGE_INFO = {
    "hasNextPage": "Is there a row after this page?",
    "hasPreviousPage": "Is there a row before this page?",
    "startCursor": "The cursor of the first row.",
    "endCursor": "The cursor of the last row.",
}
EMPTY_ROOT = "nothing"
"""The one field of a Query in which a role can read nothing at all; GraphQL wants at least one."""


class _Unknown(dict[str, Any]):
    """Variables inside of a literal, whose values come later: null will do for each."""

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
    "Direction", {"ASC": GraphQLEnumValue("ASC"), "DESC": GraphQLEnumValue("DESC")}, description="The way of a sort."
)
_INFO = GraphQLObjectType(
    "PageInfo",
    {
        name: GraphQLField(GraphQLString if "Cursor" in name else GraphQLNonNull(GraphQLBoolean), description=text)
        for name, text in _PAGE_INFO.items()
    },
    description="What leads on from a page.",
)


def build_schema(view: View) -> GraphQLSchema:
    """The schema of one view."""
    return _Builder(view).schema()


class _Builder:
    def __init__(self, view: View) -> None:
        self.view = view
        self._inputs: dict[str, Input] = {**_BUILT_IN, **_CUSTOM}
        self._filters: dict[tuple[str, tuple[str, ...]], GraphQLInputObjectType] = {}
        self._objects = {name: self._object(each) for name, each in view.resources.items()}
        self._wheres = {name: self._where(each) for name, each in view.resources.items()}
        self._list_wheres = {name: self._list_where(name) for name in view.resources}
        self._orders = {name: self._order(each) for name, each in view.resources.items()}
        self._connections = {name: self._connection(name) for name in view.resources}

    def schema(self) -> GraphQLSchema:
        fields: dict[str, GraphQLField] = {}
        for each in self.view.resources.values():
            fields.update(self._roots(each))
        fields.update(call_fields(QueryDef, self.view, self._objects, self._input))
        if not fields:
            fields[EMPTY_ROOT] = GraphQLField(GraphQLBoolean, description="You may read nothing here.")
        query = GraphQLObjectType("Query", fields, description="Everything that can be read.")
        changes = mutation_fields(self.view, self._objects, self._input)
        changes.update(call_fields(ActionDef, self.view, self._objects, self._input))
        told = "Everything that can be changed. All fields of a request run in order, in one transaction."
        mutation = GraphQLObjectType("Mutation", changes, description=told) if changes else None
        watched = {each.resource.changed: self._changed(each) for each in self.view.resources.values()}
        told = "Every change, as it is committed."
        subscription = GraphQLObjectType("Subscription", watched, description=told) if watched else None
        return GraphQLSchema(query, mutation, subscription, directives=specified_directives)

    def _roots(self, each: ResourceView) -> dict[str, GraphQLField]:
        found = each.resource
        one = GraphQLField(
            self._objects[found.name],
            {"id": GraphQLArgument(GraphQLNonNull(GraphQLID))},
            description=f"One {found.name} by its id; null if there is none.",
        )
        return {found.one: one, **self._lists(found.many, found.name, f"{found.name} by page.")}

    def _lists(self, name: str, target: str, description: str) -> dict[str, GraphQLField]:
        """A list of a resource, and the same as a connection."""
        return {
            name: GraphQLField(
                GraphQLNonNull(GraphQLList(GraphQLNonNull(self._objects[target]))),
                self._arguments(target, connection=False),
                description=description,
            ),
            name + "Connection": GraphQLField(
                GraphQLNonNull(self._connections[target]),
                self._arguments(target, connection=True),
                description=description,
            ),
        }

    def _arguments(self, target: str, *, connection: bool) -> dict[str, GraphQLArgument]:
        found: dict[str, GraphQLArgument] = {}
        if connection:
            found["first"] = GraphQLArgument(GraphQLInt, description=f"The first so many, 1 to 100 ({DEFAULT_SIZE}).")
            found["last"] = GraphQLArgument(GraphQLInt, description="The last so many, 1 to 100.")
        else:
            found["first"] = GraphQLArgument(GraphQLInt, default_value=DEFAULT_SIZE, description="How many, 1 to 100.")
        found["after"] = GraphQLArgument(GraphQLString, description="Begin after this cursor.")
        if connection:
            found["before"] = GraphQLArgument(GraphQLString, description="End before this cursor.")
        found["offset"] = GraphQLArgument(GraphQLInt, description="Leave out so many first.")
        found["where"] = GraphQLArgument(self._wheres[target], description="Only those for which this holds.")
        order = GraphQLList(GraphQLNonNull(self._orders[target]))
        found["orderBy"] = GraphQLArgument(order, description="The sort; nulls stand last, ids break ties.")
        return found

    # what changes

    def _changed(self, each: ResourceView) -> GraphQLField:
        found = each.resource
        kinds = GraphQLList(GraphQLNonNull(self._input(CHANGE_KIND)))
        arguments = {
            "id": GraphQLArgument(GraphQLID, description="Only of the one with this id."),
            "where": GraphQLArgument(self._wheres[found.name], description="Only those for which this holds."),
            "kinds": GraphQLArgument(kinds, description="Only changes of these kinds."),
            "after": GraphQLArgument(GraphQLString, description="Begin after this cursor; without it, now."),
        }
        told = f"The changes of {found.name}, as they are committed."
        return GraphQLField(GraphQLNonNull(self._change(each)), arguments, description=told)

    def _change(self, each: ResourceView) -> GraphQLObjectType:
        found = each.resource
        row = f"The {found.name} after the change, if you may read it now."
        fields = {
            "cursor": GraphQLField(GraphQLNonNull(GraphQLString), description="Resumes after this change."),
            "kind": GraphQLField(GraphQLNonNull(self._input(CHANGE_KIND))),
            "id": GraphQLField(GraphQLNonNull(GraphQLID), description=f"The id of the {found.name}."),
            "at": GraphQLField(GraphQLNonNull(self._input(DATETIME)), description="When it was changed."),
            found.one: GraphQLField(self._objects[found.name], description=row),
        }
        return GraphQLObjectType(found.name + "Change", fields, description=f"A change of one {found.name}.")

    # what can be read

    def _object(self, each: ResourceView) -> GraphQLObjectType:
        return GraphQLObjectType(
            each.resource.name, lambda: self._fields(each), description=each.resource.description or None
        )

    def _fields(self, each: ResourceView) -> dict[str, GraphQLField]:
        found: dict[str, GraphQLField] = {}
        for name, field in each.fields.items():
            found[name] = GraphQLField(self._output(field.field), description=describe(field.field) or None)
        for name, way in each.relations.items():
            found.update(self._relation(name, way.relation))
        return found

    def _output(self, field: FieldDef) -> Any:
        kind = self._input(field.scalar)
        return kind if field.nullable or field.hideable else GraphQLNonNull(kind)

    def _relation(self, name: str, relation: RelationDef) -> dict[str, GraphQLField]:
        if relation.kind != "one":
            return self._lists(name, relation.target, relation.description or f"Its {name}.")
        target = self._objects[relation.target]
        optional = relation.nullable or relation.hideable
        kind = target if optional else GraphQLNonNull(target)
        return {name: GraphQLField(kind, description=relation.description or f"Its {name}.")}

    def _connection(self, name: str) -> GraphQLObjectType:
        target = self._objects[name]
        edge = GraphQLObjectType(
            name + "Edge",
            {
                "cursor": GraphQLField(GraphQLNonNull(GraphQLString), description="Where it stands in the list."),
                "node": GraphQLField(GraphQLNonNull(target)),
            },
            description=f"A {name} with its cursor.",
        )
        fields = {
            "nodes": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(target)))),
            "edges": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(edge)))),
            "pageInfo": GraphQLField(GraphQLNonNull(_INFO)),
            "totalCount": GraphQLField(GraphQLNonNull(GraphQLInt), description="How many on all pages."),
        }
        return GraphQLObjectType(name + "Connection", fields, description=f"A page of {name}.")

    # what can be given

    def _input(self, scalar: Scalar) -> Input:
        name = scalar.graphql or scalar.name
        if name not in self._inputs:
            values = {choice: GraphQLEnumValue(choice) for choice in scalar.choices}
            self._inputs[name] = GraphQLEnumType(name, values, description=scalar.description or None)
        return self._inputs[name]

    def _where(self, each: ResourceView) -> GraphQLInputObjectType:
        name = each.resource.name

        def fields() -> dict[str, GraphQLInputField]:
            own = GraphQLList(GraphQLNonNull(self._wheres[name]))
            found = {key: GraphQLInputField(self._filter(view.field.scalar)) for key, view in each.searchable.items()}
            for key, way in each.relations.items():
                target = way.relation.target
                kind = self._wheres[target] if way.relation.kind == "one" else self._list_wheres[target]
                found[key] = GraphQLInputField(kind)
            return {
                **found,
                "and": GraphQLInputField(own, description="All of these hold."),
                "or": GraphQLInputField(own, description="Any of these holds."),
                "not": GraphQLInputField(self._wheres[name], description="This does not hold."),
            }

        return GraphQLInputObjectType(name + "Where", fields, description=f"A condition on {name}.")

    def _list_where(self, name: str) -> GraphQLInputObjectType:
        words = {"some": "At least one", "none": "Not one", "every": "Every one"}

        def fields() -> dict[str, GraphQLInputField]:
            return {
                word: GraphQLInputField(self._wheres[name], description=f"{text} of them is such.")
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

    def _order(self, each: ResourceView) -> GraphQLInputObjectType:
        name = each.resource.name
        fields = {
            key: GraphQLInputField(_DIRECTION) for key, view in each.searchable.items() if view.field.scalar.sortable
        }
        return GraphQLInputObjectType(
            name + "Order", fields, description=f"One key of a sort of {name}: exactly one field.", is_one_of=True
        )

