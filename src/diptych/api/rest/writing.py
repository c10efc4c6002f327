"""View → the operations of an OpenAPI document that change something, as one role can use them.

    POST   /orders          createOrder      one or many: an object in and out, or an array in and out
    PUT    /orders/{id}     replaceOrder     takes back what GET gave
    PATCH  /orders/{id}     updateOrder      a merge patch or a JSON Patch
    DELETE /orders/{id}     deleteOrder

An operation that the role may never use is not there. What was created leads on to its own operations, by links.
"""

from __future__ import annotations

from diptych.api.rest.components import CACHED, COSTED, Part, answer, errors, headers, operation, refer
from diptych.api.rest.inputs import MAX_CREATED
from diptych.api.rest.schemas import Schema, ref
from diptych.model.naming import upper_first
from diptych.model.view import ResourceView, View

_BODY_ERRORS = (400, 401, 403, 406, 409, 413, 415, 422, 429, 431, 503, 504)
_DELETE_ERRORS = (400, 401, 404, 406, 409, 412, 429, 431, 503, 504)
_REPLAYED = "Idempotency-Replayed"


def collection_changes(each: ResourceView, view: View) -> Part:
    """What changes a collection, by its method."""
    return {"post": _create(each, view)} if each.may("create") else {}


def member_changes(each: ResourceView, view: View, patch: str) -> Part:
    """What changes one row, by its method; `patch` names the schema of a JSON Patch."""
    found: Part = {}
    if each.may("update"):
        found = {"put": _replace(each), "patch": _update(each, view, patch)}
    return {**found, "delete": _delete(each)} if each.may("delete") else found


def _create(each: ResourceView, view: View) -> Part:
    found = each.resource
    one, new = ref(found.name), ref(found.name + "Create")
    several: Schema = {"type": "array", "items": new, "minItems": 1, "maxItems": MAX_CREATED}
    told = f"An array creates up to {MAX_CREATED}, all of them or none, and answers with an array."
    given = _parameters(each, "Prefer-Cost", *_keys(view))
    post = operation(f"Create one {found.name}, or many.", found.name, given, told)
    schema: Schema = {"anyOf": [one, {"type": "array", "items": one}]}
    made = answer(f"The new {found.name}.", schema, "Location", "New-ETag", *CACHED[1:], *COSTED, *_replayed(view))
    made["links"] = _links(each, view)
    return {
        "operationId": "create" + found.name,
        **post,
        "requestBody": _body({"application/json": {"anyOf": [new, several]}}),
        "responses": {"201": made, **errors(_BODY_ERRORS)},
    }


def _replace(each: ResourceView) -> Part:
    found = each.resource
    told = "Takes back what GET gave. What is left out becomes its default or null."
    put = operation(f"Replace all of one {found.name}.", found.name, _parameters(each, "If-Match", "Prefer-Cost"), told)
    return {
        "operationId": "replace" + found.name,
        **put,
        "requestBody": _body({"application/json": ref(found.name + "Replace")}),
        "responses": {"200": refer("responses", found.one), **errors((*_BODY_ERRORS, 404, 412))},
    }


def _update(each: ResourceView, view: View, patch: str) -> Part:
    found = each.resource
    told = "What is not named stays. A JSON Patch is of the object as the caller sees it."
    given = _parameters(each, "If-Match", "Prefer-Cost", *_keys(view))
    change = operation(f"Change one {found.name}.", found.name, given, told)
    merge = ref(found.name + "Patch")
    kinds = {
        "application/json": merge,
        "application/merge-patch+json": merge,
        "application/json-patch+json": ref(patch),
    }
    ok = answer(f"The {found.name} as it is now.", ref(found.name), *CACHED, *COSTED, *_replayed(view))
    return {
        "operationId": "update" + found.name,
        **change,
        "requestBody": _body(kinds),
        "responses": {"200": ok, **errors((*_BODY_ERRORS, 404, 412))},
    }


def _delete(each: ResourceView) -> Part:
    found = each.resource
    delete = operation(f"Delete one {found.name}.", found.name, _parameters(each, "If-Match", "Prefer"))
    ok = answer(f"The {found.name} as it was.", ref(found.name), *CACHED[1:], "Cost", "Preference-Applied")
    gone = {"description": "It is deleted.", "headers": headers(*CACHED[1:], *COSTED)}
    return {
        "operationId": "delete" + found.name,
        **delete,
        "responses": {"200": ok, "204": gone, **errors(_DELETE_ERRORS)},
    }


def _parameters(each: ResourceView, *names: str) -> list[Part]:
    return [refer("parameters", name) for name in (f"{each.resource.name}.fields", *names)]


def _keys(view: View) -> tuple[str, ...]:
    """A key belongs to whoever sends it, and so needs a token."""
    return ("Idempotency-Key",) if view.signature.signed_in else ()


def _replayed(view: View) -> tuple[str, ...]:
    return (_REPLAYED,) if view.signature.signed_in else ()


def _body(kinds: dict[str, Schema]) -> Part:
    return {"required": True, "content": {kind: {"schema": schema} for kind, schema in kinds.items()}}


def _links(each: ResourceView, view: View) -> Part:
    """Where one goes from a new row: to what can be done with it, and to what belongs to it."""
    name = each.resource.name
    ids = ["get" + name]
    ids += [verb + name for verb in ("replace", "update", "delete") if each.may(verb)]
    ids += [f"list{upper_first(to)}Of{name}" for to in each.resource.collections.values() if to in each.relations]
    return {
        each_id: {"operationId": each_id, "parameters": {"id": "$response.body#/id"}} for each_id in ids
    }
