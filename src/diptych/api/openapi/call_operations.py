"""OpenAPI operations that call the model's own code, as one role can call it.

POST /posts/{id}/publish     publishPost        an action: its arguments in the body
GET  /posts/top              topPosts           a query: its arguments in the query string
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.api.openapi.components import JsonObject, answer, closed, errors, headers, in_json, operation, refer
from diptych.api.openapi.input_schemas import constrained, value_input
from diptych.api.openapi.schemas import (
    Schema,
    default_in_words,
    json_schema,
    nullable,
    ref,
    split_bounds,
    text_schema,
    with_deprecation,
    with_description,
    with_example,
)
from diptych.model.call_defs import ArgumentDef, CallDef, ResultDef
from diptych.model.defs import ResourceDef
from diptych.model.naming import spaced_words, upper_first, with_article
from diptych.model.scalar_values import to_json
from diptych.model.scalars import JSON, Member, Scalar
from diptych.model.view import View

_ACTION_ERRORS = (400, 401, 403, 404, 406, 409, 412, 413, 415, 422, 429, 431, 503, 504)


def call_path(resource: ResourceDef, call: CallDef) -> str:
    """The path of a call."""
    return f"/{resource.path}/{{id}}/{call.segment}" if call.on == "row" else f"/{resource.path}/{call.segment}"


def query_operation(resource: ResourceDef, call: CallDef) -> JsonObject:
    """GET on a query, without its errors."""
    arguments = [_parameter(argument) for argument in call.arguments]
    get = operation(_summary(resource, call), resource.name, [*arguments, *_fields(call)], call.description)
    get = with_deprecation(get, call.deprecated)
    get["responses"] = {"200": _answer(call.result)}
    return get


def action_operation(resource: ResourceDef, call: CallDef, view: View) -> JsonObject:
    """POST on an action."""
    keys = [refer("parameters", "Idempotency-Key")] if view.signature.signed_in else []
    post = operation(_summary(resource, call), resource.name, [*_fields(call), *keys], call.description)
    post = with_deprecation(post, call.deprecated)
    taken: Schema = {
        "type": "object",
        "properties": {argument.name: _argument(argument) for argument in call.arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in call.arguments if argument.required]
    if required:
        taken["required"] = required
    body = {"required": bool(required), "content": {"application/json": {"schema": taken}}}
    replayed = ("Idempotency-Replayed",) if view.signature.signed_in else ()
    if call.background is not None:
        text = "It is queued. `Location` is the path of its job."
        ok = {"202": answer(text, _result(call.result), "Location", *replayed)}
    elif call.result.kind == "none":
        ok = {"204": {"description": "Done.", "headers": headers(*replayed)}}
    else:
        ok = {"200": _answer(call.result, "ETag", *replayed)}
    return {"operationId": call.root, **post, "requestBody": body, "responses": {**ok, **errors(_ACTION_ERRORS)}}


def _summary(resource: ResourceDef, call: CallDef) -> str:
    what = with_article(resource.name) if call.on == "row" else spaced_words(resource.many)
    return f"{upper_first(spaced_words(call.name))}: {what}"


def _fields(call: CallDef) -> list[JsonObject]:
    return [refer("parameters", "fields")] if call.result.resource else []


def _answer(result: ResultDef, *names: str) -> JsonObject:
    return answer("The result.", _result(result), *names)


def _result(result: ResultDef) -> Schema:
    scalar = result.scalar
    schema = ref(result.resource) if scalar is None else _enum_or(scalar, dict(scalar.openapi))
    if result.kind == "list":
        return closed({"data": {"type": "array", "items": schema}})
    return nullable(schema) if result.nullable else schema


def _argument(argument: ArgumentDef) -> Schema:
    taken = constrained(argument.scalar, json_schema(argument.scalar), argument.constraints)
    schema = _enum_or(argument.scalar, split_bounds(taken))
    schema = with_description(nullable(schema) if argument.nullable else schema, default_in_words(argument))
    return with_example(with_deprecation(schema, argument.deprecated), argument)


def _parameter(argument: ArgumentDef) -> JsonObject:
    schema = _enum_or(argument.scalar, constrained(argument.scalar, text_schema(argument.scalar), argument.constraints))
    parameter: JsonObject = {"name": argument.name, "in": "query", "required": argument.required}
    parameter = with_deprecation(parameter, argument.deprecated)
    if argument.scalar.items is not None:
        return {**parameter, "explode": False, "style": "form", "schema": _with_default(argument, schema)}
    if argument.scalar is JSON or argument.scalar.members is not None:
        return {**parameter, "schema": in_json({})}
    return {**parameter, "schema": _with_default(argument, schema)}


def _inlined(scalar: Scalar, members: Mapping[str, Member]) -> Schema:
    """The input of a value object; an enum in it is inlined too."""
    made: dict[str, Schema] = {}
    value_input(made, scalar, members)
    (schema,) = made.values()
    enums = {name: member.scalar for name, member in members.items() if member.scalar.choices}
    listed = {name: {"type": "string", "enum": list(kind.choices)} for name, kind in enums.items()}
    properties = schema["properties"] | {
        name: nullable(part) if members[name].nullable else part for name, part in listed.items()
    }
    return {**schema, "properties": properties}


def _with_default(argument: ArgumentDef, schema: Schema) -> Schema:
    return schema if argument.default is None else {**schema, "default": to_json(argument.scalar, argument.default)}


def _enum_or(scalar: Scalar, schema: Schema) -> Schema:
    """The schema, or the inlined values of an enum, which need not be that of any field."""
    if scalar.members is not None:
        return _inlined(scalar, scalar.members)
    if scalar.items is not None and scalar.items.choices:
        return {**schema, "items": {"type": "string", "enum": list(scalar.items.choices)}}
    return {"type": "string", "enum": list(scalar.choices)} if scalar.choices else schema
