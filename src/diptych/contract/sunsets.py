"""What was announced: a part of the API that is gone was deprecated, and its sunset has passed.

The documents of the contract say so themselves: `@deprecated(reason: "… sunset 2026-12-31)")` in the schema, and
`deprecated` with `x-sunset`, or `x-deprecated-values`, in the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from graphql import GraphQLEnumType, GraphQLInputObjectType, GraphQLObjectType, GraphQLSchema
from msgspec.structs import replace

from diptych.contract.change import ContractChange

_PLACE = re.compile(r"(\w+)\.(\w+)(?:\((\w+):\))? was removed")
_SUNSET = re.compile(r"sunset (\d{4}-\d\d-\d\d)\)$")
_INPUT = re.compile(r"(\w+?)(Create|Replace|Patch|Under[A-Z]\w*)$")


def current_day() -> date:
    """The current day in UTC."""
    return datetime.now(UTC).date()


def announced(change: ContractChange, sunset: str | None) -> ContractChange:
    """The same change, as it was announced: harmless from its sunset on. None is not deprecated, "" has no sunset."""
    if sunset is None:
        return change
    if sunset and date.fromisoformat(sunset) <= current_day():
        return replace(change, breaking=False, announced=True)
    when = f"its sunset {sunset} has not come" if sunset else "it is deprecated without a sunset"
    return replace(change, sentence=f"{change.sentence}; {when}")


def sunset_of(node: Mapping[str, Any]) -> str | None:
    """The sunset of a part of an OpenAPI document; None if it is not deprecated."""
    return str(node.get("x-sunset", "")) if node.get("deprecated") else None


def sunset_of_value(schema: Mapping[str, Any], value: object) -> str | None:
    """The sunset of a value of a schema; None if it is not deprecated."""
    values = schema.get("x-deprecated-values", {})
    return (values[value] or "") if value in values else None


def sunset_of_field(schema: GraphQLSchema, description: str) -> str | None:
    """The sunset of what a change of a schema removed; None if it was not deprecated."""
    found = _PLACE.search(description)
    if found is None:
        return None
    owner, name, argument = found.groups()
    reason = _reason(schema, owner, name, argument)
    if reason is None and (base := _INPUT.fullmatch(owner)):  # what must be sent cannot be deprecated itself
        reason = _reason(schema, base[1], name, None)
    if reason is None:
        return None
    sunset = _SUNSET.search(reason)
    return sunset[1] if sunset else ""


def _reason(schema: GraphQLSchema, owner: str, name: str, argument: str | None) -> str | None:
    kind = schema.type_map.get(owner)
    part: Any = None
    if isinstance(kind, GraphQLEnumType):
        part = kind.values.get(name)
    elif isinstance(kind, GraphQLObjectType | GraphQLInputObjectType):
        part = kind.fields.get(name)
    if argument is not None and part is not None:
        part = part.args.get(argument)
    reason: str | None = None if part is None else part.deprecation_reason
    return reason
