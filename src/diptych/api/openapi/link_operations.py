"""OpenAPI operations on the links of a many-to-many relation.

PUT    /posts/{id}/tags            setTagsOfPost           204
PUT    /posts/{id}/tags/{other}    connectTagsOfPost       201, or 204 if it was connected
DELETE /posts/{id}/tags/{other}    disconnectTagsOfPost    204
"""

from __future__ import annotations

from diptych.api.openapi.components import JsonObject, errors, operation
from diptych.api.openapi.input_schemas import link_schema
from diptych.api.openapi.nest_schemas import row_id_type
from diptych.api.openapi.schemas import ref
from diptych.ask.measures import Limits
from diptych.model.defs import RelationDef
from diptych.model.naming import spaced_words, upper_first, with_article
from diptych.model.nesting import link_fields, link_type, nests_of
from diptych.model.resource_view import ResourceView
from diptych.model.view import View

OTHER: JsonObject = {"name": "other", "in": "path", "required": True, "schema": {"type": "string"}}
_ERRORS = (400, 401, 403, 404, 409, 413, 415, 422, 429, 431, 503, 504)
_DELETE_ERRORS = (400, 401, 404, 409, 429, 431, 503, 504)


def set_operation(resource: ResourceView, relation: RelationDef, view: View) -> JsonObject:
    """The replacement of all links of a row, if the role may connect and disconnect."""
    nest = nests_of(resource, view, "update").get(relation.name)
    if nest is None or "set" not in nest.words:
        return {}
    name = resource.resource.name
    kind = link_type(name, relation) if link_fields(nest, view) else row_id_type(view.resources[relation.target])
    put = operation(f"Set the {spaced_words(relation.name)} of {with_article(name)}", name, [])
    put["description"] = (
        f"Connects those that the body names, and disconnects all others that you see, {Limits().writes} at most. "
        "What is connected already keeps the fields of its link."
    )
    items = {"type": "array", "items": ref(kind), "maxItems": Limits().writes - 1}
    body = {"required": True, "content": {"application/json": {"schema": items}}}
    done = {"204": {"description": "These are connected now, and no others."}}
    responses = {**done, **errors((*_ERRORS, 412))}
    noun = f"{upper_first(relation.name)}Of{name}"
    return {"put": {"operationId": "set" + noun, **put, "requestBody": body, "responses": responses}}


def link_operations(resource: ResourceView, relation: RelationDef, view: View) -> JsonObject:
    """What the role may do to the link of two rows, by method."""
    nest = nests_of(resource, view, "update").get(relation.name)
    methods: JsonObject = {}
    if nest is None or not nest.by:
        return methods
    name, noun = resource.resource.name, f"{upper_first(relation.name)}Of{resource.resource.name}"
    one = with_article(relation.target)
    if "connect" in nest.words:
        put = operation(f"Connect {one} to {with_article(name)}", name, [])
        body: JsonObject = {}
        if fields := link_fields(nest, view):
            schema = link_schema(view.resources[relation.link], list(fields))
            needed = any(taken.required for taken in fields.values())
            body = {"requestBody": {"required": needed, "content": {"application/json": {"schema": schema}}}}
        done = {"201": {"description": "Connected."}, "204": {"description": "It was connected before."}}
        methods["put"] = {"operationId": "connect" + noun, **put, **body, "responses": {**done, **errors(_ERRORS)}}
    if "disconnect" in nest.words:
        delete = operation(f"Disconnect {one} from {with_article(name)}", name, [])
        text = f"The {spaced_words(relation.target)} itself is not deleted."
        done = {"204": {"description": "Disconnected. " + text}}
        methods["delete"] = {
            "operationId": "disconnect" + noun,
            **delete,
            "responses": {**done, **errors(_DELETE_ERRORS)},
        }
    return methods
