"""View → OpenAPI 3.1: every route of the server, exactly as one role can use it.

The document is drawn from the same View that translates requests, so it cannot promise what the role may not
do. A path item is drawn whole, one function for each kind of path:

    /orders                   _collection      what a list takes, and a page of it; new rows
    /orders/{id}              _member          one row, and what changes it
    /orders/changes           _changes         what became of them, as a log or as a stream
    /users/{id}/orders        _relation        the same list, of one user
    /posts/{id}/publish       _call            code of the model's own
    /graphql, /health/live    _service         what is there whatever the model is
    /oauth/token              authorizing      the authorization server

`schemas` and `inputs` say what values look like, `writing` draws what changes something, `following` what tells of
changes, `calling` what calls the model's own code; `components` holds the parts that operations share, `security` tells
what they need of a token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, count
from typing import Any

from diptych.api.rest.authorizing import authorization_paths
from diptych.api.rest.calling import action_operation, call_path, query_operation
from diptych.api.rest.components import (
    CACHED,
    ERRORS,
    PLACED,
    SERVICE,
    Part,
    answer,
    build_headers,
    build_parameters,
    build_responses,
    closed,
    errors,
    headers,
    list_parameters,
    one_parameters,
    operation,
    page_info,
    problem_schema,
    refer,
)
from diptych.api.rest.following import FOLLOWED, STREAM, build_changes, following, following_parameters
from diptych.api.rest.inputs import build_inputs, json_patch
from diptych.api.rest.schemas import Schema, build_schemas
from diptych.api.rest.security import ANYONE, secured, secured_call, security_schemes
from diptych.api.rest.writing import collection_changes, member_changes
from diptych.model.defs import CallDef, QueryDef, RelationDef, ResourceDef
from diptych.model.naming import upper_first
from diptych.model.view import ResourceView, View

_READ_ERRORS = (400, 401, 403, 406, 429, 431, 503, 504)


def openapi(
    view: View, *, title: str = "Diptych", version: str = "1", server: str = "", issuer: str = "", max_page: int = 100
) -> dict[str, Any]:
    """The document of one view. `server` is the public address, or the path of the service where that is not known;
    `issuer` is the address of the authorization server; `max_page` the largest page."""
    schemas = {**build_schemas(view), **build_inputs(view), **build_changes(view)}
    problem, patch = _free(schemas, "Problem", "ProblemDetails"), _free(schemas, "JsonPatch", "JsonPatchOperations")
    if any(each.may("update") for each in view.resources.values()):
        schemas[patch] = json_patch()
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "servers": [{"url": server or "/"}],
        "security": ANYONE,
        "tags": _tags(view),
        "paths": _with_own_ids({**_resource_paths(view, patch), **_service(view), **authorization_paths()}),
        "components": {
            "schemas": {**schemas, "PageInfo": page_info(max_page), problem: problem_schema()},
            "parameters": {**build_parameters(view, max_page), **following_parameters(view, max_page)},
            "headers": build_headers(),
            "responses": build_responses(view, problem),
            "securitySchemes": security_schemes(view, issuer),
        },
    }


def _free(taken: Collection[str], *names: str) -> str:
    """The first of these names that is not taken, or the last with a number."""
    numbered = (f"{names[-1]}{number}" for number in count(2))
    return next(name for name in chain(names, numbered) if name not in taken)


def _with_own_ids(paths: dict[str, Part]) -> dict[str, Part]:
    """The same paths, no two operations with one id: an action may be named `get`. What comes first keeps its id, and
    that is all that links refer to."""
    taken: set[str] = set()

    def own(each: Any) -> Any:
        if not isinstance(each, dict) or "operationId" not in each:
            return each
        name = _free(taken, each["operationId"])
        taken.add(name)
        return {**each, "operationId": name}

    return {path: {method: own(each) for method, each in item.items()} for path, item in paths.items()}


def _tags(view: View) -> list[Part]:
    called = {found.name: found for found, _ in view.calls.values()}
    resources = {**{name: each.resource for name, each in view.resources.items()}, **called}.values()
    found = [{"name": resource.name, "description": resource.description} for resource in resources]
    return [*found, {"name": SERVICE, "description": "What is there whatever the model is."}]


# resources


def _resource_paths(view: View, patch: str) -> dict[str, Part]:
    paths: dict[str, Part] = {}
    for each in view.resources.values():
        found, path = each.resource, f"/{each.resource.path}"
        collection = {**_collection(each), **collection_changes(each, view)}
        member = {**_member(each), **member_changes(each, view, patch)}
        paths[path] = secured(collection, view, [found], [found])
        paths[path + "/changes"] = secured(_changes(each), view, [found])
        paths[path + "/{id}"] = secured(member, view, [found], [found])
        for segment, name in found.collections.items():
            if name in each.relations:
                relation = each.relations[name].relation
                seen = [found, *(view.model[other] for other in (relation.target, relation.link) if other)]
                item = _relation(each, relation, view.resources[relation.target])
                paths[f"{path}/{{id}}/{segment}"] = secured(item, view, seen)
    for found, call in view.calls.values():
        paths[call_path(found, call)] = secured_call(_call(found, call, view), view, found, call)
    return paths


def _call(found: ResourceDef, call: CallDef, view: View) -> Part:
    if isinstance(call, QueryDef):
        get = query_operation(found, call)
        get.setdefault("parameters", []).append(_IF_NONE_MATCH)
        get["responses"] = _responses(get["responses"]["200"], _READ_ERRORS)
        return _readable("get", upper_first(call.root), get, CACHED)
    noun = upper_first(call.root)
    options = operation("The methods of this path.", found.name)
    allowed = {"204": {"description": "The methods are in `Allow`.", "headers": headers("Allow")}}
    item: Part = {
        "post": action_operation(found, call, view),
        "options": {"operationId": "options" + noun, **options, "responses": {**allowed, **errors((400, 401))}},
    }
    return {"parameters": [refer("parameters", "id")], **item} if call.on == "row" else item


def _collection(each: ResourceView) -> Part:
    found = each.resource
    get = operation(f"Many {found.name}, by page.", found.name, list_parameters(each))
    get["responses"] = _responses(refer("responses", found.many), _READ_ERRORS)
    return _readable("list", upper_first(found.many), get, CACHED)


def _member(each: ResourceView) -> Part:
    found = each.resource
    get = operation(f"One {found.name} by its id.", found.name, one_parameters(each))
    get["responses"] = _responses(refer("responses", found.one), (*_READ_ERRORS, 404))
    more = ("Accept-Patch",) if each.may("update") else ()
    return {"parameters": [refer("parameters", "id")], **_readable("get", found.name, get, CACHED, *more)}


def _changes(each: ResourceView) -> Part:
    get = following(each)
    get["responses"] = _responses(get["responses"]["200"], (*_READ_ERRORS, 410))
    return _readable("follow", each.resource.name + "Change", get, FOLLOWED)


def _relation(each: ResourceView, relation: RelationDef, target: ResourceView) -> Part:
    """`listPostsOfUser`, since `listUserPosts` would also be that of a resource UserPost."""
    found = each.resource
    summary = f"The {relation.name} of one {found.name}, by page."
    get = operation(summary, found.name, list_parameters(target), relation.description)
    get["responses"] = _responses(refer("responses", target.resource.many), (*_READ_ERRORS, 404))
    noun = f"{upper_first(relation.name)}Of{found.name}"
    return {"parameters": [refer("parameters", "id")], **_readable("list", noun, get, CACHED)}


# operations


def _readable(verb: str, noun: str, get: Part, ok_headers: Iterable[str], *more: str) -> Part:
    """GET, and the HEAD and OPTIONS that go with it."""
    without = {status: _without_content(int(status), ok_headers) for status in get["responses"]}
    options = operation("The methods of this path.", get["tags"][0])
    allowed = {"204": {"description": "The methods are in `Allow`.", "headers": headers("Allow", *more)}}
    return {
        "get": {"operationId": verb + noun, **get},
        "head": {"operationId": "head" + noun, **get, "responses": without},
        "options": {"operationId": "options" + noun, **options, "responses": {**allowed, **errors((400, 401))}},
    }


def _responses(ok: Part, statuses: Iterable[int]) -> Part:
    """A 200, the 304 that stands for it, and the errors."""
    return {"200": ok, "304": _NOT_MODIFIED, **errors(statuses)}


def _without_content(status: int, ok_headers: Iterable[str]) -> Part:
    """A response to HEAD."""
    if status == 304:
        return _NOT_MODIFIED
    if status == 200:
        return {"description": "As for GET, without the content.", "headers": headers(*ok_headers)}
    return {"description": ERRORS[status][1]}


# the routes of the server itself


def _service(view: View) -> dict[str, Part]:
    return {
        "/graphql": _graphql([_KEY] if view.signature.signed_in else []),
        "/openapi.json": _document(),
        "/health/live": _health("Live", "Is the process up?", (400, 401, 406)),
        "/health/ready": _health("Ready", "Can it answer requests?", (400, 401, 406, 503)),
    }


def _document() -> Part:
    get = operation("This document, as the caller's role sees it.", SERVICE, [_IF_NONE_MATCH])
    ok = answer("An OpenAPI 3.1 document.", {"type": "object"}, *CACHED)
    get["responses"] = _responses(ok, (400, 401, 406))
    return _readable("get", "Openapi", get, CACHED)


def _health(name: str, summary: str, statuses: Iterable[int]) -> Part:
    get = operation(summary, SERVICE)
    ok = answer("Yes.", closed({"status": {"type": "string", "enum": ["ok"]}}), *_UNTAGGED)
    get["responses"] = {"200": ok, **errors(statuses)}
    return _readable("get", f"Health{name}", get, _UNTAGGED)


def _graphql(keys: Iterable[Part]) -> Part:
    """The query style: one path, whose own schema tells the rest."""
    get = operation("A GraphQL query, by GET.", SERVICE, [*_graphql_parameters(), _IF_NONE_MATCH, *_HEADERS], _STREAMED)
    get["responses"] = {"304": _NOT_MODIFIED, **_graphql_responses(400, 401, 403, 404, 405, 406, 422, 429, 503, 504)}
    post = operation("A GraphQL request.", SERVICE, [*keys, *_HEADERS], _STREAMED)
    content = {"application/json": {"schema": _GRAPHQL_REQUEST, "example": _GRAPHQL_EXAMPLE}}
    post["requestBody"] = {"required": True, "content": content}
    post["responses"] = _graphql_responses(400, 401, 403, 404, 406, 409, 412, 413, 415, 422, 429, 503, 504)
    return {**_readable("get", "Graphql", get, _UNTAGGED), "post": {"operationId": "postGraphql", **post}}


def _graphql_parameters() -> list[Part]:
    found: list[Part] = []
    for name, schema in _GRAPHQL_REQUEST["properties"].items():
        part: Part = {"name": name, "in": "query", "required": name in _GRAPHQL_REQUEST["required"]}
        if "object" in schema["type"]:
            part["content"] = {"application/json": {"schema": schema}}
        else:
            part |= {"schema": {**schema, "type": "string"}, "example": _GRAPHQL_EXAMPLE[name]}
        found.append(part)
    return found


def _graphql_responses(*others: int) -> Part:
    """An error has its own status if the client accepts the first media type, and mostly 200 if not."""
    kinds = ("application/graphql-response+json", "application/json")
    content = {kind: {"schema": _GRAPHQL_ANSWER} for kind in kinds}
    told = headers(*_UNTAGGED, *PLACED)
    streamed = {**content, STREAM: {"schema": {"type": "string"}, "example": _EVENTS}}
    found: Part = {"200": {"description": "The answer, or what is wrong.", "headers": told, "content": streamed}}
    for status in others:
        found[str(status)] = {"description": ERRORS[status][1], "content": content}
    return found


_UNTAGGED = ("Cache-Control", "Vary")
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "With a mutation: a key of the client's choice, under which it is done once.",
    "schema": {"type": "string"},
}
_IF_NONE_MATCH = refer("parameters", "If-None-Match")
_HEADERS = [refer("parameters", name) for name in ("Prefer-Cursor", "Last-Event-ID")]
_STREAMED = (
    "A subscription is answered as `text/event-stream`, by the graphql-sse protocol in its mode of distinct "
    "connections, or over a WebSocket on this path, by the protocol `graphql-transport-ws`. In place of `query`, a "
    "document can be named by the SHA-256 of its text: `documentId=sha256:<hex>`, or in `extensions` as "
    '`{"persistedQuery": {"version": 1, "sha256Hash": "<hex>"}}`; 404 says that it is not known.'
)
_EVENTS = 'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata:\n\n'
_NOT_MODIFIED = refer("responses", "NotModified")
_GRAPHQL_EXAMPLE = {"query": "query Hello { __typename }", "operationName": "Hello"}
_GRAPHQL_REQUEST: Schema = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "format": "graphql"},
        "operationName": {"type": ["string", "null"], "format": "graphql-operation"},
        "variables": {"type": ["object", "null"]},
        "extensions": {"type": ["object", "null"]},
    },
    "required": ["query"],
}
_GRAPHQL_ANSWER: Schema = {
    "type": "object",
    "properties": {
        "data": {"type": ["object", "null"]},
        "errors": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["message"]}},
        "extensions": {"type": "object"},
    },
    "additionalProperties": False,
}
