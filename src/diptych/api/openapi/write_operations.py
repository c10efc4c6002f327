"""OpenAPI operations that write, as one role can use them.

    POST   /orders          createOrder      one row; with `by`, an upsert
    POST   /orders/batch    createOrders     several rows: all of them or none
    PUT    /orders/{id}     replaceOrder     accepts what GET returned
    PATCH  /orders/{id}     updateOrder      a merge patch; or a JSON Patch, in words
    DELETE /orders/{id}     deleteOrder
    POST   /orders/{id}/restore  restoreOrder   where deleted rows can be restored

An operation that the role may never use is left out. The response to a create links to the operations of the new row.
"""

from __future__ import annotations

from diptych.api.openapi.components import JsonObject, answer, errors, only_deleted, operation, refer
from diptych.api.openapi.schemas import Schema, ref, with_deprecated_values
from diptych.api.rest.translate import MAX_CREATED
from diptych.model.defs import ResourceDef
from diptych.model.naming import spaced_words, upper_first, with_article
from diptych.model.nesting import nests_of
from diptych.model.resource_view import ResourceView
from diptych.model.scalars import ID
from diptych.model.view import View

_BODY_ERRORS = (400, 401, 403, 406, 409, 413, 415, 422, 429, 431, 503, 504)
_DELETE_ERRORS = (400, 401, 404, 406, 409, 412, 429, 431, 503, 504)
DELETED = "Deleted"
"""The response to a DELETE without a content."""
_REPLAYED = "Idempotency-Replayed"
_IF_NONE_MATCH: JsonObject = {
    "name": "If-None-Match",
    "in": "header",
    "description": "`*` creates the row under the UUID in the path: 412 if there is one.",
    "schema": {"type": "string"},
}
_CANCEL_ERRORS = (400, 401, 404, 409, 429, 431, 503, 504)
_BATCH = "For several at once, see `batch`; an array is accepted here too, and answered in the same way."


def collection_changes(resource: ResourceView, view: View) -> JsonObject:
    """The writes of a collection, by method."""
    return {"post": _create(resource, view)} if resource.may("create") else {}


def member_changes(resource: ResourceView, view: View, patch: str) -> JsonObject:
    """The writes of one row, by method; `patch` names the schema of a JSON Patch."""
    operations: JsonObject = {}
    if resource.may("update"):
        operations = {"put": _replace(resource), "patch": _update(resource, view, patch)}
    if resource.resource.is_job and any(found is resource.resource for found, _ in view.calls.values()):
        return {**operations, "delete": _cancel(resource.resource)}
    return {**operations, "delete": _delete(resource)} if resource.may("delete") else operations


def member_restore(resource: ResourceView, view: View) -> JsonObject:
    """The path on which a deleted row is restored."""
    definition = resource.resource
    text = "It was deleted, and comes back with all that was deleted with it. The body is empty, or `{}`."
    parameters = _parameters("If-Match", *_keys(view))
    post = operation(f"Restore {with_article(definition.name)}", definition.name, parameters, text)
    ok = answer(f"The {spaced_words(definition.name)} as it is now.", ref(definition.name), "ETag", *_replayed(view))
    return {
        "post": {
            "operationId": "restore" + definition.name,
            **post,
            "requestBody": {"content": {"application/json": {"schema": {"type": "object", "maxProperties": 0}}}},
            "responses": {"200": ok, **errors((*_BODY_ERRORS, 404, 412))},
        }
    }


def _create(resource: ResourceView, view: View) -> JsonObject:
    definition = resource.resource
    parameters = [*_parameters(*_keys(view)), *_upserting(resource)]
    post = operation(f"Create {with_article(definition.name)}", definition.name, parameters, _BATCH)
    headers = ("Location", "ETag", *_replayed(view))
    made = answer(f"The new {spaced_words(definition.name)}.", ref(definition.name), *headers)
    made["links"] = _links(resource)
    there = f"The {spaced_words(definition.name)} that has the key `by`, as it is now."
    existing = {"200": answer(there, ref(definition.name), *headers[1:])} if resource.may("upsert") else {}
    return {
        "operationId": "create" + definition.name,
        **post,
        "requestBody": _body({"application/json": ref(definition.name + "Create")}),
        "responses": {"201": made, **existing, **errors(_create_errors(resource, view))},
    }


def _create_errors(resource: ResourceView, view: View) -> tuple[int, ...]:
    """A new row may name others that it is connected to, which may be missing."""
    return (*_BODY_ERRORS, 404) if nests_of(resource, view, "create") else _BODY_ERRORS


def _upserting(resource: ResourceView) -> list[JsonObject]:
    """The parameters of an upsert, if there is a unique key for it."""
    if not resource.may("upsert"):
        return []
    keys = list(resource.upsert_keys)
    fields = resource.resource.fields
    old = {
        key: deprecation
        for key, names in resource.resource.unique_keys.items()
        if (deprecation := next((fields[name].deprecated for name in names if fields[name].deprecated), None))
    }
    words_of = ["update", "keep"] if resource.may("update") else ["keep"]
    by = "A unique key: if a row has its values, that one is updated, and none is created. All of them are required."
    how = "With `by`, what is done with a row that has the key: fields that are given are updated, or it is kept."
    return [
        {
            "name": "by",
            "in": "query",
            "description": by,
            "schema": with_deprecated_values({"type": "string", "enum": keys}, old),
        },
        {"name": "onConflict", "in": "query", "description": how, "schema": {"type": "string", "enum": words_of}},
    ]


def collection_batch(resource: ResourceView, view: View) -> JsonObject:
    """The path on which several rows of a collection are created."""
    definition, many = resource.resource, spaced_words(resource.resource.many)
    rows: Schema = {"type": "array", "items": ref(definition.name)}
    new: Schema = {"type": "array", "items": ref(definition.name + "Create"), "minItems": 1, "maxItems": MAX_CREATED}
    text = f"Up to {MAX_CREATED} at once: all of them are created, or none."
    parameters = [*_parameters(*_keys(view)), *_upserting(resource)]
    post = operation(f"Create several {many}", definition.name, parameters, text)
    made = answer(f"The new {many}, in the order of the request.", rows, *_replayed(view))
    there = answer(f"The {many} that have the key `by`; none is new.", rows, *_replayed(view))
    existing = {"200": there} if resource.may("upsert") else {}
    return {
        "post": {
            "operationId": "create" + upper_first(definition.many),
            **post,
            "requestBody": _body({"application/json": new}),
            "responses": {"201": made, **existing, **errors(_create_errors(resource, view))},
        }
    }


def _replace(resource: ResourceView) -> JsonObject:
    definition = resource.resource
    text = "Accepts what GET returned. Omitted fields become their default or null."
    ok = answer(f"The {spaced_words(definition.name)} as it is now.", ref(definition.name), "ETag")
    parameters, new = _parameters("If-Match"), {}
    if resource.may("create") and definition.key is ID:
        parameters.append(_IF_NONE_MATCH)
        text += " With `If-None-Match: *` it creates a row; the body is then that of POST."
        new = {"201": answer(f"The new {spaced_words(definition.name)}.", ref(definition.name), "Location", "ETag")}
    put = operation(f"Replace {with_article(definition.name)}", definition.name, parameters, text)
    return {
        "operationId": "replace" + definition.name,
        **put,
        "requestBody": _body({"application/json": ref(definition.name + "Replace")}),
        "responses": {"200": ok, **new, **errors((*_BODY_ERRORS, 404, 412))},
    }


def _update(resource: ResourceView, view: View, patch: str) -> JsonObject:
    """One media type is listed: of several, generators make clients that send another one, or that fail."""
    definition = resource.resource
    text = (
        "Changes the fields that it names; others keep their values. It is a merge patch (RFC 7396), also as "
        f"`application/merge-patch+json`, or without a media type; a JSON Patch, `{patch}`, is sent as "
        "`application/json-patch+json`."
    )
    parameters = _parameters("If-Match", *_keys(view))
    change = operation(f"Update {with_article(definition.name)}", definition.name, parameters, text)
    ok = answer(f"The {spaced_words(definition.name)} as it is now.", ref(definition.name), "ETag", *_replayed(view))
    return {
        "operationId": "update" + definition.name,
        **change,
        "requestBody": _body({"application/json": ref(definition.name + "Patch")}),
        "responses": {"200": ok, **errors((*_BODY_ERRORS, 404, 412))},
    }


def _delete(resource: ResourceView) -> JsonObject:
    definition = resource.resource
    parameters = [*_parameters("If-Match", "Prefer"), *only_deleted(resource)]
    text = "It can be restored; with `deleted=only`, a deleted one is deleted for good." if definition.trash else ""
    delete = operation(f"Delete {with_article(definition.name)}", definition.name, parameters, text)
    ok = answer(
        f"The {spaced_words(definition.name)} as it was, if that is preferred.",
        ref(definition.name),
        "Preference-Applied",
    )
    return {
        "operationId": "delete" + definition.name,
        **delete,
        "responses": {"200": ok, "204": refer("responses", DELETED), **errors(_DELETE_ERRORS)},
    }


def _cancel(job: ResourceDef) -> JsonObject:
    """DELETE on a job."""
    text = "None of its changes is committed after that. It stays, with the state `cancelled`."
    done = {"204": {"description": "Cancelled."}, **errors(_CANCEL_ERRORS)}
    delete = operation(f"Cancel {with_article(job.name)}", job.name, [refer("parameters", "fields")], text)
    return {"operationId": "delete" + job.name, **delete, "responses": done}


def _parameters(*names: str) -> list[JsonObject]:
    return [refer("parameters", name) for name in ("fields", *names)]


def _keys(view: View) -> tuple[str, ...]:
    """The Idempotency-Key parameter, for authenticated callers: keys are stored for each caller."""
    return ("Idempotency-Key",) if view.signature.signed_in else ()


def _replayed(view: View) -> tuple[str, ...]:
    return (_REPLAYED,) if view.signature.signed_in else ()


def _body(kinds: dict[str, Schema]) -> JsonObject:
    return {"required": True, "content": {kind: {"schema": schema} for kind, schema in kinds.items()}}


def _links(resource: ResourceView) -> JsonObject:
    """The OpenAPI links of a new row: the operations on it, and the lists of rows that belong to it."""
    name = resource.resource.name
    ids = ["get" + name]
    ids += [verb + name for verb in ("replace", "update", "delete") if resource.may(verb)]
    ids += [
        f"list{upper_first(to)}Of{name}" for to in resource.resource.collections.values() if to in resource.relations
    ]
    return {each_id: {"operationId": each_id, "parameters": {"id": "$response.body#/id"}} for each_id in ids}
