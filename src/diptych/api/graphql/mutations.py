"""View → the mutations of a GraphQL schema: what one role can change, and the values that it can give.

    createPost(input: PostCreate!): Post!                       all that a new row takes
    updatePost(id: ID!, patch: PostPatch!, ifVersion: Int): Post!
    replacePost(id: ID!, input: PostReplace!, ifVersion: Int): Post!     takes back what a query gave
    deletePost(id: ID!, ifVersion: Int): Post!
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLField,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    Undefined,
)

from diptych.api.words import INPUTS, describe_input
from diptych.ask.nodes import Change
from diptych.model.defs import ArgumentDef, CallDef, ResourceDef, ResultDef
from diptych.model.scalars import Scalar, as_json, to_json
from diptych.model.view import InputView, ResourceView, Taking, View

InputType = Callable[[Scalar], Any]
VERBS: tuple[Change, ...] = ("create", "update", "replace", "delete")


def mutation_names(found: ResourceDef) -> dict[str, Change]:
    """The mutations of a resource by name."""
    return {verb + found.name: verb for verb in VERBS}


def mutation_fields(
    view: View, objects: Mapping[str, GraphQLObjectType], input_type: InputType
) -> dict[str, GraphQLField]:
    """Every mutation of a view."""
    fields: dict[str, GraphQLField] = {}
    for name, each in view.resources.items():
        for verb in VERBS:
            if each.may(verb):
                answer = GraphQLNonNull(objects[name])
                told = f"{verb.capitalize()} one {name}." + (" Answers it as it was." if verb == "delete" else "")
                fields[verb + name] = GraphQLField(answer, _arguments(verb, each, input_type), description=told)
    return fields


def call_fields(
    kind: type[CallDef], view: View, objects: Mapping[str, GraphQLObjectType], input_type: InputType
) -> dict[str, GraphQLField]:
    """The actions, or the queries, of the model's own code."""
    fields: dict[str, GraphQLField] = {}
    for root, (_, call) in view.calls.items():
        if isinstance(call, kind):
            arguments = {each.name: _argument(each, input_type) for each in call.arguments}
            if call.on == "row":
                arguments = {"id": GraphQLArgument(GraphQLNonNull(GraphQLID)), **arguments}
            result = _result(call.result, objects, input_type)
            fields[root] = GraphQLField(result, arguments, description=call.description or None)
    return fields


def _argument(each: ArgumentDef, input_type: InputType) -> GraphQLArgument:
    kind = input_type(each.scalar)
    if each.nullable:
        return GraphQLArgument(kind)
    if each.required:
        return GraphQLArgument(GraphQLNonNull(kind))
    return GraphQLArgument(GraphQLNonNull(kind), default_value=as_json(each.default))


def _result(result: ResultDef, objects: Mapping[str, GraphQLObjectType], input_type: InputType) -> Any:
    if result.kind == "none":
        return GraphQLNonNull(GraphQLBoolean)
    kind: Any = objects[result.resource] if result.resource else input_type(result.scalar) if result.scalar else None
    if result.kind == "list":
        kind = GraphQLList(GraphQLNonNull(kind))
    return kind if result.nullable else GraphQLNonNull(kind)


def _arguments(verb: Change, each: ResourceView, input_type: InputType) -> dict[str, GraphQLArgument]:
    found: dict[str, GraphQLArgument] = {}
    if verb != "create":
        found["id"] = GraphQLArgument(GraphQLNonNull(GraphQLID))
    if verb != "delete":
        kind = _input(verb, each, input_type)
        if kind.fields:
            found["patch" if verb == "update" else "input"] = GraphQLArgument(GraphQLNonNull(kind))
    if verb != "create":
        found["ifVersion"] = GraphQLArgument(GraphQLInt, description="Only if it still has this version.")
    return found


def _input(verb: Taking, each: ResourceView, input_type: InputType) -> GraphQLInputObjectType:
    name = each.resource.name
    suffix, told = INPUTS[verb]
    fields = {key: _input_field(verb, taken, input_type) for key, taken in each.takes(verb).items()}
    return GraphQLInputObjectType(name + suffix, fields, description=told.format(name))


def _input_field(verb: Taking, taken: InputView, input_type: InputType) -> GraphQLInputField:
    """A patch, or what the server fills, may be left out and not be null, which GraphQL has no word for."""
    field = taken.field
    kind = input_type(field.scalar)
    if taken.required or (verb == "create" and not taken.nullable and not field.generated):
        kind = GraphQLNonNull(kind)
    has_default = verb == "create" and field.default is not None
    default = to_json(field.scalar, field.default) if has_default else Undefined
    return GraphQLInputField(kind, default_value=default, description=describe_input(taken, verb) or None)
