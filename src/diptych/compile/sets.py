"""The operators of lists → SQL: is an element, some, or all of these in a list, and is it empty?

A column that holds no array, which others may have written, has no elements and is not empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.compile.fragment import Fragment, sql

_ELEMENTS = "(SELECT _i.value FROM json_each({0}) _i)"
_SQLITE = {
    "has": f"{{1}} IN {_ELEMENTS}",
    "hasAny": f"EXISTS (SELECT 1 FROM json_each({{1}}) _w WHERE _w.value IN {_ELEMENTS})",
    "hasAll": f"NOT EXISTS (SELECT 1 FROM json_each({{1}}) _w WHERE (_w.value IN {_ELEMENTS}) IS NOT TRUE)",
    "isEmpty": "json_array_length({0}) = 0",
}
_POSTGRES = {
    "has": "{0} @> {1}",
    "hasAny": "EXISTS (SELECT 1 FROM unnest({1}) AS _w(value) WHERE {0} @> _w.value)",
    "hasAll": "NOT EXISTS (SELECT 1 FROM unnest({1}) AS _w(value) WHERE ({0} @> _w.value) IS NOT TRUE)",
    "isEmpty": "jsonb_array_length({0}) = 0",
}
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        op: f"CASE WHEN json_valid({{0}}) THEN (CASE json_type({{0}}) WHEN 'array' THEN {text} END) END"
        for op, text in _SQLITE.items()
    },
    "postgres": {op: f"CASE jsonb_typeof({{0}}) WHEN 'array' THEN {text} END" for op, text in _POSTGRES.items()},
}


def membership(op: str, of: Fragment, other: Fragment, database: str) -> Fragment:
    """A condition on a list; `other` is an element, or a list of elements."""
    return sql(_TEMPLATES[database][op], of, other)


def as_element(value: Fragment, database: str) -> Fragment:
    """A text of the row or the viewer as an element."""
    return sql("to_jsonb(({})::text)", value) if database == "postgres" else value
