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

from diptych.api.descriptions import describe
from diptych.api.openapi.examples import example_of
from diptych.model.defs import SERVER_FIELDS, ArgumentDef, FieldDef, RelationDef
from diptych.model.scalars import BIGINT, DATE, DATETIME, FLOAT, ID, INT, INTEGER_ID, STRING, Scalar
from diptych.model.view import ResourceView

Schema = dict[str, Any]

MAX_IN = 250
"""The most items of an `in` list."""
_DECIMAL = re.compile(r"Decimal\((\d+),(\d+)\)")
_INNER_YEAR = "(000[2-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])"
_CLOCK = r"[Tt].{6}[0-5][0-9](\.[0-9]{1,6})?"
_MOMENT = f"^(0{{0,3}}[1-9].*{_CLOCK}[Zz]|{_INNER_YEAR}-.*{_CLOCK}[+-].{{5}})$"
"""In addition to the format: at most six fraction digits, and a year from 1 to 9999 in UTC."""


def ref(name: str) -> Schema:
    """A reference to a schema among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def add_schemas(schemas: dict[str, Schema], resource: ResourceView, row: str = "Row") -> None:
    """Add the schemas of one resource by name; those of its scalars may be there already. `row` names the schema of
    what every row has."""
    name = resource.resource.name
    schemas[name] = _object(schemas, resource, row)
    schemas[name + "Where"] = _where(resource)
    for way in resource.relations.values():
        target = way.relation.target
        if way.relation.kind != "one" and target + "ListWhere" not in schemas:
            schemas[target + "ListWhere"] = _list_where(target)
    for field in resource.fields.values():
        scalar = field.field.scalar
        if field.field.python is None and filter_name(scalar) not in schemas:
            schemas[filter_name(scalar)] = _filter(scalar)
        if scalar.choices and scalar.name not in schemas:
            schemas[scalar.name] = enumerated(scalar)


def enumerated(scalar: Scalar) -> Schema:
    """The schema of an enum."""
    return described({**scalar.openapi, "example": scalar.choices[0]}, scalar.description)


def described(schema: Schema, *sentences: str) -> Schema:
    """A schema with a description of all non-empty sentences."""
    text = " ".join(filter(None, sentences))
    return {**schema, "description": text} if text else schema


def nullable(schema: Schema) -> Schema:
    """The schema of a value that may also be null."""
    if not schema:  # anything, and so null too
        return schema
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
    return described(extending(base, schema), resource.resource.description)


def extending(base: Schema, schema: Schema) -> Schema:
    """Both schemas at once. (Generators that know only the usual form of `allOf` ignore what stands beside it.)"""
    return {"allOf": [base, schema]} if base else schema


def _row(common: dict[str, Schema]) -> Schema:
    text = "What every row has; the server sets it."
    return {"type": "object", "properties": common, "required": list(common), "description": text}


def value_schema(scalar: Scalar) -> Schema:
    """The schema of a value in a response. (The format of an integer says its bounds.)"""
    return {key: part for key, part in scalar.openapi.items() if key not in ("minimum", "maximum")}


def response_schema(field: FieldDef) -> Schema:
    """The schema of a field in a response."""
    schema = ref(field.scalar.name) if field.scalar.choices else value_schema(field.scalar)
    schema = nullable(schema) if field.nullable or field.hideable else schema
    schema = schema if field.stored else {**schema, "readOnly": True}
    return with_example(schema if field.relation else described(schema, describe(field)), field)


def with_example(schema: Schema, field: FieldDef | ArgumentDef) -> Schema:
    """A schema with a valid value, unless it has one as its default, or refers to a schema that has one."""
    said = isinstance(field, FieldDef) and field.example is not None
    if "default" in schema or (field.scalar.choices and not said):
        return schema
    value = example_of(field)
    return schema if value is None else {**schema, "example": value}


def _related(relation: RelationDef) -> Schema:
    """The schema of a relation. Examples of rows have none, like responses without `fields`: what tools make up would
    not end."""
    schema = ref(relation.target)
    if relation.kind != "one":
        schema = {"type": "array", "items": schema, "example": []}
    elif relation.nullable or relation.hideable:
        schema = {**nullable(schema), "example": None}
    return described(schema, relation.description)


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
    either: Schema = {**text_schema(scalar), "type": ["string", "integer"]}
    if scalar in (ID, INTEGER_ID):
        return either
    if scalar is BIGINT:
        return {**either, "minimum": -(2**63), "maximum": 2**63 - 1}
    if digits := _digits(scalar):
        most = 10 ** digits[0] - 1
        return {**either, "minimum": -most, "maximum": most}
    return text_schema(scalar)


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
    STRING: {"type": "string", "pattern": r"^[^\u0000]*$"},
    INT: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    BIGINT: {"type": "string", "pattern": _integer_pattern(64)},
    FLOAT: {"type": "number", "minimum": -sys.float_info.max, "maximum": sys.float_info.max},
    DATE: {"type": "string", "format": "date", "pattern": "^0{0,3}[1-9]"},
    DATETIME: {"type": "string", "format": "date-time", "pattern": _MOMENT},
}
"""The schemas of scalars in filters, where they differ from those of responses."""


def scalar_name(scalar: Scalar) -> str:
    """The name of a scalar among the components: `Decimal_12_2`."""
    return scalar.name if scalar.name.isalnum() else re.sub(r"\W+", "_", scalar.name).strip("_")


def filter_name(scalar: Scalar) -> str:
    """The schema of comparisons in JSON: `StringFilter`."""
    return scalar_name(scalar) + "Filter"


def _filter(scalar: Scalar) -> Schema:
    value = json_schema(scalar)
    several = {"anyOf": [value, {"type": "array", "items": value, "maxItems": MAX_IN}]}
    special: dict[str, Schema] = {"in": several, "isNull": {"type": "boolean"}}
    return {
        "type": "object",
        "properties": {op: described(special.get(op, value), _MEANING[op]) for op in scalar.ops},
        "additionalProperties": False,
        "minProperties": 1,
        "description": f"Comparisons of {scalar.name}; all of them must hold.",
    }


_MEANING = {
    "eq": "Equals this.",
    "ne": "Does not equal this; null does not.",
    "lt": "Is less than this.",
    "lte": "Is at most this.",
    "gt": "Is greater than this.",
    "gte": "Is at least this.",
    "in": f"Is one of these, up to {MAX_IN}.",
    "contains": "Contains this text, in the same case.",
    "startsWith": "Starts with this text, in the same case.",
    "isNull": "Is it null?",
}


def _where(resource: ResourceView) -> Schema:
    own = ref(resource.resource.name + "Where")
    several = {"type": "array", "items": own}
    properties = {name: ref(filter_name(field.field.scalar)) for name, field in resource.searchable.items()}
    for name, way in resource.relations.items():
        properties[name] = ref(way.relation.target + ("Where" if way.relation.kind == "one" else "ListWhere"))
    properties |= {"and": several, "or": several, "not": own}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list_where(name: str) -> Schema:
    properties = {word: ref(name + "Where") for word in ("some", "none", "every")}
    return {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1}
