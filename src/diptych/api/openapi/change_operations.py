"""OpenAPI operations and schemas of the change feed, as one role can follow it.

GET /orders/changes     followOrderChanges     a page of the log, or a stream
"""

from __future__ import annotations

from diptych.api.ask_builder import DEFAULT_SIZE
from diptych.api.openapi.components import JsonObject, answer, closed, operation, page_of, refer
from diptych.api.openapi.schemas import Schema, extending, nullable, ref, value_schema, with_description
from diptych.api.sse import STREAM
from diptych.ask.slots import CHANGE_KIND
from diptych.model.naming import spaced_words
from diptych.model.resource_view import ResourceView
from diptych.model.scalars import DATETIME

KINDS = "kinds"
"""The one parameter of changes that lists do not have: a field of this name is filtered by `where`."""
_PAGE, _EVENT = "Change-Page", "Change-Event"
"""Names with a hyphen cannot be those of a model."""
_CURSOR: Schema = {"type": "string", "format": "change-cursor"}


def following(resource: ResourceView) -> JsonObject:
    """GET on the changes of a collection, without its errors."""
    name = resource.resource.name
    common = (f"changes.{parameter}" for parameter in ("first", KINDS, "after"))
    parameters = [
        refer("parameters", parameter_name) for parameter_name in ("fields", *common, f"{name}.where", "Last-Event-ID")
    ]
    get = operation(f"Follow {spaced_words(resource.resource.many)}", name, parameters)
    ok = answer("Changes.", page_of(name + "Change", _PAGE))
    ok["content"][STREAM] = {"schema": {"type": "string"}}
    return {**get, "responses": {"200": ok}}


def build_changes() -> dict[str, Schema]:
    """The schemas that the changes of all resources share."""
    kinds = with_description({"type": "string", "enum": list(CHANGE_KIND.choices)}, CHANGE_KIND.description)
    return {CHANGE_KIND.name: kinds, _PAGE: _page(), _EVENT: _event()}


def add_changes(schemas: dict[str, Schema], resource: ResourceView) -> None:
    """Add the schema of a change of one resource."""
    schemas[resource.resource.name + "Change"] = _change(resource)


def following_parameters(max_page: int) -> dict[str, JsonObject]:
    """The parameters that the changes of all resources share."""
    size = {"type": "integer", "minimum": 1, "maximum": max_page}
    kinds = {"type": "array", "items": ref(CHANGE_KIND.name), "minItems": 1}
    return {
        "changes.first": _query(
            "first", f"The size of a page of the log, {DEFAULT_SIZE} if not given; not for streams.", {"schema": size}
        ),
        "changes.kinds": _query(
            KINDS, "Only changes of these kinds.", {"style": "form", "explode": False, "schema": kinds}
        ),
        "changes.after": _query("after", "Start after this change cursor.", {"schema": _CURSOR}),
    }


def _query(name: str, description: str, more: JsonObject) -> JsonObject:
    return {"name": name, "in": "query", "description": description, **more}


def _page() -> Schema:
    return closed(
        {
            "next": with_description(nullable(_CURSOR), "For `after`, if there are more changes already; else null."),
            "last": with_description(_CURSOR, "For `after`, now or later: every change up to here has been returned."),
        }
    )


def _event() -> Schema:
    """What the changes of all resources have."""
    properties: dict[str, Schema] = {
        "eventId": {"type": "string", "description": "The id of this change, the same wherever it is reported."},
        "cursor": with_description(_CURSOR, "Resumes after this change."),
        "kind": ref(CHANGE_KIND.name),
        "rowId": {"type": "string", "description": "The id of the row."},
        "at": with_description(value_schema(DATETIME), "When it was changed."),
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _change(resource: ResourceView) -> Schema:
    definition = resource.resource
    row = {definition.one: nullable(ref(definition.name))}
    return extending(ref(_EVENT), {"type": "object", "properties": row, "required": list(row)})
