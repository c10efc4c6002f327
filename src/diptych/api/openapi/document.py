"""Builds the OpenAPI 3.1 document of one role: every route, as the role can use it.

It is built from the same View that translates requests, so it cannot promise what the role may not do. There is one
function for each kind of path:

    /orders                   _collection      parameters and pages of a list; a new row
    /orders/batch             collection_batch several new rows
    /orders/{id}              _member          one row, and its writes
    /orders/changes           _changes         the change feed, as a log or as a stream
    /users/{id}/orders        _relation        the same list, of one user
    /posts/{id}/publish       _call            the model's own code
    /{collection}/groups      aggregate_paths  numbers of rows, for all collections
    /viewer                   viewer_operations
    /graphql, /health/live    _service         routes that do not depend on the model
    /oauth/token              oauth_operations the authorization server

`schemas` and `input_schemas` describe values; `write_operations`, `change_operations` and `call_operations` the
operations; `components` has what operations share, `security` the scopes that they need.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from itertools import chain, count
from typing import Any, cast

from diptych.api.descriptions import INPUTS
from diptych.api.openapi.account_operations import account_paths
from diptych.api.openapi.aggregate_operations import aggregate_paths, aggregate_schemas
from diptych.api.openapi.batch_operation import batch_path
from diptych.api.openapi.bulk_operations import bulk_changes
from diptych.api.openapi.call_operations import action_operation, call_path, query_operation
from diptych.api.openapi.change_operations import add_changes, build_changes, following, following_parameters
from diptych.api.openapi.components import (
    GENERAL,
    SERVICE,
    JsonObject,
    add_parameters,
    add_responses,
    answer,
    build_headers,
    build_parameters,
    build_responses,
    closed,
    errors,
    in_json,
    list_parameters,
    only_deleted,
    operation,
    page_of,
    page_schema,
    problem_schema,
    refer,
)
from diptych.api.openapi.graphql_body import GRAPHQL_ANSWER, GRAPHQL_EXAMPLE, GRAPHQL_REQUEST
from diptych.api.openapi.input_schemas import add_inputs, json_patch
from diptych.api.openapi.link_operations import OTHER, link_operations, set_operation
from diptych.api.openapi.oauth_operations import authorization_paths
from diptych.api.openapi.reasons import add_reasons
from diptych.api.openapi.schemas import Schema, add_schemas, ref, with_deprecation
from diptych.api.openapi.security import ANYONE, secured, secured_call, security_schemes
from diptych.api.openapi.viewer_operations import viewer_path, viewer_schema
from diptych.api.openapi.write_operations import (
    DELETED,
    collection_batch,
    collection_changes,
    member_changes,
    member_restore,
)
from diptych.api.sse import STREAM
from diptych.api.understand import METHOD_VERBS
from diptych.model.call_defs import ActionDef, CallDef, QueryDef
from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.deprecation import Deprecation
from diptych.model.naming import spaced_words, upper_first, with_article
from diptych.model.resource_view import ResourceView
from diptych.model.view import View
from diptych.model.viewer_object import VIEWER

_READ_ERRORS = (400, 401, 403, 406, 429, 431, 503, 504)
_SUFFIXES = ("", "Where", "ListWhere", "Change", *(suffix for suffix, _ in INPUTS.values()))


def build_openapi(view: View, **about: Any) -> dict[str, Any]:
    """The document of one view, at once: see `openapi_steps`."""
    steps = openapi_steps(view, **about)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return cast(dict[str, Any], done.value)


def openapi_steps(
    view: View,
    *,
    title: str = "Diptych",
    about: Mapping[str, Any] | None = None,
    version: str = "1",
    server: str = "",
    issuer: str = "",
    max_page: int = 100,
    max_bulk: int = 1_000,
    explained: bool = False,
) -> Generator[None, None, dict[str, Any]]:
    """Build the document of one view, and yield after each resource: a large model takes long.

    `server` is the public address, or the path of the service if that is not known; `issuer` is the address of the
    authorization server. `about` has more members of `info`, `max_page` is the largest page, `max_bulk` the most rows
    of a change by a filter, and with `explained` errors may have `why`.
    """
    taken, paths = _taken_names(view), _Paths()
    problem, patch = _free(taken, "Problem", "ProblemDetails"), _free(taken, "JsonPatch", "JsonPatchOperations")
    row = _free(taken, "Row", "StoredRow")
    pages = {name: _free(taken, f"{name}Page", f"{name}List", f"{name}Rows") for name in view.shown}
    schemas, parameters, responses = _common(view, problem, patch, max_page, explained=explained)
    for resource in view.shown.values():
        add_schemas(schemas, resource, row)
        add_inputs(schemas, resource, view)
        if resource.resource.followed:
            add_changes(schemas, resource)
        add_parameters(parameters, resource)
        page = pages[resource.resource.name]
        schemas[page] = page_of(resource.resource.name, "PageInfo")
        add_responses(responses, resource, page)
        if not resource.resource.versions_of:  # a relation leads to them
            _add_paths(paths, resource, view, patch, max_bulk)
        yield
    for definition, call in view.calls.values():
        paths.add(call_path(definition, call), secured_call(_call(definition, call, view), view, definition, call))
        yield
    if viewer_path(view):
        schemas[VIEWER] = viewer_schema(view)
    for path, item in _other_paths(view).items():
        paths.add(path, item)
    add_reasons(paths.items, parameters, view)
    return {
        "openapi": "3.1.0",
        "info": _info({"title": title, "version": version, **(about or {})}),
        "servers": [{"url": server or "/"}],
        "security": ANYONE,
        "tags": _tags(view),
        "paths": paths.items,
        "components": {
            "schemas": schemas,
            "parameters": parameters,
            "headers": build_headers(),
            "responses": responses,
            "securitySchemes": security_schemes(view, issuer),
        },
    }


def _common(
    view: View, problem: str, patch: str, max_page: int, *, explained: bool
) -> tuple[dict[str, Schema], dict[str, JsonObject], dict[str, JsonObject]]:
    """The schemas, parameters and responses that resources share."""
    parameters, responses = build_parameters(max_page), build_responses(problem)
    schemas: dict[str, Schema] = {"PageInfo": page_schema(max_page), problem: problem_schema(explained=explained)}
    if view.resources:
        schemas |= aggregate_schemas()
    if any(resource.resource.followed for resource in view.resources.values()):
        schemas = {**schemas, **build_changes()}
        parameters |= following_parameters(max_page)
    if any(resource.may("update") for resource in view.resources.values()):
        schemas[patch] = json_patch()
    if any(resource.may("delete") for resource in view.resources.values()):
        responses[DELETED] = {"description": "Deleted."}
    return schemas, parameters, responses


def _other_paths(view: View) -> dict[str, JsonObject]:
    """The paths that are not of a resource or of a call."""
    return {
        **viewer_path(view),
        **aggregate_paths(view),
        **_service(view),
        **authorization_paths(),
        **account_paths(),
    }


def _info(about: dict[str, Any]) -> JsonObject:
    """What the owner says of the service, and then what holds for every service."""
    return {**about, "description": "\n\n".join(filter(None, (about.get("description"), GENERAL)))}


def _free(taken: Collection[str], *names: str) -> str:
    """The first of these names that is not taken, or the last with a number."""
    numbered = (f"{names[-1]}{number}" for number in count(2))
    return next(name for name in chain(names, numbered) if name not in taken)


class _Paths:
    """Path items with unique operation ids: an action may be named `get`. The first one keeps its id, and links refer
    to those only."""

    def __init__(self) -> None:
        self.items: dict[str, JsonObject] = {}
        self._taken: set[str] = set()

    def add(self, path: str, item: JsonObject, deprecation: Deprecation | None = None) -> None:
        for method, part in item.items():
            if isinstance(part, dict):
                part["operationId"] = _free(self._taken, part["operationId"])
                self._taken.add(part["operationId"])
                item[method] = with_deprecation(part, deprecation)
        self.items[path] = item


def _taken_names(view: View) -> set[str]:
    """The names of schemas that the model takes."""
    taken = {name + suffix for name in view.shown for suffix in _SUFFIXES}
    for resource in view.shown.values():
        known = (*(shown.field for shown in resource.fields.values()), *(w.field for w in resource.writes.values()))
        taken |= {field.scalar.name for field in known}
    return taken


def _tags(view: View) -> list[JsonObject]:
    called = {resource.name: resource for resource, _ in view.calls.values()}
    resources = {**{name: resource.resource for name, resource in view.resources.items()}, **called}.values()
    tags = [{"name": resource.name, "description": resource.description} for resource in resources]
    if view.signature.signed_in:
        tags.append({"name": VIEWER, "description": view.resources[VIEWER].resource.description})
    return [*tags, {"name": SERVICE, "description": "Routes that do not depend on the model."}]


# resources


def _add_paths(paths: _Paths, resource: ResourceView, view: View, patch: str, max_bulk: int) -> None:
    definition, path = resource.resource, f"/{resource.resource.path}"
    old = definition.deprecated
    collection = {"get": _collection(resource), **collection_changes(resource, view)}
    collection |= bulk_changes(resource, view, max_bulk)
    member = {"parameters": [_ID], "get": _member(resource), **member_changes(resource, view, patch)}
    paths.add(path, secured(collection, view, [definition], [definition]), old)
    if resource.may("create"):
        paths.add(path + "/batch", secured(collection_batch(resource, view), view, [definition], [definition]), old)
    if definition.followed:
        paths.add(path + "/changes", secured({"get": _changes(resource)}, view, [definition]), old)
    paths.add(path + "/{id}", secured(member, view, [definition], [definition]), old)
    if resource.may("restore"):
        restore = {"parameters": [_ID], **member_restore(resource, view)}
        paths.add(path + "/{id}/restore", secured(restore, view, [definition], [definition]), old)
    for segment, name in definition.collections.items():
        if name in resource.relations:
            relation = resource.relations[name].relation
            seen = [definition, *(view.model[other] for other in (relation.target, relation.link) if other)]
            item = {"parameters": [_ID], "get": _relation(resource, relation, view.resources[relation.target])}
            item |= set_operation(resource, relation, view)
            written = [view.model[relation.link]] if relation.link else []
            old = relation.deprecated or definition.deprecated
            paths.add(f"{path}/{{id}}/{segment}", secured(item, view, seen, written), old)
            if links := link_operations(resource, relation, view):
                item = secured({"parameters": [_ID, OTHER], **links}, view, seen, written)
                paths.add(f"{path}/{{id}}/{segment}/{{other}}", item, old)


def _call(resource: ResourceDef, call: CallDef, view: View) -> JsonObject:
    if isinstance(call, QueryDef):
        get = query_operation(resource, call)
        return {"get": _get(upper_first(call.root), get, get["responses"]["200"], _READ_ERRORS)}
    post = action_operation(resource, call, view)
    return {"parameters": [_ID], "post": post} if call.on == "row" else {"post": post}


def _collection(resource: ResourceView) -> JsonObject:
    definition = resource.resource
    summary = f"List {spaced_words(definition.many)}"
    parameters = [*list_parameters(resource, filters=True), *only_deleted(resource)]
    get = operation(summary, definition.name, parameters)
    return _get(upper_first(definition.many), get, refer("responses", definition.many), _READ_ERRORS, "list")


def _member(resource: ResourceView) -> JsonObject:
    definition = resource.resource
    parameters = [refer("parameters", "fields"), *only_deleted(resource)]
    get = operation(f"Get {with_article(definition.name)}", definition.name, parameters)
    ok = answer(f"The {spaced_words(definition.name)}.", ref(definition.name))
    return _get(definition.name, get, ok, (*_READ_ERRORS, 404))


def _changes(resource: ResourceView) -> JsonObject:
    get = following(resource)
    return _get(resource.resource.name + "Changes", get, get["responses"]["200"], _READ_ERRORS, "follow")


def _relation(resource: ResourceView, relation: RelationDef, target: ResourceView) -> JsonObject:
    """`listPostsOfUser`, since `listUserPosts` would also be that of a resource UserPost."""
    definition = resource.resource
    summary = f"List {spaced_words(relation.name)} of {with_article(definition.name)}"
    get = operation(summary, definition.name, list_parameters(target, filters=False), relation.description)
    noun = f"{upper_first(relation.name)}Of{definition.name}"
    return _get(noun, get, refer("responses", target.resource.many), (*_READ_ERRORS, 404), "list")


def _get(noun: str, get: JsonObject, ok: JsonObject, statuses: Iterable[int], verb: str = "get") -> JsonObject:
    """An operation with its id and its responses."""
    return {"operationId": verb + noun, **get, "responses": {"200": ok, **errors(statuses)}}


# the routes of the server itself


def _service(view: View) -> dict[str, JsonObject]:
    keys = [refer("parameters", "Idempotency-Key")] if view.signature.signed_in else []
    return {
        **({"/batch": batch_path(keys)} if _writes(view) else {}),
        "/graphql": _graphql([_KEY] if view.signature.signed_in else []),
        "/openapi.json": _document(),
        "/health/live": _health("Live", "Is the process up?", (400, 401, 406)),
        "/health/ready": _health("Ready", "Can it answer requests?", (400, 401, 406, 503)),
    }


def _writes(view: View) -> bool:
    """Can the role write anything?"""
    rows = any(resource.may(verb) for resource in view.resources.values() for verb in METHOD_VERBS.values())
    return rows or any(isinstance(call, ActionDef) for _, call in view.calls.values())


def _document() -> JsonObject:
    get = operation("Get this document", SERVICE, description="It has what the role of the caller could ever do.")
    ok = answer("An OpenAPI 3.1 document.", {"type": "object"})
    return {"get": _get("Openapi", get, ok, (400, 401, 406))}


def _health(name: str, summary: str, statuses: Iterable[int]) -> JsonObject:
    ok = answer("Yes.", closed({"status": {"type": "string", "enum": ["ok"]}}))
    return {"get": _get(f"Health{name}", operation(summary, SERVICE), ok, statuses)}


def _graphql(keys: Iterable[JsonObject]) -> JsonObject:
    """GraphQL: one path, whose own schema describes the rest."""
    get = operation("Send a GraphQL query by GET", SERVICE, [*_graphql_parameters(), *_HEADERS], _STREAMED)
    post = operation("Send a GraphQL request", SERVICE, [*keys, *_HEADERS], _STREAMED)
    content = {"application/json": {"schema": GRAPHQL_REQUEST, "example": GRAPHQL_EXAMPLE}}
    post["requestBody"] = {"required": True, "content": content}
    return {
        "get": {"operationId": "getGraphql", **get, "responses": _graphql_responses()},
        "post": {"operationId": "postGraphql", **post, "responses": _graphql_responses()},
    }


def _graphql_parameters() -> list[JsonObject]:
    parameters: list[JsonObject] = []
    for name, schema in GRAPHQL_REQUEST["properties"].items():
        part: JsonObject = {"name": name, "in": "query", "required": name in GRAPHQL_REQUEST["required"]}
        if "object" in schema["type"]:
            part["schema"] = in_json(schema)
        else:
            part["schema"] = {**schema, "type": "string"}
        parameters.append(part | ({"example": GRAPHQL_EXAMPLE[name]} if part["required"] else {}))
    return parameters


def _graphql_responses() -> JsonObject:
    """Responses of GraphQL: an error has its own status if the client accepts the first media type, and mostly 200 if
    not."""
    kinds = ("application/graphql-response+json", "application/json")
    content = {kind: {"schema": GRAPHQL_ANSWER} for kind in kinds}
    streamed = {**content, STREAM: {"schema": {"type": "string"}, "example": _EVENTS}}
    ok = {"description": "The result, or errors.", "content": streamed}
    return {"200": ok, "default": {"description": "Errors, with the status of the first.", "content": content}}


_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "With a mutation: a key of the client's choice; a repetition is not executed again.",
    "schema": {"type": "string"},
}
_ID = refer("parameters", "id")
_HEADERS = [refer("parameters", name) for name in ("Last-Event-ID",)]
_STREAMED = (
    "A subscription is answered as `text/event-stream`, by the graphql-sse protocol in distinct connections "
    "mode, or over a WebSocket on this path, by the protocol `graphql-transport-ws`. Instead of `query`, a "
    "document can be named by the SHA-256 of its text: `documentId=sha256:<hex>`, or in `extensions` as "
    '`{"persistedQuery": {"version": 1, "sha256Hash": "<hex>"}}`; 404 says that it is not known.'
)
_EVENTS = 'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata:\n\n'
