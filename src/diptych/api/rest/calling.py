"""View → the operations of an OpenAPI document that call the model's own code, as one role can call it.

    POST /posts/{id}/publish     publishPost        an action: its arguments in the body
    GET  /posts/top              topPosts           a query: its arguments in the query string
"""

from __future__ import annotations

from diptych.api.rest.components import CACHED, COSTED, Part, answer, closed, errors, headers, operation, refer
from diptych.api.rest.inputs import constrained
from diptych.api.rest.schemas import Schema, as_json, as_text, nullable, ref
from diptych.model.defs import ArgumentDef, CallDef, ResourceDef, ResultDef
from diptych.model.scalars import JSON, Scalar, to_json
from diptych.model.view import View

_PREFER = refer("parameters", "Prefer-Cost")
_ACTION_ERRORS = (400, 401, 403, 404, 406, 409, 412, 413, 415, 422, 429, 431, 503, 504)


def call_path(found: ResourceDef, call: CallDef) -> str:
    """Where a call is."""
    return f"/{found.path}/{{id}}/{call.segment}" if call.on == "row" else f"/{found.path}/{call.segment}"


def query_operation(found: ResourceDef, call: CallDef) -> Part:
    """GET, but for its errors."""
    arguments = [_parameter(each) for each in call.arguments]
    get = operation(_summary(found, call), found.name, [*arguments, *_fields(call), _PREFER], call.description)
    get["responses"] = {"200": _answer(call.result, *CACHED, *COSTED)}
    return get


def action_operation(found: ResourceDef, call: CallDef, view: View) -> Part:
    """POST."""
    keys = [refer("parameters", "Idempotency-Key")] if view.signature.signed_in else []
    post = operation(_summary(found, call), found.name, [*_fields(call), _PREFER, *keys], call.description)
    taken: Schema = {
        "type": "object",
        "properties": {each.name: _argument(each) for each in call.arguments},
        "additionalProperties": False,
    }
    required = [each.name for each in call.arguments if each.required]
    if required:
        taken["required"] = required
    body = {"required": bool(required), "content": {"application/json": {"schema": taken}}}
    replayed = ("Idempotency-Replayed",) if view.signature.signed_in else ()
    if call.result.kind == "none":
        ok = {"204": {"description": "It is done.", "headers": headers(*CACHED[1:], *COSTED, *replayed)}}
    else:
        ok = {"200": _answer(call.result, *CACHED, *COSTED, *replayed)}
    return {"operationId": call.root, **post, "requestBody": body, "responses": {**ok, **errors(_ACTION_ERRORS)}}


def _summary(found: ResourceDef, call: CallDef) -> str:
    what = f"one {found.name}" if call.on == "row" else found.name
    return f"{call.name} of {what}."


def _fields(call: CallDef) -> list[Part]:
    return [refer("parameters", f"{call.result.resource}.fields")] if call.result.resource else []


def _answer(result: ResultDef, *names: str) -> Part:
    return answer("What it gives.", _result(result), *names)


def _result(result: ResultDef) -> Schema:
    scalar = result.scalar
    schema = ref(result.resource) if scalar is None else _enum_or(scalar, dict(scalar.openapi))
    if result.kind == "list":
        return closed({"data": {"type": "array", "items": schema}})
    return nullable(schema) if result.nullable else schema


def _argument(each: ArgumentDef) -> Schema:
    schema = _enum_or(each.scalar, constrained(each.scalar, as_json(each.scalar), each.constraints))
    return _with_default(each, nullable(schema) if each.nullable else schema)


def _parameter(each: ArgumentDef) -> Part:
    schema = _enum_or(each.scalar, constrained(each.scalar, as_text(each.scalar), each.constraints))
    found: Part = {"name": each.name, "in": "query", "required": each.required}
    if each.scalar is JSON:
        return {**found, "content": {"application/json": {"schema": {}}}}
    return {**found, "schema": _with_default(each, schema)}


def _with_default(each: ArgumentDef, schema: Schema) -> Schema:
    return schema if each.default is None else {**schema, "default": to_json(each.scalar, each.default)}


def _enum_or(scalar: Scalar, schema: Schema) -> Schema:
    """An enum is written out: it need not be that of any field."""
    return {"type": "string", "enum": list(scalar.choices)} if scalar.choices else schema
