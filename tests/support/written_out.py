"""The OpenAPI document with all that its description says in words written out for every operation.

The published document says once what is true of every operation, and gives the filters of a field as one parameter.
What is checked is all of it: so the words are turned into operations, parameters, headers and statuses here, and the
tests hold those against the service. A status, a header or a parameter that is not in a document that was written out
is in neither the published document nor its words.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from diptych.model.operators import takes_list

Document = dict[str, Any]

READING = (400, 401, 403, 406, 429, 431, 503, 504)
DELETING = (400, 401, 406, 429, 431, 503, 504)
WRITING = (400, 401, 403, 406, 413, 415, 429, 431, 503, 504)
GRAPHQL = {
    "get": (400, 401, 403, 404, 405, 406, 422, 429, 503, 504),
    "post": (400, 401, 403, 404, 406, 409, 412, 413, 415, 422, 429, 503, 504),
}
SERVICE = {
    "/batch": (400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 429, 431, 503, 504),
    "/openapi.json": (400, 401, 406),
    "/health/live": (400, 401, 406),
    "/health/ready": (400, 401, 406, 503),
}
"""What `default` stands for: the errors of an operation that are not under their own status."""
ERROR_HEADERS = {401: ("WWW-Authenticate",), 415: ("Accept-Patch",), 429: ("Retry-After",), 503: ("Retry-After",)}
OPTIONAL = ("Accept-Patch", "Cost", "Preference-Applied", "Link", "Change-Cursor")
ADDRESSES = ("/oauth/", "/.well-known/")
RESERVED = ("fields", "sort", "first", "last", "after", "before", "offset", "count", "where")


def written_out(published: Document) -> Document:
    """A document in which nothing is left to words."""
    document = copy.deepcopy(published)
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("Where") and "and" in schema["properties"]:
            _with_one_object(schema["properties"])
        if "allOf" in schema:
            schemas[name] = _merged(document, schema)
    for name in _rows(document):  # `fields` may leave out any of them, and rename them
        schemas[name] = {key: part for key, part in schemas[name].items() if key != "required"}
    _parameters(document)
    for path, item in document["paths"].items():
        for method, operation in list(item.items()):
            if method != "parameters":
                _responses(document, path, method, operation)
                if method == "patch":
                    _patches(operation)
                _security(operation)
        _other_methods(path, item)
    return document


def _find(document: Document, part: Any) -> Any:
    while "$ref" in part:
        found: Any = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


# schemas


def _with_one_object(properties: Document) -> None:
    """`and` and `or` take an array, or one object."""
    for word in ("and", "or"):
        properties[word] = {"anyOf": [properties[word], properties[word]["items"]]}


def _merged(document: Document, schema: Document) -> Document:
    """All of its parts as one object; a change is closed."""
    parts = [_find(document, part) for part in schema["allOf"]]
    merged = {
        **{key: part for key, part in schema.items() if key != "allOf"},
        "type": "object",
        "properties": {name: part for each in parts for name, part in each["properties"].items()},
        "required": [name for each in parts for name in each.get("required", ())],
    }
    return {**merged, "additionalProperties": False} if "cursor" in merged["properties"] else merged


def _rows(document: Document) -> list[str]:
    """The resources, and numbers of their rows."""
    schemas = document["components"]["schemas"]
    numbers = [name for name in ("Row-Summary", "Row-Group") if name in schemas]
    return [*numbers, *(name for name in schemas if f"{name}Where" in schemas)]


def _patches(operation: Document) -> None:
    """The media types of a PATCH besides `application/json`, and the schema that its description names."""
    content = operation["requestBody"]["content"]
    named = re.findall("a JSON Patch, `([A-Za-z0-9]+)`", operation["description"])
    if not named:  # of many rows
        content["application/merge-patch+json"] = content["application/json"]
        return
    (name,) = named
    content["application/merge-patch+json"] = content["application/json"]
    content["application/json-patch+json"] = {"schema": {"$ref": f"#/components/schemas/{name}"}}


# parameters


def _parameters(document: Document) -> None:
    """The parameters of every operation, one for each field and operator; JSON as such."""
    components = document["components"]["parameters"]
    for name, part in components.items():
        components[name] = _as_content(part)
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                references = operation.get("parameters", ())
                found = [dict(_as_content(_find(document, part))) for part in references]
                own = {part["name"] for part in found}
                where = [_where_of(part) for part in references if part.get("$ref", "").endswith(".where")]
                operation["parameters"] = [
                    *found,
                    *(part for name in where for part in _filters(document, name) if _is_new(part["name"], own)),
                    *_headers_of_requests(path, method, own),
                ]


def _where_of(part: Document) -> str:
    """The schema of a parameter `where`."""
    return f"{part['$ref'].rpartition('/')[2].removesuffix('.where')}Where"


def _is_new(name: str, own: set[str]) -> bool:
    """Is a filter not among the parameters that are listed, nor of a field that is named like one of every list?"""
    return name not in own and name.partition("[")[0] not in (*RESERVED, *own & {"kinds"})


def _as_content(part: Document) -> Document:
    schema = part.get("schema", {})
    if "contentSchema" not in schema:
        return part
    content = {"application/json": {"schema": schema["contentSchema"]}}
    return {**{key: value for key, value in part.items() if key != "schema"}, "content": content}


def _filters(document: Document, where: str) -> list[Document]:
    """`total` and `total[gte]` for every field and operator of a `where`: a bare name is equality, and a list has
    commas."""
    flat: list[Document] = []
    for name, schema in document["components"]["schemas"][where]["properties"].items():
        kind = schema.get("$ref", "").rpartition("/")[2]
        if not kind.endswith("Filter"):
            continue
        for op, value in document["components"]["schemas"][kind]["properties"].items():
            part = {"name": name if op == "eq" else f"{name}[{op}]", "in": "query", "schema": _text(value)}
            if takes_list(op):
                several = {"type": "array", "items": _text(value["anyOf"][0]), "minItems": 1, "maxItems": 250}
                part |= {"style": "form", "explode": False, "schema": several}
            flat.append(part)
    return flat


def _text(schema: Document) -> Document:
    """The schema of the text of a value: a number that may be sent as a string is one."""
    if schema.get("type") == ["string", "integer"]:
        more = {key: part for key, part in schema.items() if key not in ("minimum", "maximum")}
        return {**more, "type": "string"}
    return schema


def _headers_of_requests(path: str, method: str, own: set[str]) -> list[Document]:
    """`If-None-Match` with reads, and `Prefer` with all that has a price."""
    if path.startswith(ADDRESSES) or path.startswith("/health/"):
        return []
    text = {"in": "header", "schema": {"type": "string"}}
    wanted = ["If-None-Match"] if method == "get" else []
    wanted += ["Prefer"] if path != "/openapi.json" and "Prefer" not in own else []
    return [{"name": name, **text} for name in wanted]


# responses


def _responses(document: Document, path: str, method: str, operation: Document) -> None:
    responses = operation["responses"]
    default = _find(document, responses.pop("default"))
    content = default["content"]
    for status in _statuses(path, method):
        if str(status) not in responses:
            responses[str(status)] = {"description": "An error.", "headers": {}, "content": content}
    for status, response in list(responses.items()):
        responses[status] = {**_find(document, response)}
        if not path.startswith(ADDRESSES):
            given = {name: _find(document, part) for name, part in responses[status].get("headers", {}).items()}
            responses[status]["headers"] = {**_headers(path, method, int(status)), **given}
    if method == "get" and not path.startswith((*ADDRESSES, "/health/")):
        responses["304"] = {"description": "Not modified.", "headers": _headers(path, method, 304)}
    operation["responses"] = dict(sorted(responses.items()))


def _statuses(path: str, method: str) -> tuple[int, ...]:
    if path.startswith("/.well-known/"):
        return (400, 503)
    if path.startswith("/oauth/"):
        return (503,)
    if path == "/graphql":
        return GRAPHQL[method]
    own = (410,) if path.endswith("/changes") else ()
    return (*SERVICE.get(path, {"get": READING, "delete": DELETING}.get(method, WRITING)), *own)


def _headers(path: str, method: str, status: int) -> Document:
    names: list[str] = [] if path == "/graphql" and status >= 400 else ["Cache-Control", "Vary"]
    if status >= 400:
        names += ERROR_HEADERS.get(status, ()) if path != "/graphql" else ()
    elif path not in SERVICE:
        names += ["Cost", "Preference-Applied"]
        if method == "get":
            names += ["Change-Cursor"]
            names += ["ETag"] if path != "/graphql" else []
            names += ["Link"] if status == 200 and not path.endswith("/{id}") else []
    elif path == "/openapi.json" and method == "get":
        names.append("ETag")
    optional = (*OPTIONAL, *(["ETag"] if path.endswith("/changes") else []))
    return {name: {"required": name not in optional, "schema": {"type": "string"}} for name in names}


# security and methods


def _security(operation: Document) -> None:
    """`read` and `write` stand for those of all resources."""
    for part in list(operation.get("security", ())):
        if part.get("oauth2"):
            operation["security"].append({"oauth2": sorted({scope.rpartition(":")[2] for scope in part["oauth2"]})})


def _other_methods(path: str, item: Document) -> None:
    """HEAD like GET without the content, and OPTIONS everywhere."""
    tags = next(part["tags"] for method, part in item.items() if method != "parameters")
    if "get" in item:
        without = {
            status: {key: part for key, part in response.items() if key != "content"}
            for status, response in item["get"]["responses"].items()
        }
        name = "head" + item["get"]["operationId"]
        item["head"] = {**item["get"], "operationId": name, "responses": without}
    names = ("Allow", *(["Accept-Patch"] if "patch" in item else []))
    headers = {name: {"required": name == "Allow", "schema": {"type": "string"}} for name in names}
    responses: Document = {"204": {"description": "The methods.", "headers": headers}}
    security: list[Document] = [{}] if path.startswith(ADDRESSES) else [{"bearer": []}, {}]
    missing = (404,) if "{collection}" in path else ()
    for status in (400,) if path.startswith(ADDRESSES) else (400, 401, *missing):
        error = {"description": "An error.", "headers": _headers("", "options", status)}
        responses[str(status)] = {**error, "content": {"application/problem+json": {"schema": {"type": "object"}}}}
    name = "options" + next(part["operationId"] for method, part in item.items() if method != "parameters")
    item["options"] = {"operationId": name, "tags": tags, "security": security, "responses": responses}
