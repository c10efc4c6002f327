"""The GraphQL type of each scalar: those of the specification, and those of Diptych with the parsers of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLScalarType,
    GraphQLString,
    ValueNode,
    value_from_ast_untyped,
)

from diptych.model.decimal_scalar import decimal
from diptych.model.scalars import BIGINT, DATE, DATETIME, DURATION, JSON, TIME, UUID, Scalar

_BUILT_IN: Mapping[str, GraphQLScalarType] = {
    "Int": GraphQLInt,
    "Float": GraphQLFloat,
    "String": GraphQLString,
    "Boolean": GraphQLBoolean,
    "ID": GraphQLID,
}


class _Unknown(dict[str, Any]):
    """Variables inside a literal, whose values are not known yet: each is taken as null."""

    def get(self, key: str, default: Any = None) -> Any:
        return None


_UNKNOWN = _Unknown(any=None)


def _custom(scalar: Scalar, name: str) -> GraphQLScalarType:
    def parse(value: Any) -> Any:
        scalar.parse(value)
        return value

    def literal(node: ValueNode) -> Any:
        return parse(value_from_ast_untyped(node, _UNKNOWN))

    return GraphQLScalarType(
        name, coerce_input_value=parse, coerce_input_literal=literal, description=scalar.description
    )


def _decimal(value: Any) -> Any:
    decimal(18, 0).parse(str(value).replace(".", "", 1)[:18] if isinstance(value, str) else value)
    return value


_CUSTOM: Mapping[str, GraphQLScalarType] = {
    **{scalar.name: _custom(scalar, scalar.name) for scalar in (BIGINT, DATE, DATETIME, TIME, DURATION, UUID, JSON)},
    "Decimal": GraphQLScalarType("Decimal", parse_value=_decimal, description=decimal(18, 2).description),
}
SCALAR_TYPES: Mapping[str, GraphQLScalarType] = {**_BUILT_IN, **_CUSTOM}
"""All of them, by name."""
