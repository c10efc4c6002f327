"""View → JSON Schema: what POST, PUT and PATCH take, for the changes that one role can make.

    OrderCreate     a new order                  OrderPatch      what changes of one
    OrderReplace    all of one                   JsonPatch       operations on one (RFC 6902)

Which fields these have is what `ResourceView.takes` says, as in the GraphQL types of the same names. A value is what
`where` takes, within its constraints. A schema is exact but for what it has no words for: then it says it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from diptych.api.rest.patch import MAX_OPERATIONS
from diptych.api.rest.pattern import portable
from diptych.api.rest.schemas import Schema, as_json, described, enumerated, nullable, ref
from diptych.api.words import INPUTS, describe_input
from diptych.model.constraints import MaxBytes
from diptych.model.defs import FieldDef
from diptych.model.markers import Max, MaxLen, Min, MinLen, Pattern
from diptych.model.scalars import ID, JSON, Scalar, to_json
from diptych.model.view import InputView, ResourceView, Taking, View

MAX_CREATED = 100
"""Rows that one request may create."""
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_POINTER = "^(/([^~]|~[01])*)?$"
_ANYTHING: Schema = {"type": ["object", "array", "string", "number", "boolean"]}


def build_inputs(view: View) -> dict[str, Schema]:
    """Every schema of what changes take, by its name."""
    found: dict[str, Schema] = {}
    for name, each in view.resources.items():
        for verb, (suffix, told) in INPUTS.items():
            if each.may(verb):
                found[name + suffix] = _input(verb, each, told.format(name))
        kinds = (writes.field.scalar for writes in each.writes.values())
        found |= {kind.name: enumerated(kind) for kind in kinds if kind.choices}
    return found


def _input(verb: Taking, each: ResourceView, told: str) -> Schema:
    takes = each.takes(verb)
    schema: Schema = {"type": "object", "properties": {name: _taken(verb, taken) for name, taken in takes.items()}}
    if required := [name for name, taken in takes.items() if taken.required]:
        schema["required"] = required
    return {**schema, "additionalProperties": False, "description": told}


def _taken(verb: Taking, taken: InputView) -> Schema:
    field = taken.field
    schema = _value(field)
    if taken.nullable:
        schema = nullable(schema)
    if verb == "create" and field.default is not None:
        schema = {**schema, "default": to_json(field.scalar, field.default)}
    return described(schema, describe_input(taken, verb), *_words(field))


def _value(field: FieldDef) -> Schema:
    if field.scalar.choices:
        return ref(field.scalar.name)
    if field.relation:
        return as_json(field.scalar)
    return constrained(field.scalar, as_json(field.scalar), field.constraints)


def constrained(scalar: Scalar, schema: Schema, constraints: Iterable[object]) -> Schema:
    """The schema of a value that stands for itself: within its constraints, and an id only if it is one."""
    if scalar is JSON:
        return _ANYTHING
    if scalar is ID:
        return {"type": "string", "pattern": _UUID}
    for marker in constraints:
        schema = {**schema, **_constraint(marker, schema)}
    return schema


def _constraint(marker: object, schema: Schema) -> Schema:
    """What a constraint adds to the schema of a value."""
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
    """Of numbers that travel as text: what a pattern takes without a sign, and nothing else with one but zero."""
    pattern = schema.get("pattern", "")
    if not pattern.startswith("^-?"):
        return {}
    digits = pattern[3:-1]
    return {"pattern": f"^({digits}|-{digits.replace('[0-9]', '0')})$"}


def _words(field: FieldDef) -> Iterator[str]:
    """What a schema cannot say."""
    if field.unique:
        yield "No two have the same."
    textual = "string" in as_json(field.scalar).get("type", ())
    for marker in field.constraints:
        match marker:
            case Pattern(regex) if not portable(regex):
                yield f"It matches `{regex}`, as Python has it."
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
        "maxItems": MAX_OPERATIONS,
        "description": "Operations on the object as the caller sees it (RFC 6902): all of them or none.",
    }


def _operation(names: tuple[str, ...], more: str) -> Schema:
    pointer: Schema = {"type": "string", "pattern": _POINTER}
    properties: Schema = {"op": {"type": "string", "enum": list(names)}, "path": pointer}
    if more:
        properties[more] = pointer if more == "from" else {}
    return {"type": "object", "properties": properties, "required": list(properties)}
