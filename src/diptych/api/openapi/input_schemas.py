"""JSON Schemas of the bodies of POST, PUT and PATCH, for the writes that one role can make.

    OrderCreate     a new order                  OrderPatch      fields to change
    OrderReplace    a complete order             JsonPatch       operations on one (RFC 6902)

Their fields are those of `ResourceView.takes`, as in the GraphQL types of the same names. A value is what `where`
accepts, within its constraints. A schema is exact, except for what JSON Schema cannot express: that is in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from diptych.api.descriptions import INPUTS, describe_input, describe_inputs
from diptych.api.openapi.nest_schemas import add_nests
from diptych.api.openapi.pattern import portable
from diptych.api.openapi.schemas import (
    Schema,
    add_enum,
    default_in_words,
    default_words,
    json_schema,
    nullable,
    ref,
    scalar_name,
    split_bounds,
    with_deprecation,
    with_description,
    with_example,
)
from diptych.api.rest.patch import MAX_PATCH_OPERATIONS
from diptych.model.constraints import Each, MaxBytes, MaxItems, MinItems
from diptych.model.declare.markers import Max, MaxLen, Min, MinLen, Pattern
from diptych.model.defs import SERVER_FIELDS, FieldDef
from diptych.model.resource_view import InputView, ResourceView, Taking
from diptych.model.scalar_values import to_json
from diptych.model.scalars import ID, JSON, Member, Scalar
from diptych.model.view import View

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_POINTER = "^(/([^~]|~[01])*)?$"
_ANYTHING: Schema = {"type": ["object", "array", "string", "number", "boolean"]}


def add_inputs(schemas: dict[str, Schema], resource: ResourceView, view: View) -> None:
    """Add the schemas of the write bodies of one resource by name; those of its scalars may be there already."""
    for verb, (suffix, _) in INPUTS.items():
        if resource.may(verb):
            schema = _input(schemas, verb, resource)
            if verb != "replace":
                example = _example(schema)
                add_nests(schemas, schema, verb, resource, view, _input)
                if schema["properties"].keys() > example.keys() >= set(schema.get("required", ())):
                    schema["example"] = example
            schemas[resource.resource.name + suffix] = schema
    for writes in resource.writes.values():
        add_enum(schemas, writes.field.scalar)


def _example(schema: Schema) -> Schema:
    """A body that writes no related rows: those that tools make up would be refused, or not end."""
    return {name: part["example"] for name, part in schema["properties"].items() if "example" in part}


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
    schema = _value(schemas, verb, field)
    if taken.nullable:
        schema = nullable(schema)
    default = default_in_words(field) if verb == "create" else ""
    schema = with_deprecation(
        with_description(schema, describe_input(taken, verb), *_words(field), default), field.deprecated
    )
    return with_example(schema, field) if not taken.fixed else schema


def value_input(
    schemas: dict[str, Schema], scalar: Scalar, members: Mapping[str, Member], *, patch: bool = False
) -> Schema:
    """The schema of a value object that is sent: whole, or the members that change."""
    name = scalar.name + ("Patch" if patch else "Input")
    if name not in schemas:
        properties = {}
        for key, member in members.items():
            inner = member.scalar
            schema = ref(inner.name) if inner.choices else constrained(inner, json_schema(inner), member.constraints)
            schema = nullable(schema) if member.nullable else schema
            if member.default is not None and not patch:
                schema = with_description(schema, default_words(to_json(inner, member.default)))
            properties[key] = schema
        whole: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [key for key, member in members.items() if member.required and not patch]
        schemas[name] = {**whole, "required": required} if required else whole
    return ref(name)


def _value(schemas: dict[str, Schema], verb: Taking, field: FieldDef) -> Schema:
    if field.scalar.choices:
        return ref(field.scalar.name)
    if field.scalar.members is not None:
        return value_input(schemas, field.scalar, field.scalar.members, patch=verb == "update")
    if field.relation:
        return json_schema(field.scalar)
    schema = split_bounds(constrained(field.scalar, json_schema(field.scalar), field.constraints))
    if (
        field.constraints
        or field.scalar.items is not None
        or not schema.keys() & {"pattern", "minimum", "anyOf"}
        or field.scalar is ID
    ):
        return schema
    name = scalar_name(field.scalar) + "-Input"
    schemas.setdefault(name, schema)
    return ref(name)


def constrained(scalar: Scalar, schema: Schema, constraints: Iterable[object]) -> Schema:
    """The schema of a value within its constraints; an id must be well-formed."""
    if scalar is JSON:
        return _ANYTHING
    if scalar.items is not None:
        item = scalar.items
        of_elements = next((marker.constraints for marker in constraints if isinstance(marker, Each)), ())
        inner = ref(item.name) if item.choices else constrained(item, json_schema(item), of_elements)
        schema = {"type": "array", "items": inner}
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
        case MinItems(length):
            return {"minItems": length}
        case MaxItems(length):
            return {"maxItems": length}
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


def link_schema(link: ResourceView, names: list[str]) -> Schema:
    """The schema of some fields of a new row, written out."""
    takes = link.takes("create")
    properties = {name: _taken({}, "create", takes[name]) for name in names}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [name for name in names if takes[name].required]
    return {**schema, "required": required} if required else schema


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
