"""Mutations and calls of the GraphQL schema of one role, with their input types.

createPost(input: PostCreate!): Post!                       all fields of a new row
updatePost(id: ID!, patch: PostPatch!, ifVersion: Int): Post!
replacePost(id: ID!, input: PostReplace!, ifVersion: Int): Post!     accepts what a query returned
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

from diptych.api.descriptions import INPUTS, describe_input, describe_inputs
from diptych.ask.nodes import WriteVerb
from diptych.model.defs import ArgumentDef, CallDef, ResourceDef, ResultDef
from diptych.model.scalars import Scalar, as_json, to_json
from diptych.model.view import InputView, ResourceView, Taking, View

InputType = Callable[[Scalar], Any]
MUTATION_VERBS: tuple[WriteVerb, ...] = ("create", "update", "replace", "delete")


def mutation_names(resource: ResourceDef) -> dict[str, WriteVerb]:
    """The mutations of a resource by name."""
    return {verb + resource.name: verb for verb in MUTATION_VERBS}


def mutation_fields(
    view: View, objects: Mapping[str, GraphQLObjectType], input_type: InputType
) -> dict[str, GraphQLField]:
    fields: dict[str, GraphQLField] = {}
    for name, resource in view.resources.items():
        for verb in MUTATION_VERBS:
            if resource.may(verb):
                answer = GraphQLNonNull(objects[name])
                text = f"{verb.capitalize()} one {name}." + (" Returns it as it was." if verb == "delete" else "")
                fields[verb + name] = GraphQLField(answer, _arguments(verb, resource, input_type), description=text)
    return fields


def call_fields(
    kind: type[CallDef], view: View, objects: Mapping[str, GraphQLObjectType], input_type: InputType
) -> dict[str, GraphQLField]:
    """The actions, or the queries, of the model's own code."""
    fields: dict[str, GraphQLField] = {}
    for root, (_, call) in view.calls.items():
        if isinstance(call, kind):
            arguments = {argument.name: _argument(argument, input_type) for argument in call.arguments}
            if call.on == "row":
                arguments = {"id": GraphQLArgument(GraphQLNonNull(GraphQLID)), **arguments}
            result = _result(call.result, objects, input_type)
            fields[root] = GraphQLField(result, arguments, description=call.description or None)
    return fields


def _argument(argument: ArgumentDef, input_type: InputType) -> GraphQLArgument:
    kind = input_type(argument.scalar)
    if argument.nullable:
        return GraphQLArgument(kind)
    if argument.required:
        return GraphQLArgument(GraphQLNonNull(kind))
    return GraphQLArgument(GraphQLNonNull(kind), default_value=as_json(argument.default))


def _result(result: ResultDef, objects: Mapping[str, GraphQLObjectType], input_type: InputType) -> Any:
    if result.kind == "none":
        return GraphQLNonNull(GraphQLBoolean)
    kind: Any = objects[result.resource] if result.resource else input_type(result.scalar) if result.scalar else None
    if result.kind == "list":
        kind = GraphQLList(GraphQLNonNull(kind))
    return kind if result.nullable else GraphQLNonNull(kind)


def _arguments(verb: WriteVerb, resource: ResourceView, input_type: InputType) -> dict[str, GraphQLArgument]:
    arguments: dict[str, GraphQLArgument] = {}
    if verb != "create":
        arguments["id"] = GraphQLArgument(GraphQLNonNull(GraphQLID))
    if verb != "delete":
        kind = _input(verb, resource, input_type)
        if kind.fields:
            arguments["patch" if verb == "update" else "input"] = GraphQLArgument(GraphQLNonNull(kind))
    if verb != "create":
        arguments["ifVersion"] = GraphQLArgument(
            GraphQLInt, description="The write happens only if the row still has this version."
        )
    return arguments


def _input(verb: Taking, resource: ResourceView, input_type: InputType) -> GraphQLInputObjectType:
    name = resource.resource.name
    suffix = INPUTS[verb][0]
    fields = {key: _input_field(verb, taken, input_type) for key, taken in resource.takes(verb).items()}
    return GraphQLInputObjectType(name + suffix, fields, description=describe_inputs(verb, resource))


def _input_field(verb: Taking, taken: InputView, input_type: InputType) -> GraphQLInputField:
    """An input field. GraphQL cannot say "optional, but not null", as in a patch or for generated values."""
    field = taken.field
    kind = input_type(field.scalar)
    if taken.required or (verb == "create" and not taken.nullable and not field.generated):
        kind = GraphQLNonNull(kind)
    has_default = verb == "create" and field.default is not None
    default = to_json(field.scalar, field.default) if has_default else Undefined
    return GraphQLInputField(kind, default_value=default, description=describe_input(taken, verb) or None)
