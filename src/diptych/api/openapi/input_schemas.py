"""JSON Schemas of the bodies of POST, PUT and PATCH, for the writes that one role can make.

    OrderCreate     a new order                  OrderPatch      fields to change
    OrderReplace    a complete order             JsonPatch       operations on one (RFC 6902)

Their fields are those of `ResourceView.takes`, as in the GraphQL types of the same names. A value is what `where`
accepts, within its constraints. A schema is exact, except for what JSON Schema cannot express: that is in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from diptych.api.descriptions import INPUTS, describe_input, describe_inputs
from diptych.api.openapi.pattern import portable
from diptych.api.openapi.schemas import (
    Schema,
    described,
    enumerated,
    json_schema,
    nullable,
    ref,
    scalar_name,
    with_example,
)
from diptych.api.rest.patch import MAX_PATCH_OPERATIONS
from diptych.model.constraints import MaxBytes
from diptych.model.declare.markers import Max, MaxLen, Min, MinLen, Pattern
from diptych.model.defs import SERVER_FIELDS, FieldDef
from diptych.model.scalars import ID, JSON, Scalar, to_json
from diptych.model.view import InputView, ResourceView, Taking

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_POINTER = "^(/([^~]|~[01])*)?$"
_ANYTHING: Schema = {"type": ["object", "array", "string", "number", "boolean"]}


def add_inputs(schemas: dict[str, Schema], resource: ResourceView) -> None:
    """Add the schemas of the write bodies of one resource by name; those of its scalars may be there already."""
    for verb, (suffix, _) in INPUTS.items():
        if resource.may(verb):
            schemas[resource.resource.name + suffix] = _input(schemas, verb, resource)
    for writes in resource.writes.values():
        scalar = writes.field.scalar
        if scalar.choices and scalar.name not in schemas:
            schemas[scalar.name] = enumerated(scalar)


def _input(schemas: dict[str, Schema], verb: Taking, resource: ResourceView) -> Schema:
    takes = resource.takes(verb)
    properties = {name: _taken(schemas, verb, taken) for name, taken in takes.items()}
    schema: Schema = {"type": "object", "properties": properties}
    if required := [name for name, taken in takes.items() if taken.required]:
        schema["required"] = required
    return {**schema, "additionalProperties": False, "description": describe_inputs(verb, resource)}


def _taken(schemas: dict[str, Schema], verb: Taking, taken: InputView) -> Schema:
    field = taken.field
    if verb == "replace" and field.name in SERVER_FIELDS:  # the same in every resource
        name = f"{field.name}-{scalar_name(field.scalar)}"
        if name not in schemas:
            schemas[name] = _written_out(schemas, verb, taken)
        return ref(name)
    return _written_out(schemas, verb, taken)


def _written_out(schemas: dict[str, Schema], verb: Taking, taken: InputView) -> Schema:
    field = taken.field
    schema = _value(schemas, field)
    if taken.nullable:
        schema = nullable(schema)
    if verb == "create" and field.default is not None:
        schema = {**schema, "default": to_json(field.scalar, field.default)}
    schema = described(schema, describe_input(taken, verb), *_words(field))
    return with_example(schema, field) if not taken.fixed else schema


def _value(schemas: dict[str, Schema], field: FieldDef) -> Schema:
    if field.scalar.choices:
        return ref(field.scalar.name)
    if field.relation:
        return json_schema(field.scalar)
    schema = constrained(field.scalar, json_schema(field.scalar), field.constraints)
    if field.constraints or not schema.keys() & {"pattern", "minimum"} or field.scalar is ID:
        return schema
    name = scalar_name(field.scalar) + "-Input"
    schemas.setdefault(name, schema)
    return ref(name)


def constrained(scalar: Scalar, schema: Schema, constraints: Iterable[object]) -> Schema:
    """The schema of a value within its constraints; an id must be well-formed."""
    if scalar is JSON:
        return _ANYTHING
    if scalar is ID:
        return {"type": "string", "pattern": _UUID}
    for marker in constraints:
        schema = {**schema, **_constraint(marker, schema)}
    return schema


def _constraint(marker: object, schema: Schema) -> Schema:
    """The keywords that a constraint adds to a schema."""
    match marker:
        case MinLen(length):
            return {"minLength": length}
        case MaxLen(length):
            return {"maxLength": length}
        case MaxBytes(length):
            return {"maxLength": min(length, schema.get("maxLength", length))}
        case Pattern(regex):
            pattern = portable(regex)
            return {"pattern": pattern} if pattern else {}
        case Min(value):
            bound = {"minimum": max(_number(value), schema.get("minimum", _number(value)))}
            return {**bound, **_not_negative(schema)} if value >= 0 else bound
        case Max(value):
            return {"maximum": min(_number(value), schema.get("maximum", _number(value)))}
    return {}


def _number(value: float | Decimal) -> Any:
    return int(value) if value == int(value) else float(value)


def _not_negative(schema: Schema) -> Schema:
    """For numbers that are sent as text: a pattern without a sign, except for negative zero."""
    pattern = schema.get("pattern", "")
    if not pattern.startswith("^-?"):
        return {}
    digits = pattern[3:-1]
    return {"pattern": f"^({digits}|-{digits.replace('[0-9]', '0')})$"}


def _words(field: FieldDef) -> Iterator[str]:
    """Constraints that JSON Schema cannot express, as sentences."""
    if field.unique:
        yield "Unique."
    textual = "string" in json_schema(field.scalar).get("type", ())
    for marker in field.constraints:
        match marker:
            case Pattern(regex) if not portable(regex):
                yield f"It matches `{regex}`, in the syntax of Python."
            case MaxBytes(length):
                yield f"At most {length} bytes in UTF-8."
            case Min(value) if textual:
                yield f"At least {value}."
            case Max(value) if textual:
                yield f"At most {value}."


# JSON Patch


def json_patch() -> Schema:
    """A list of operations."""
    takes = {"value": ("add", "replace", "test"), "from": ("move", "copy"), "": ("remove",)}
    return {
        "type": "array",
        "items": {"anyOf": [_operation(names, more) for more, names in takes.items()]},
        "maxItems": MAX_PATCH_OPERATIONS,
        "description": "Operations on the object as the caller sees it (RFC 6902): all of them or none.",
    }


def _operation(names: tuple[str, ...], more: str) -> Schema:
    pointer: Schema = {"type": "string", "pattern": _POINTER}
    properties: Schema = {"op": {"type": "string", "enum": list(names)}, "path": pointer}
    if more:
        properties[more] = pointer if more == "from" else {}
    return {"type": "object", "properties": properties, "required": list(properties)}
