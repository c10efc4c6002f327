"""OpenAPI operations that change many rows by a filter, as one role can use them.

PATCH  /orders?status=paid&most=200     updateOrders
DELETE /orders?status=paid&most=10      deleteOrders
"""

from __future__ import annotations

from diptych.api.openapi.components import JsonObject, answer, closed, errors, list_parameters, operation, refer
from diptych.api.openapi.schemas import Schema, ref, scalar_name
from diptych.model.naming import spaced_words, upper_first
from diptych.model.resource_view import ResourceView
from diptych.model.view import View

_ERRORS = (400, 401, 403, 406, 409, 413, 415, 422, 429, 431, 503, 504)
_LIST = ("first", "last", "after", "before", "offset", "count", "sort")
_TEXT = (
    "A filter and `most` are required. If more rows match, none is changed (409). All of them are changed, or none. "
    "Relations are not written."
)


def bulk_changes(resource: ResourceView, view: View, max_bulk: int) -> JsonObject:
    """The changes of many rows of a collection, by method."""
    many = spaced_words(resource.resource.many)
    operations: JsonObject = {}
    if resource.may("update"):
        content = {"application/json": {"schema": ref(resource.resource.name + "Patch")}}
        patch = _operation("update", f"Update {many} by a filter", resource, max_bulk)
        if view.signature.signed_in:
            patch["parameters"].append(refer("parameters", "Idempotency-Key"))
        operations["patch"] = {**patch, "requestBody": {"required": True, "content": content}}
    if resource.may("delete"):
        operations["delete"] = _operation("delete", f"Delete {many} by a filter", resource, max_bulk)
    return operations


def _operation(verb: str, summary: str, resource: ResourceView, max_bulk: int) -> JsonObject:
    definition = resource.resource
    left_out = {refer("parameters", name)["$ref"] for name in _LIST}
    left_out.add(refer("parameters", f"{definition.name}.sort")["$ref"])
    if verb == "update" and (taken := resource.searchable.get("body")):  # generators give the content this name
        left_out.add(refer("parameters", f"body-{scalar_name(taken.field.scalar)}")["$ref"])
    filters = [
        parameter for parameter in list_parameters(resource, filters=True) if parameter.get("$ref") not in left_out
    ]
    most: Schema = {"type": "integer", "minimum": 1, "maximum": max_bulk}
    own: list[JsonObject] = [
        {"name": "most", "in": "query", "required": True, "description": "How many may match.", "schema": most},
        {"name": "dryRun", "in": "query", "description": "Is it undone?", "schema": {"type": "boolean"}},
    ]
    counts: dict[str, Schema] = {
        "matched": {"type": "integer", "minimum": 0, "description": "The rows that match and may be changed."},
        "changed": {"type": "integer", "minimum": 0, "description": "Those that were changed; 0 in a dry run."},
        "dryRun": {"type": "boolean"},
        "data": {
            "type": "array",
            "items": ref(definition.name),
            "description": "The first of them, up to a page, if `fields` are given.",
        },
    }
    done = answer("What was done.", closed(counts, "data"))
    return {
        "operationId": verb + upper_first(definition.many),
        **operation(summary, definition.name, [*filters, *own], _TEXT),
        "responses": {"200": done, **errors(_ERRORS)},
    }
