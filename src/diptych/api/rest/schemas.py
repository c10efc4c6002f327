"""View → JSON Schema: what answers hold and what filters take, for the resources that one role can read.

A value has three forms on the wire. An answer holds the one canonical form, `"12.50"`. A filter takes more, and
its two forms differ: a query parameter is text, `12.5`, and the tree of `where` is JSON, `"12.5"` or `12`. So a
scalar has three schemas, `answered`, `as_text` and `as_json`; each is exact, so that what fits it is accepted
and what does not is refused.

    Order           an object of an answer          OrderWhere        a filter of orders
    OrderStatus     an enum                         OrderListWhere    a filter of a to-many relation to them
                                                    StringFilter      the comparisons of one scalar
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from diptych.api.words import describe
from diptych.model.defs import FieldDef, RelationDef
from diptych.model.scalars import BIGINT, DATE, DATETIME, FLOAT, ID, INT, INTEGER_ID, STRING, Scalar
from diptych.model.view import ResourceView, View

Schema = dict[str, Any]

MAX_IN = 250
"""The most items of an `in` list."""
_DECIMAL = re.compile(r"Decimal\((\d+),(\d+)\)")
_INNER_YEAR = "(000[2-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])"
_CLOCK = r"[Tt].{6}[0-5][0-9](\.[0-9]{1,6})?"
_MOMENT = f"^(0{{0,3}}[1-9].*{_CLOCK}[Zz]|{_INNER_YEAR}-.*{_CLOCK}[+-].{{5}})$"
"""Beside the format: at most six fraction digits, and in UTC a year from 1 to 9999."""
_QUANTIFIERS = {"some": "At least one is such.", "none": "Not one is such.", "every": "Every one is such."}
_ALIASES = (
    "An answer holds the plain fields, or exactly what `fields` selects. What is selected under an alias stands "
    "under that name, which this schema cannot know: hence the additional properties."
)


def ref(name: str) -> Schema:
    """A reference to a schema among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def build_schemas(view: View) -> dict[str, Schema]:
    """Every schema of a view's resources, by its name."""
    found: dict[str, Schema] = {}
    for name, each in view.resources.items():
        found[name] = _object(each)
    for name, each in view.resources.items():
        found[name + "Where"] = _where(each)
    for name in dict.fromkeys(relation.target for relation in _relations(view) if relation.kind != "one"):
        found[name + "ListWhere"] = _list_where(name)
    for scalar in dict.fromkeys(field.scalar for field in _fields(view) if field.python is None):
        found[_filter_name(scalar)] = _filter(scalar)
    for scalar in dict.fromkeys(field.scalar for field in _fields(view)):
        if scalar.choices:
            found[scalar.name] = enumerated(scalar)
    return found


def enumerated(scalar: Scalar) -> Schema:
    """The schema of an enum."""
    return described(dict(scalar.openapi), scalar.description)


def _fields(view: View) -> Iterator[FieldDef]:
    return (field.field for each in view.resources.values() for field in each.fields.values())


def _relations(view: View) -> Iterator[RelationDef]:
    return (way.relation for each in view.resources.values() for way in each.relations.values())


def described(schema: Schema, *sentences: str) -> Schema:
    """A schema with a description of all sentences that are not empty."""
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


def _object(each: ResourceView) -> Schema:
    properties = {name: answered(field.field) for name, field in each.fields.items()}
    properties |= {name: _related(way.relation) for name, way in each.relations.items()}
    schema = {"type": "object", "properties": properties, "additionalProperties": True}
    return described(schema, each.resource.description, _ALIASES)


def answered(field: FieldDef) -> Schema:
    """The value of a field in an answer."""
    schema = ref(field.scalar.name) if field.scalar.choices else dict(field.scalar.openapi)
    schema = nullable(schema) if field.nullable or field.hideable else schema
    schema = schema if field.stored else {**schema, "readOnly": True}
    general = "" if field.description or field.scalar.choices else field.scalar.description
    return described(schema, general, describe(field))


def _related(relation: RelationDef) -> Schema:
    schema = ref(relation.target)
    if relation.kind != "one":
        schema = {"type": "array", "items": schema}
    elif relation.nullable or relation.hideable:
        schema = nullable(schema)
    return described(schema, relation.description, "Only if `fields` selects it.")


# what a filter takes


def as_text(scalar: Scalar) -> Schema:
    """What a query parameter takes. Any text is an id: an ill-formed one names nothing."""
    if scalar.choices:
        return ref(scalar.name)
    if digits := _digits(scalar):
        whole, scale = digits
        fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
        return {"type": "string", "pattern": rf"^-?{f'0*[0-9]{{1,{whole}}}' if whole else '0+'}{fraction}$"}
    return dict(_TEXTS.get(scalar, scalar.openapi))


def as_json(scalar: Scalar) -> Schema:
    """What `where` takes: the same, and JSON integers for ids and for numbers that travel as strings."""
    either: Schema = {**as_text(scalar), "type": ["string", "integer"]}
    if scalar in (ID, INTEGER_ID):
        return either
    if scalar is BIGINT:
        return {**either, "minimum": -(2**63), "maximum": 2**63 - 1}
    if digits := _digits(scalar):
        most = 10 ** digits[0] - 1
        return {**either, "minimum": -most, "maximum": most}
    return as_text(scalar)


def _digits(scalar: Scalar) -> tuple[int, int] | None:
    """How many digits a decimal has before and after the point."""
    if found := _DECIMAL.fullmatch(scalar.name):
        precision, scale = map(int, found.groups())
        return precision - scale, scale
    return None


def _bigint_pattern() -> str:
    """The integers of 64 bits: up to 18 digits, or 19 that are not above the largest."""
    most = str(2**63 - 1)
    below = (
        f"{most[:index]}[{int(index == 0)}-{int(digit) - 1}][0-9]{{{len(most) - index - 1}}}"
        for index, digit in enumerate(most)
        if int(digit) > int(index == 0)
    )
    return f"^(-?(0|[1-9][0-9]{{0,17}}|{'|'.join(below)}|{most})|-{2**63})$"


_TEXTS: Mapping[Scalar, Schema] = {
    ID: {"type": "string"},
    INTEGER_ID: {"type": "string"},
    STRING: {"type": "string", "pattern": r"^[^\u0000]*$"},
    INT: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    BIGINT: {"type": "string", "pattern": _bigint_pattern()},
    FLOAT: {"type": "number", "minimum": -sys.float_info.max, "maximum": sys.float_info.max},
    DATE: {"type": "string", "format": "date", "pattern": "^0{0,3}[1-9]"},
    DATETIME: {"type": "string", "format": "date-time", "pattern": _MOMENT},
}
"""What a filter takes, where that is not what an answer holds."""


def _filter_name(scalar: Scalar) -> str:
    """`StringFilter`, `Decimal_12_2Filter`."""
    return re.sub(r"\W+", "_", scalar.name).strip("_") + "Filter"


def _filter(scalar: Scalar) -> Schema:
    value = as_json(scalar)
    several = {"anyOf": [value, {"type": "array", "items": value, "maxItems": MAX_IN}]}
    special = {"in": several, "isNull": {"type": "boolean"}}
    return {
        "type": "object",
        "properties": {op: special.get(op, value) for op in scalar.ops},
        "additionalProperties": False,
        "minProperties": 1,
        "description": f"Comparisons of {scalar.name}; all that are given must hold.",
    }


def _where(each: ResourceView) -> Schema:
    own = ref(each.resource.name + "Where")
    several = {"anyOf": [own, {"type": "array", "items": own}]}
    properties = {name: ref(_filter_name(field.field.scalar)) for name, field in each.searchable.items()}
    for name, way in each.relations.items():
        properties[name] = ref(way.relation.target + ("Where" if way.relation.kind == "one" else "ListWhere"))
    properties["and"] = described(several, "All of these hold.")
    properties["or"] = described(several, "Any of these holds.")
    properties["not"] = described(own, "This does not hold.")
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return described(schema, f"A condition on {each.resource.name}: all that is given must hold.")


def _list_where(name: str) -> Schema:
    inner = ref(name + "Where")
    return {
        "type": "object",
        "properties": {word: described(inner, text) for word, text in _QUANTIFIERS.items()},
        "additionalProperties": False,
        "minProperties": 1,
        "description": f"A condition on many {name}.",
    }
