"""The operation of `/viewer`, and the schema of a viewer."""

from __future__ import annotations

from diptych.api.openapi.components import JsonObject, answer, errors, operation
from diptych.api.openapi.schemas import Schema, nullable, ref, response_schema
from diptych.api.openapi.security import TOKEN
from diptych.model.view import View
from diptych.model.viewer_object import ROOT, TEXTS, VIEWER

_ERRORS = (400, 401, 406, 429, 431, 503, 504)

_FIELDS: JsonObject = {
    "name": "fields",
    "in": "query",
    "description": "The fields of the viewer: `roles,user(name)`. `*` is all plain fields, and the default.",
    "schema": {"type": "string", "format": "viewer-fields", "minLength": 1},
}


def viewer_schema(view: View) -> Schema:
    """The schema of a viewer."""
    viewer = view.resources[VIEWER]
    properties: dict[str, Schema] = {}
    for name, shown in viewer.fields.items():
        properties[name] = response_schema(shown.field)
        if shown.field.computed in TEXTS:
            texts: Schema = {"type": "array", "items": {"type": "string"}}
            properties[name] |= {**(nullable(texts) if shown.field.nullable else texts), "example": []}
    for name, way in viewer.relations.items():
        properties[name] = {**nullable(ref(way.relation.target)), "description": way.relation.description}
    schema: Schema = {"type": "object", "properties": properties, "required": list(viewer.fields)}
    return {**schema, "description": viewer.resource.description}


def viewer_path(view: View) -> dict[str, JsonObject]:
    """The path of the viewer; there is none for a role without a token."""
    if not view.resources[VIEWER].may("read"):
        return {}
    text = "Without `fields`, its plain fields; `fields=*,user(*)` also shows the row that the viewer is."
    get = operation("Get the viewer, who sends the request", VIEWER, [_FIELDS], text)
    ok = answer("The viewer.", ref(VIEWER))
    return {
        f"/{ROOT}": {
            "get": {"operationId": "getViewer", **get, "security": TOKEN, "responses": {"200": ok, **errors(_ERRORS)}}
        }
    }
