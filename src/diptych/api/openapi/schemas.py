"""JSON Schemas of responses and filters, for the resources that one role can read.

A value has three forms on the wire. A response has the one canonical form, `"12.50"`. A filter accepts more, and its
two forms differ: a query parameter is text, `12.5`, and the tree of `where` is JSON, `"12.5"` or `12`. So a scalar has
three schemas, `response_schema`, `text_schema` and `json_schema`; each is exact: a value is accepted if and only if it
matches.

    Order           an object of a response         OrderWhere        a filter of orders
    OrderPage       a page of them                  OrderListWhere    a filter of a to-many relation to them
    OrderStatus     an enum                         StringFilter      the comparisons of one scalar

An object has all plain fields: they are `required`, so that generated clients need not ask whether one is there. What
the parameter `fields` leaves out is a matter of that request. The fields that every resource has are in `Row`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from diptych.api.descriptions import describe_field
from diptych.api.openapi.examples import example_of
from diptych.model.call_defs import ArgumentDef
from diptych.model.defs import SERVER_FIELDS, FieldDef, RelationDef
from diptych.model.deprecation import Deprecation
from diptych.model.operators import OPERATORS
from diptych.model.resource_view import ResourceView
from diptych.model.scalar_values import to_json
from diptych.model.scalars import (
    BIGINT,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    ID,
    IDS,
    INT,
    INTEGER_ID,
    STRING,
    TEXT_ID,
    TIME,
    UUID,
    Member,
    Scalar,
)

Schema = dict[str, Any]

MAX_IN = 250
"""The most items of an `in` list."""
_DECIMAL = re.compile(r"Decimal\((\d+),(\d+)\)")
_INNER_YEAR = "(000[2-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])"
_CLOCK = r"[Tt].{6}[0-5][0-9](\.[0-9]{1,6})?"
_MOMENT = f"^(0{{0,3}}[1-9].*{_CLOCK}[Zz]|{_INNER_YEAR}-.*{_CLOCK}[+-].{{5}})$"
"""In addition to the format: at most six fraction digits, and a year from 1 to 9999 in UTC."""


_SECONDS = r"[0-9]{1,12}(\.[0-9]{1,6})?S"
_HOURS = f"T([0-9]{{1,8}}H([0-9]{{1,10}}M)?({_SECONDS})?|[0-9]{{1,10}}M({_SECONDS})?|{_SECONDS})"
_DURATION = f"^[+-]?P(([0-9]{{1,6}}W([0-9]{{1,6}}D)?|[0-9]{{1,7}}D)({_HOURS})?|{_HOURS})$"
"""Without durations that are near the largest one."""


def ref(name: str) -> Schema:
    """A reference to a schema among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def add_schemas(schemas: dict[str, Schema], resource: ResourceView, row: str = "Row") -> None:
    """Add the schemas of one resource by name; those of its scalars may be there already. `row` names the schema of
    what every row has."""
    name = resource.resource.name
    schemas[name] = _object(schemas, resource, row)
    schemas[name + "Where"] = _where(resource)
    for way in resource.ways.values():
        target = way.relation.target
        if way.relation.kind != "one" and target + "ListWhere" not in schemas:
            schemas[target + "ListWhere"] = _list_where(target)
            schemas.setdefault(filter_schema_name(INT), _filter(INT))
    for field in resource.fields.values():
        scalar = field.field.scalar
        add_enum(schemas, scalar)
        if field.field.python is None and filter_schema_name(scalar) not in schemas:
            schemas[filter_schema_name(scalar)] = _filter(scalar)


def add_enum(schemas: dict[str, Schema], scalar: Scalar) -> None:
    """Add the schema of an enum, or of the enum that a list holds, or those of a value object."""
    if scalar.members is not None and scalar.name not in schemas:
        schemas[scalar.name] = {}
        for member in scalar.members.values():
            add_enum(schemas, member.scalar)
            if filter_schema_name(member.scalar) not in schemas:
                schemas[filter_schema_name(member.scalar)] = _filter(member.scalar)
        schemas[scalar.name] = _value_object(scalar, scalar.members)
    item = scalar.items or scalar
    if item.choices and item.name not in schemas:
        schemas[item.name] = enumerated(item)


def enumerated(scalar: Scalar) -> Schema:
    """The schema of an enum. It has no example: optional parameters refer to it, and pages would fill them in."""
    return with_deprecated_values(with_description(dict(scalar.openapi), scalar.description), scalar.deprecated)


def with_description(schema: Schema, *sentences: str) -> Schema:
    """A schema with a description of all non-empty sentences."""
    text = " ".join(filter(None, sentences))
    return {**schema, "description": text} if text else schema


def with_deprecation(schema: Schema, deprecation: Deprecation | None) -> Schema:
    """A schema, a parameter or an operation, marked as deprecated if it is; `x-sunset` is the day from which on it may
    be gone."""
    if deprecation is None:
        return schema
    text = " ".join(filter(None, (schema.get("description", ""), "Deprecated: " + deprecation.words)))
    sunset = {} if deprecation.sunset is None else {"x-sunset": str(deprecation.sunset)}
    return {**schema, "deprecated": True, **sunset, "description": text}


def with_deprecated_values(schema: Schema, values: Mapping[str, Deprecation]) -> Schema:
    """A schema of a few values, some of which are deprecated: in words, and their sunsets as `x-deprecated-values`."""
    if not values:
        return schema
    text = " ".join(
        [schema.get("description", ""), *(f"`{value}` is deprecated: {each.words}" for value, each in values.items())]
    ).strip()
    sunsets = {value: each.sunset and str(each.sunset) for value, each in values.items()}
    return {**schema, "x-deprecated-values": sunsets, "description": text}


def nullable(schema: Schema) -> Schema:
    """The schema of a value that may also be null."""
    if not schema:  # anything, and so null too
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" in schema:
        kinds = schema["type"]
        return {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


# what an answer holds


def _object(schemas: dict[str, Schema], resource: ResourceView, row: str) -> Schema:
    properties = {name: response_schema(field.field) for name, field in resource.fields.items()}
    common = {name: properties[name] for name in SERVER_FIELDS if name in properties}
    base = {}
    if schemas.setdefault(row, _row(common)) == _row(common):  # ids may be integers
        base = ref(row)
        properties = {name: part for name, part in properties.items() if name not in common}
    required = list(properties)
    properties |= {name: _related(way.relation) for name, way in resource.relations.items()}
    schema = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    return with_description(extending(base, schema), resource.resource.description)


def extending(base: Schema, schema: Schema) -> Schema:
    """A schema that demands two schemas at once, by `allOf`.

    Generators that know only the usual form of `allOf` ignore members beside it.
    """
    return {"allOf": [base, schema]} if base else schema


def _row(common: dict[str, Schema]) -> Schema:
    text = "What every row has; the server sets it."
    return {"type": "object", "properties": common, "required": list(common), "description": text}


def _value_object(scalar: Scalar, members: Mapping[str, Member]) -> Schema:
    properties = {}
    for name, member in members.items():
        schema = ref(member.scalar.name) if member.scalar.choices else value_schema(member.scalar)
        schema = nullable(schema) if member.nullable else schema
        properties[name] = with_example(schema, _as_argument(member))
    whole = {"type": "object", "properties": properties, "required": list(members)}
    return with_description(whole, scalar.description)


def _as_argument(member: Member) -> ArgumentDef:
    return ArgumentDef(member.name, member.attr, member.scalar, constraints=member.constraints)


def value_schema(scalar: Scalar) -> Schema:
    """The schema of a value in a response. (The format of an integer says its bounds.)"""
    if scalar.members is not None:
        return ref(scalar.name)
    if scalar.items is not None:
        item = scalar.items
        return {"type": "array", "items": ref(item.name) if item.choices else value_schema(item)}
    return {key: part for key, part in scalar.openapi.items() if key not in ("minimum", "maximum")}


def response_schema(field: FieldDef) -> Schema:
    """The schema of a field in a response."""
    schema = ref(field.scalar.name) if field.scalar.choices else value_schema(field.scalar)
    schema = nullable(schema) if field.nullable or field.hideable else schema
    schema = schema if field.stored else {**schema, "readOnly": True}
    schema = schema if field.relation else with_description(schema, describe_field(field))
    return with_example(with_deprecation(schema, field.deprecated), field)


def with_example(schema: Schema, field: FieldDef | ArgumentDef) -> Schema:
    """A schema with a valid value, which is the default if there is one."""
    value = example_of(field)
    return schema if value is None else {**schema, "example": value}


def default_in_words(field: FieldDef | ArgumentDef) -> str:
    """The default of a value in a body. With the keyword `default`, openapi-typescript would make it required."""
    return "" if field.default is None else default_words(to_json(field.scalar, field.default))


def default_words(value: object) -> str:
    return f"The default is `{msgspec.json.encode(value).decode()}`."


def _related(relation: RelationDef) -> Schema:
    """The schema of a relation. Examples of rows have none, like responses without `fields`: what tools make up would
    not end."""
    schema = ref(relation.target)
    if relation.kind != "one":
        schema = {"type": "array", "items": schema, "example": []}
    elif relation.nullable or relation.hideable:
        schema = {**nullable(schema), "example": None}
    return with_deprecation(with_description(schema, relation.description), relation.deprecated)


# what a filter takes


def text_schema(scalar: Scalar) -> Schema:
    """The schema of a query parameter. Any text is accepted as an id: a malformed one is not found."""
    if scalar.choices:
        return ref(scalar.name)
    if digits := _digits(scalar):
        whole, scale = digits
        fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
        return {"type": "string", "pattern": rf"^-?{f'0*[0-9]{{1,{whole}}}' if whole else '0+'}{fraction}$"}
    return dict(_TEXTS.get(scalar, scalar.openapi))


def json_schema(scalar: Scalar) -> Schema:
    """The schema of a value in `where`: also JSON integers for ids and for numbers that are sent as strings."""
    if scalar.items is not None:
        return {"type": "array", "items": split_bounds(json_schema(scalar.items))}
    either: Schema = {**text_schema(scalar), "type": ["string", "integer"]}
    if scalar in IDS:
        return either
    if scalar is BIGINT:
        return {**either, "minimum": -(2**63), "maximum": 2**63 - 1}
    if digits := _digits(scalar):
        most = 10 ** digits[0] - 1
        return {**either, "minimum": -most, "maximum": most}
    return text_schema(scalar)


def split_bounds(schema: Schema) -> Schema:
    """The schema of a bounded number that is sent as text or as an integer, in two parts. (Of one with two types and
    bounds, generators of Python make types that no type checker reads.)"""
    if schema.get("type") != ["string", "integer"] or "minimum" not in schema:
        return schema
    bounds = {key: schema[key] for key in ("minimum", "maximum")}
    rest = {key: part for key, part in schema.items() if key not in ("type", *_OF_TEXT, *bounds)}
    text = {key: schema[key] for key in _OF_TEXT if key in schema}
    return {**rest, "anyOf": [{"type": "string", **text}, {"type": "integer", **bounds}]}


_OF_TEXT = ("pattern", "minLength", "maxLength")


def _digits(scalar: Scalar) -> tuple[int, int] | None:
    """The number of digits of a decimal before and after the point."""
    if match := _DECIMAL.fullmatch(scalar.name):
        precision, scale = map(int, match.groups())
        return precision - scale, scale
    return None


def _integer_pattern(bits: int) -> str:
    """The pattern of integers of `bits` bits: of fewer digits than the largest, or of as many and not above it."""
    most = str(2 ** (bits - 1) - 1)
    below = (
        f"{most[:index]}[{int(index == 0)}-{int(digit) - 1}][0-9]{{{len(most) - index - 1}}}"
        for index, digit in enumerate(most)
        if int(digit) > int(index == 0)
    )
    return f"^(-?(0|[1-9][0-9]{{0,{len(most) - 2}}}|{'|'.join(below)}|{most})|-{2 ** (bits - 1)})$"


_TEXTS: Mapping[Scalar, Schema] = {
    ID: {"type": "string"},
    INTEGER_ID: {"type": "string"},
    TEXT_ID: {"type": "string"},
    STRING: {"type": "string", "pattern": r"^[^\u0000]*$"},
    INT: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    BIGINT: {"type": "string", "pattern": _integer_pattern(64)},
    FLOAT: {"type": "number", "minimum": -sys.float_info.max, "maximum": sys.float_info.max},
    DATE: {"type": "string", "format": "date", "pattern": "^0{0,3}[1-9]"},
    DATETIME: {"type": "string", "format": "date-time", "pattern": _MOMENT},
    UUID: {"type": "string", "format": "uuid", "pattern": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
    TIME: {"type": "string", "pattern": r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?$"},
    DURATION: {"type": "string", "pattern": _DURATION},
}
"""The schemas of what requests may write (filters, bodies, arguments), where they take more forms than responses
have."""


def scalar_name(scalar: Scalar) -> str:
    """The name of a scalar among the components: `Decimal_12_2`, `StringList`."""
    if scalar.items is not None:
        return scalar_name(scalar.items) + "List"
    return scalar.name if scalar.name.isalnum() else re.sub(r"\W+", "_", scalar.name).strip("_")


def filter_schema_name(scalar: Scalar) -> str:
    """The schema of comparisons in JSON: `StringFilter`."""
    return scalar_name(scalar) + "Filter"


def _filter(scalar: Scalar) -> Schema:
    if scalar.members is not None:
        properties: Schema = {name: ref(filter_schema_name(member.scalar)) for name, member in scalar.members.items()}
        properties["isNull"] = {"type": "boolean"}
        return {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1}
    value = split_bounds(json_schema(scalar.items or scalar))
    several = {"anyOf": [value, {"type": "array", "items": value, "maxItems": MAX_IN}]}
    taken: dict[str, Schema] = {"value": value, "list": several, "truth": {"type": "boolean"}}
    operators = {op: OPERATORS[op] for op in scalar.ops}
    return {
        "type": "object",
        "properties": {
            op: with_description(taken[operator.takes], operator.meaning.format(most=MAX_IN))
            for op, operator in operators.items()
        },
        "additionalProperties": False,
        "minProperties": 1,
        "description": f"Comparisons of {scalar.name}; all of them must hold.",
    }


def _where(resource: ResourceView) -> Schema:
    own = ref(resource.resource.name + "Where")
    several = {"type": "array", "items": own}
    properties = {
        name: with_deprecation(ref(filter_schema_name(field.field.scalar)), field.field.deprecated)
        for name, field in resource.searchable.items()
    }
    for name, way in resource.ways.items():
        target = ref(way.relation.target + ("Where" if way.relation.kind == "one" else "ListWhere"))
        properties[name] = with_deprecation(target, way.relation.deprecated)
    properties |= {"and": several, "or": several, "not": own}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list_where(name: str) -> Schema:
    properties = {word: ref(name + "Where") for word in ("some", "none", "every")}
    properties["count"] = ref(filter_schema_name(INT))
    return {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1}
