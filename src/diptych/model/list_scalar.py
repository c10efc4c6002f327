"""Lists of scalars as a type: `tags: list[str]` is a JSON array in one column.

The elements are stored in the form that they have on the wire, so the database writes the column as it is. A filter
compares elements in that form: `element_of(scalar)` binds one of them.

    list_of(STRING)       "[String]"       ["a", "b"]       has, hasAny, hasAll, isEmpty, isNull

PostgreSQL has it as `jsonb`, not as an array: one representation for all elements on both databases, also for decimals
and times in their exact form; `@>` has an index (GIN); and it has an equality, which `json` lacks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from diptych.model.operators import SETS
from diptych.model.scalar_values import to_json
from diptych.model.scalars import BOOLEAN, FLOAT, INT, JSON, Scalar, encode_json


class ElementError(ValueError):
    """A fault inside a value, and where: `(2,)` is the third element."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def parse_list(parse: Callable[[Any], Any], value: Any) -> list[Any]:
    """A list of canonical values. The first element that is not valid is reported."""
    if not isinstance(value, list):
        raise ValueError("expected a list")
    parsed: list[Any] = []
    for index, element in enumerate(value):
        try:
            one = None if element is None else parse(element)
        except ElementError as error:
            raise ElementError((index, *error.path), str(error)) from None
        except ValueError as error:
            raise ElementError((index,), str(error)) from None
        if one is None:
            raise ElementError((index,), "expected a value, and not null" if element is None else "expected an id")
        parsed.append(one)
    return parsed


_KINDS = {INT: ("integer",), FLOAT: ("integer", "real"), BOOLEAN: ("true", "false")}
"""The types of JSON elements in SQLite; of others, text."""
_POSTGRES_KINDS = {INT: "number", FLOAT: "number", BOOLEAN: "boolean"}


_FLOATS = (
    "CASE jsonb_typeof({0}) WHEN 'array' THEN (SELECT '[' || coalesce(string_agg(_o.value::text::float8::text, ',' "
    "ORDER BY _o.i), '') || ']' FROM jsonb_array_elements({0}) WITH ORDINALITY AS _o(value, i)) END"
)
"""Floats as PostgreSQL writes them elsewhere: numbers of jsonb have no exponent."""


@functools.cache
def list_of(item: Scalar) -> Scalar:
    """The type of lists of a scalar."""

    def stored(value: Any) -> str:
        return encode_json(value if isinstance(value, str) else [to_json(item, element) for element in value])

    def parse_text(text: str) -> list[Any]:
        return parse_list(item.parse_text, text.split(",") if text else [])

    kinds = ", ".join(f"'{kind}'" for kind in _KINDS.get(item, ("text",)))
    bad = f"_e.type NOT IN ({kinds})"
    foreign = f"jsonb_typeof(_e.value) <> '{_POSTGRES_KINDS.get(item, 'string')}'"
    if item.choices:
        known = ", ".join(f"'{choice}'" for choice in item.choices)  # names of GraphQL
        bad += f" OR _e.value NOT IN ({known})"
        foreign += f" OR (_e.value #>> '{{{{}}}}') NOT IN ({known})"
    if item is INT:
        bad += f" OR _e.value NOT BETWEEN {-(2**31)} AND {2**31 - 1}"
        whole = f"(_e.value)::numeric NOT BETWEEN {-(2**31)} AND {2**31 - 1} OR (_e.value)::numeric % 1 <> 0"
        foreign = f"CASE jsonb_typeof(_e.value) WHEN 'number' THEN {whole} ELSE true END"
    inside = f"NOT EXISTS (SELECT 1 FROM json_each({{0}}) _e WHERE {bad})"
    array = f"CASE json_type({{0}}) WHEN 'array' THEN {inside} END"
    elements = f"NOT EXISTS (SELECT 1 FROM jsonb_array_elements({{0}}) AS _e(value) WHERE {foreign})"
    return Scalar(
        f"[{item.name}]",
        list,
        MappingProxyType({"type": "array", "items": dict(item.openapi)}),
        functools.partial(parse_list, item.parse),
        parse_text,
        "TEXT",
        "jsonb",
        "text::jsonb",
        postgres_out=_FLOATS if item is FLOAT else "{}::text",
        sqlite_test=f"CASE WHEN {JSON.sqlite_test} THEN {array} END",
        postgres_test=f"CASE jsonb_typeof({{0}}) WHEN 'array' THEN {elements} END",
        ops=SETS,
        sortable=False,
        to_sqlite=stored,
        to_postgres=stored,
        description=f"A list of {item.name}.",
        items=item,
    )


@functools.cache
def element_of(item: Scalar) -> Scalar:
    """An element of a list as a filter binds it: in the form that it has on the wire."""

    def plain(value: Any) -> Any:
        return to_json(item, value)

    def encoded(value: Any) -> str:
        return encode_json(to_json(item, value))

    return replace(item, to_sqlite=plain, to_postgres=encoded, postgres_param="text::jsonb", is_text=False)
