"""Mutations and calls of the GraphQL schema of one role, with their input types.

createPost(input: PostCreate!): Post!                       all fields of a new row; relations nest other writes
updatePost(id: ID!, patch: PostPatch!, ifVersion: Int): Post!
replacePost(id: ID!, input: PostReplace!, ifVersion: Int): Post!     accepts what a query returned
deletePost(id: ID!, ifVersion: Int, deleted: Deleted): Post!         `deleted` where there is a trash
restorePost(id: ID!, ifVersion: Int): Post!
upsertUser(by: UserUpsertKey!, input: UserCreate!, onConflict: OnConflict! = UPDATE): User!
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLEnumValue,
    GraphQLField,
    GraphQLID,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
)

from diptych.api.descriptions import INPUTS, describe_reason, reason
from diptych.api.graphql.inputs import InputType, InputTypes
from diptych.ask.nodes import WriteVerb
from diptych.model.call_defs import ActionDef, ArgumentDef, CallDef, ResultDef
from diptych.model.defs import ResourceDef
from diptych.model.naming import upper_first
from diptych.model.resource_view import ResourceView, Taking
from diptych.model.scalar_values import to_json
from diptych.model.view import View

MUTATION_VERBS: tuple[WriteVerb, ...] = ("create", "update", "replace", "delete", "restore", "upsert")
CONFLICT_WORDS = ("UPDATE", "KEEP")
_ON_CONFLICT = GraphQLEnumType(
    "OnConflict",
    {
        "UPDATE": GraphQLEnumValue("UPDATE", description="Update the fields that are given."),
        "KEEP": GraphQLEnumValue("KEEP", description="Leave it as it is."),
    },
    description="What an upsert does with a row that is there.",
)
DELETED = GraphQLEnumType(
    "Deleted",
    {"ONLY": GraphQLEnumValue("ONLY", description="Deleted rows, and no others.")},
    description="Which rows, where deleted ones can be restored; without it, those that are not deleted.",
)
_TEXTS: Mapping[WriteVerb, str] = {
    "delete": " Returns it as it was.",
    "restore": " It was deleted, and comes back with all that was deleted with it.",
    "upsert": " It is created if there is none with the values of the key `by`.",
}


BULK_VERBS: tuple[WriteVerb, ...] = ("update", "delete")


def mutation_names(resource: ResourceDef) -> dict[str, WriteVerb]:
    """The mutations of a resource by name, of one row and of many."""
    return {verb + resource.name: verb for verb in MUTATION_VERBS} | bulk_names(resource)


def bulk_names(resource: ResourceDef) -> dict[str, WriteVerb]:
    """The mutations of many rows by name."""
    return {verb + upper_first(resource.many): verb for verb in BULK_VERBS}


def mutation_fields(
    view: View,
    objects: Mapping[str, GraphQLObjectType],
    wheres: Mapping[str, GraphQLInputObjectType],
    input_type: InputType,
) -> dict[str, GraphQLField]:
    fields: dict[str, GraphQLField] = {}
    inputs = InputTypes(view, input_type)
    for name, resource in view.resources.items():
        for verb in MUTATION_VERBS:
            if resource.may(verb):
                answer = GraphQLNonNull(objects[name])
                text = f"{verb.capitalize()} one {name}." + _TEXTS.get(verb, "") + describe_reason(resource.resource)
                if verb == "upsert":
                    arguments = _upsert_arguments(resource, fields["create" + name].args["input"])
                else:
                    arguments = _arguments(verb, resource, inputs)
                why = reason(resource.resource.deprecated)
                fields[verb + name] = GraphQLField(answer, arguments, description=text, deprecation_reason=why)
        fields.update(_bulk_fields(resource, objects[name], wheres[name], fields))
    return fields


def _bulk_fields(
    resource: ResourceView, row: GraphQLObjectType, where: GraphQLInputObjectType, others: Mapping[str, GraphQLField]
) -> dict[str, GraphQLField]:
    """The mutations of many rows, by a filter."""
    definition = resource.resource
    answer = GraphQLObjectType(
        upper_first(definition.many) + "Bulk",
        {
            "matched": GraphQLField(GraphQLNonNull(GraphQLInt), description="How many rows match, and may be changed."),
            "changed": GraphQLField(GraphQLNonNull(GraphQLInt), description="How many were changed; 0 in a dry run."),
            "dryRun": GraphQLField(GraphQLNonNull(GraphQLBoolean), description="Was everything undone?"),
            "nodes": GraphQLField(
                GraphQLNonNull(GraphQLList(GraphQLNonNull(row))), description="The first of them, up to a page."
            ),
        },
        description=f"What a change of many {definition.name} did.",
    )
    fields: dict[str, GraphQLField] = {}
    for verb in BULK_VERBS:
        if not resource.may(verb):
            continue
        arguments = {"where": GraphQLArgument(GraphQLNonNull(where))}
        if verb == "update":
            patch = others["update" + definition.name].args.get("patch")
            arguments |= {"patch": patch} if patch is not None else {}
        arguments["most"] = GraphQLArgument(
            GraphQLNonNull(GraphQLInt), description="If more rows match, none is changed."
        )
        arguments["dryRun"] = GraphQLArgument(GraphQLNonNull(GraphQLBoolean), default_value=False)
        text = f"{verb.capitalize()} all {definition.name} that match, or none." + describe_reason(definition)
        name = verb + upper_first(definition.many)
        why = reason(definition.deprecated)
        fields[name] = GraphQLField(GraphQLNonNull(answer), arguments, description=text, deprecation_reason=why)
    return fields


def call_fields(
    kind: type[CallDef], view: View, objects: Mapping[str, GraphQLObjectType], input_type: InputType
) -> dict[str, GraphQLField]:
    """The actions, or the queries, of the model's own code."""
    fields: dict[str, GraphQLField] = {}
    for root, (resource, call) in view.calls.items():
        if isinstance(call, kind):
            arguments = {argument.name: _argument(argument, input_type) for argument in call.arguments}
            if call.on == "row":
                arguments = {"id": GraphQLArgument(GraphQLNonNull(GraphQLID)), **arguments}
            result = _result(call.result, objects, input_type)
            asked = describe_reason(resource) if kind is ActionDef else ""
            text, why = (call.description + asked).strip() or None, reason(call.deprecated)
            fields[root] = GraphQLField(result, arguments, description=text, deprecation_reason=why)
    return fields


def _argument(argument: ArgumentDef, input_type: InputType) -> GraphQLArgument:
    kind = input_type(argument.scalar)
    why = reason(argument.deprecated)
    if argument.nullable:
        return GraphQLArgument(kind, deprecation_reason=why)
    if argument.required:
        return GraphQLArgument(GraphQLNonNull(kind))
    default = to_json(argument.scalar, argument.default)
    return GraphQLArgument(GraphQLNonNull(kind), default_value=default, deprecation_reason=why)


def _result(result: ResultDef, objects: Mapping[str, GraphQLObjectType], input_type: InputType) -> Any:
    if result.kind == "none":
        return GraphQLNonNull(GraphQLBoolean)
    kind: Any = objects[result.resource] if result.resource else input_type(result.scalar) if result.scalar else None
    if result.kind == "list":
        kind = GraphQLList(GraphQLNonNull(kind))
    return kind if result.nullable else GraphQLNonNull(kind)


def _arguments(verb: WriteVerb, resource: ResourceView, inputs: InputTypes) -> dict[str, GraphQLArgument]:
    arguments: dict[str, GraphQLArgument] = {}
    if verb != "create":
        arguments["id"] = GraphQLArgument(GraphQLNonNull(GraphQLID))
    if verb in INPUTS:
        kind = inputs.values(cast(Taking, verb), resource)
        if kind.fields:
            arguments["patch" if verb == "update" else "input"] = GraphQLArgument(GraphQLNonNull(kind))
    if verb != "create":
        arguments["ifVersion"] = GraphQLArgument(
            GraphQLInt, description="The write happens only if the row still has this version."
        )
    if verb == "delete" and resource.may("purge"):
        text = "With ONLY, a deleted row is deleted for good."
        arguments["deleted"] = GraphQLArgument(DELETED, description=text)
    return arguments


def _upsert_arguments(resource: ResourceView, created: GraphQLArgument) -> dict[str, GraphQLArgument]:
    name = resource.resource.name
    fields, unique = resource.resource.fields, resource.resource.unique_keys
    old = {
        key: next((fields[name].deprecated for name in unique[key] if fields[name].deprecated), None) for key in unique
    }
    keys = {key: GraphQLEnumValue(key, deprecation_reason=reason(old.get(key))) for key in resource.upsert_keys}
    by = GraphQLEnumType(name + "UpsertKey", keys, description=f"The unique keys of {name}.")
    conflict = GraphQLArgument(GraphQLNonNull(_ON_CONFLICT), default_value="UPDATE")
    return {"by": GraphQLArgument(GraphQLNonNull(by)), "input": created, "onConflict": conflict}
