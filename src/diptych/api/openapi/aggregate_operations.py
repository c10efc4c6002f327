"""OpenAPI of numbers of rows: `/{collection}/summary` and `/{collection}/groups`, each once for all collections.

Two operations for each resource would make the document of a large model a fifth larger. What can be measured
differs by resource and type, so keys and measures are named in words, and their schemas are shared by all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.api.openapi.components import SERVICE, JsonObject, answer, errors, operation, page_of, refer
from diptych.api.openapi.schemas import Schema, ref, with_deprecated_values
from diptych.model.deprecation import Deprecation
from diptych.model.view import View
from diptych.model.viewer_object import VIEWER

_ERRORS = (400, 401, 403, 404, 406, 429, 431, 503, 504)
_MEASURES = "`sum`, `avg`, `min`, `max` and `distinct`, as far as its type has them"
_FILTERS = (
    "It takes all filters of the collection, as its list does: `field=value`, `field[operator]=value`, `where`, "
    "`search`."
)
_PATHS = "/{collection}/summary", "/{collection}/groups"


def aggregate_paths(view: View) -> dict[str, JsonObject]:
    """The path items, for the collections that the role can read."""
    served = [each.resource for name, each in view.resources.items() if name != VIEWER]
    collections = {field.path: field.deprecated for field in served}
    if not collections:
        return {}
    summary = operation("Get numbers of the rows of a collection", SERVICE, [_query("fields", _SUMMARY)], _FILTERS)
    listed = [_query(name, schema) for name, schema in _GROUPS.items()]
    paging = [refer("parameters", name) for name in ("first", "last", "after", "before", "offset", "count")]
    groups = operation("List groups of the rows of a collection by page", SERVICE, [*listed, *paging], _FILTERS)
    of_groups = answer("A page of groups.", page_of(_GROUP, "PageInfo"))
    return {
        path: {
            "parameters": [_collection(collections)],
            "get": {
                "operationId": name,
                **part,
                "responses": {"200": ok, **errors(_ERRORS)},
                "security": [{"bearer": []}, {"oauth2": ["read"]}, {}],
            },
        }
        for path, name, part, ok in (
            (_PATHS[0], "getSummary", summary, answer("The numbers.", ref(_NUMBERS))),
            (_PATHS[1], "listGroups", groups, of_groups),
        )
    }


def aggregate_schemas() -> dict[str, Schema]:
    """The schemas that the numbers of all resources share."""
    value: Schema = {"type": ["string", "number", "boolean", "null"]}
    measures = {"type": "object", "additionalProperties": value, "description": f"Measures of a field: {_MEASURES}."}
    count: Schema = {"type": "integer", "minimum": 0, "description": "How many rows there are."}
    inner = {"type": "object", "additionalProperties": {"anyOf": [value, ref(_MEASURED)]}}
    return {
        _MEASURED: measures,
        _SEVERAL: {**inner, "description": "Measures of a field, or of several, by their names."},
        _VALUE: {"anyOf": [value, ref(_SEVERAL)], "description": "A key of the group, or measures."},
        # as in rows, what is there by default is required; TypeScript refuses an optional member beside typed others
        _NUMBERS: {
            "type": "object",
            "properties": {"count": count},
            "required": ["count"],
            "additionalProperties": {"anyOf": [{"type": "integer"}, ref(_MEASURED)]},
        },
        _GROUP: {
            "type": "object",
            "properties": {"count": count},
            "required": ["count"],
            "additionalProperties": ref(_VALUE),
            "description": "Rows that share the keys of `by`: these, and measures.",
        },
    }


def _collection(paths: Mapping[str, Deprecation | None]) -> JsonObject:
    old = {path: deprecation for path, deprecation in paths.items() if deprecation is not None}
    schema = with_deprecated_values({"type": "string", "enum": list(paths)}, old)
    return {"name": "collection", "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: dict[str, Any]) -> JsonObject:
    required = {"required": True} if name == "by" else {}
    text = {"description": schema["description"]}
    rest = {key: part for key, part in schema.items() if key != "description"}
    return {"name": name, "in": "query", **required, **text, "schema": {"type": "string", "minLength": 1, **rest}}


# names with a hyphen are those of no resource
_MEASURED, _SEVERAL, _VALUE = "Field-Measures", "Group-Measures", "Group-Value"
_NUMBERS, _GROUP = "Row-Summary", "Row-Group"
_SUMMARY = {
    "format": "summary-fields",
    "description": f"`count`, and fields with {_MEASURES}: `count,total(sum,avg)`. The default is `count`.",
}
_GROUPS: dict[str, dict[str, Any]] = {
    "by": {
        "format": "group-keys",
        "description": "The keys, at most 5: fields, or the time of one as `createdAt:month` (year, month, day, hour).",
        "example": "createdAt:month",
    },
    "fields": {
        "format": "group-fields",
        "description": "Keys (`status`, or `authorId(value)` of ids and numbers), `count`, measures of ids and "
        "numbers (`total(sum)`), and of all fields (`summary(createdAt(max))`). The default is all keys and `count`.",
    },
    "sort": {
        "format": "group-sort",
        "description": "Up to 5 keys or numbers; `-` is descending: `-total.sum,status`.",
    },
    "having": {
        "format": "group-filter",
        "description": 'A condition on the groups as JSON: `{"count": {"gte": 2}}`.',
    },
}
