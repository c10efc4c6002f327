"""Components of the OpenAPI document that operations share: query parameters, headers and responses.

Each is defined once among the components, and operations refer to it:

    parameters   first, after, …   Order.sort, Order.where   total-Decimal_12_2 (`total=5`)   If-Match, …
    headers      ETag, Link, …
    responses    orders (a page)            NotFound, Conflict, … and Error (problems)

A list has a parameter for equality with each field, and for enums one for any of several values; `where` has all other
comparisons with their types, and `total[gte]=5` is in words. These parameters are shared by all fields of their name
and type, and a role sees those of the fields that exist for it. `GENERAL` says once what is true of every operation and
would be repeated in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from diptych.api.ask_builder import DEFAULT_SIZE
from diptych.api.descriptions import describe_search
from diptych.api.openapi.schemas import (
    MAX_IN,
    Schema,
    nullable,
    ref,
    scalar_name,
    text_schema,
    with_deprecated_values,
    with_deprecation,
)
from diptych.api.query_string import RESERVED
from diptych.model.defs import SERVER_FIELDS, FieldDef
from diptych.model.operators import MAX_SEARCHED
from diptych.model.resource_view import ResourceView

JsonObject = dict[str, Any]

SERVICE = "service"
"""The tag of what is there whatever the model is; no resource begins with a small letter."""
MAX_OFFSET = 10_000
MAX_SORT = 5
ERRORS = {
    400: ("BadRequest", "Something in the request is not valid, or asks for more than the limits allow."),
    401: ("Unauthenticated", "The token is not valid; or there is none, and one is needed."),
    403: ("Forbidden", "The token does not allow this."),
    404: ("NotFound", "There is no such thing, or none that the caller may read."),
    405: ("MethodNotAllowed", "The path does not have this method; or a mutation came by GET."),
    406: ("NotAcceptable", "No media type that the request accepts is available."),
    409: ("Conflict", "It conflicts with a row: a state, a unique value, a reference."),
    410: ("ResumeGap", "Changes after the cursor are no longer retained, or it is of another database: read again."),
    412: ("PreconditionFailed", "The row has another version than `If-Match` names."),
    413: ("PayloadTooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The media type of the body is not supported."),
    422: ("BadUserInput", "A value in the body is not valid; or an `Idempotency-Key` came with another body."),
    429: ("RateLimited", "The caller sent too many new requests; known ones are still answered."),
    431: ("HeadersTooLarge", "The address and the headers are too large together."),
    503: ("Unavailable", "The service cannot answer now."),
    504: ("Timeout", "The answer took too long."),
}
"""The errors of routes: status → name of the response, and description."""
OWN_ERRORS = (404, 409, 412, 422)
"""The errors that an operation has under their status; all others are `default`."""
_HEADERS = {
    "ETag": ("The ETag of this response, for `If-Match`.", True),
    "Cache-Control": ("Who may cache the response, and for how long.", True),
    "Location": ("The path of the new row.", True),
    "Idempotency-Replayed": ("`true` if this is the stored response to an earlier request with this key.", False),
    "Preference-Applied": ("The preference that was applied (RFC 7240).", True),
    "Retry-After": ("Seconds after which to try again, with 429 and 503.", False),
    "WWW-Authenticate": ("How to authenticate, with 401 (RFC 6750).", False),
}
GENERAL = """\
Every path that has GET answers HEAD like it, without the content, and every path answers OPTIONS with its methods in \
`Allow` (and `Accept-Patch`). Lists and `/graphql` also answer QUERY, with the parameters as a JSON object in the \
body, which OpenAPI 3.1 has no word for.

Every response has `Cache-Control`, and those that depend on the caller have `Vary`. A read has an `ETag`, and is \
answered with 304 if `If-None-Match` names it; a page also has `Link` to the next and the previous one (RFC 8288).

`Prefer: cost` adds the header `Cost`: `price=153, allowed=5000, depth=3`; on a read, `Prefer: change-cursor` adds \
`Change-Cursor`, from which changes can be followed. What was applied is in `Preference-Applied` (RFC 7240).

Rows are filtered by `where`, a condition as JSON: `{"total": {"gte": "5"}}`, and by short forms of it. Every list and \
every feed of changes takes `field=value` and `field[operator]=value` for every field and operator of its `where`: \
`status=paid`, `total[gte]=5`, `status[in]=paid,shipped`, `note[isNull]=true`. Only the most usual ones are listed as \
parameters. All filters must hold, and so must all members of an object in `where`; `and` and `or` take an array, or \
one object.

Lists are also served as `text/csv` and `application/x-ndjson`, by `Accept`: the rows of the page, and with \
`first=all` the whole list, for roles that may export it. POST on a collection takes up to 100 rows in these formats, \
too.

A list is sorted by up to 5 keys. Besides its fields, these are fields of a row that it refers to (`sort=author.name`) \
and numbers of related rows (`sort=-posts.count`, `-lines.total.sum`). It is also filtered by such numbers: \
`{"posts": {"count": {"gte": 3}}}`, `{"lines": {"total": {"sum": {"gte": "10"}}}}`. \
A row shows them as `postsSummary(count,createdAt(max))` in `fields`.

A list in a query string is sent as `sort=a,b` or as `sort=a&sort=b`.

A row has all plain fields, or exactly what `fields` selects: then what is not selected is absent, and a field that is \
selected under an alias has that name. Relations are there if `fields` selects them. `authorId` is the id of `author`. \
Moments are in UTC, as `2026-01-31T12:00:00.000000Z` (RFC 3339), days as \
`2026-01-31`; decimal numbers are strings with all their fraction digits.

Changes come as `application/json`, a page of the log, or as `text/event-stream`, server-sent events: each has the \
cursor as its `id` and a change as its `data`, a heartbeat has the cursor alone, and an event `end` has a code and a \
cursor. Without a cursor, the log starts at the oldest retained change, and a stream now. The row is null with \
`DELETED` and `LEFT`. Changes are filtered by fields of rows, not by numbers of related rows (`count`, sums).
"""
"""What is true of every operation: said once, since a large model has thousands."""
_FIELDS = (
    "The fields of the response, also of relations: `name,recent:posts[first=5;sort=-createdAt](title)`. "
    "A relation takes the fields of its target in parentheses; a to-many one takes `first last after before "
    "offset sort where` in brackets before them. `alias:` renames. `*` is all plain fields, and the default."
)
_PAGING: dict[str, tuple[Schema, str, tuple[str, ...]]] = {
    "first": ({}, f"The number of rows from the start, {DEFAULT_SIZE} if neither it nor `last` is given.", ("last",)),
    "last": ({}, "The number of rows from the end.", ("first", "offset")),
    "after": ({"type": "string", "format": "cursor"}, "For the next page: its `page.next`.", ()),
    "before": ({"type": "string", "format": "cursor"}, "With `last`, for the previous page: its `page.previous`.", ()),
    "offset": ({"minimum": 0, "maximum": MAX_OFFSET}, "The number of rows to skip.", ("last",)),
    "count": ({"type": "string", "const": "exact"}, "Adds `page.total`.", ()),
}
"""Name → schema (an integer by default), description, and parameters that it excludes."""
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "An id; a malformed one is not found.",
    "schema": {"type": "string"},
}
_REQUEST_HEADERS: dict[str, tuple[str, Schema]] = {
    "If-Match": ("ETags of the row, of which only the version counts: 412 if the row has another one.", {}),
    "Idempotency-Key": (
        "A key of the client's choice. It is executed once: a repetition within 24 hours gets the same response.",
        {"pattern": r'^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$', "format": "idempotency-key"},
    ),
    "Prefer": ("`return=representation` returns the row as it was (RFC 7240).", {}),
    "Last-Event-ID": (
        "The cursor after which a stream resumes, in preference to `after`; browsers send it when they reconnect.",
        {"format": "change-cursor"},
    ),
}


def refer(kind: str, name: str) -> JsonObject:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


# parameters


def list_parameters(resource: ResourceView, *, filters: bool) -> list[JsonObject]:
    """References to the parameters of a list of a resource, in documentation order; with `filters`, also those of its
    fields."""
    own = (f"{resource.resource.name}.{name}" for name in _shaping(resource))
    fields = (key for field in _filtered(resource) for key in _filters(field, resource)) if filters else ()
    return [refer("parameters", name) for name in ("fields", *_PAGING, *own, *fields)]


def only_deleted(resource: ResourceView) -> list[JsonObject]:
    """The parameter for deleted rows, where the role may see them."""
    if not resource.may("restore"):
        return []
    text = "With `only`: of the deleted rows, and no others."
    return [{**_query("deleted", text), "schema": {"type": "string", "enum": ["only"]}}]


def _shaping(resource: ResourceView) -> Iterator[str]:
    if _sortable(resource):
        yield "sort"
    yield "where"
    if resource.searched:
        yield "search"


def build_parameters(max_page: int) -> dict[str, JsonObject]:
    """The parameters that do not depend on the model."""
    parameters = {name: _paging(name, max_page) for name in _PAGING}
    parameters["id"] = _ID
    for name, (text, more) in _REQUEST_HEADERS.items():
        schema = {"type": "string", **more}
        parameters[name] = {"name": name, "in": "header", "description": text, "schema": schema}
    fields = {"type": "string", "format": "fields", "minLength": 1}
    return {**parameters, "fields": {**_query("fields", _FIELDS), "schema": fields}}


def add_parameters(parameters: dict[str, JsonObject], resource: ResourceView) -> None:
    """Add the parameters of one resource; those of its fields may be there already."""
    name = resource.resource.name
    if sortable := _sortable(resource):
        old = {key: shown.field.deprecated for key, shown in resource.searchable.items() if shown.field.deprecated}
        sort = _sort(sortable)
        parameters[f"{name}.sort"] = {**sort, "schema": with_deprecated_values(sort["schema"], old)}
    parameters[f"{name}.where"] = {"name": "where", "in": "query", "schema": in_json(ref(name + "Where"))}
    if resource.searched:
        text = {"type": "string", "minLength": 1, "maxLength": MAX_SEARCHED, "format": "search"}
        parameters[f"{name}.search"] = {**_query("search", describe_search(resource)), "schema": text}
    for field in _filtered(resource):
        for key, parameter in _filters(field, resource).items():
            parameters.setdefault(key, parameter)


def in_json(schema: Schema) -> Schema:
    """The schema of a query parameter whose text is JSON. (A parameter with `content` would say so, but many generators
    of clients cannot read that; and for a `contentMediaType` Swagger UI asks for a file.)"""
    return {"type": "string", "contentSchema": schema}


def _paging(name: str, max_page: int) -> JsonObject:
    schema, text, excludes = _PAGING[name]
    if "type" not in schema:
        schema = {"type": "integer", "minimum": 1, "maximum": max_page, **schema}
    if excludes:
        text += f" Not together with {' or '.join(f'`{other}`' for other in excludes)}."
    part = {**_query(name, text), "schema": schema}
    return {**part, "x-excludes": list(excludes)} if excludes else part


def _query(name: str, description: str) -> JsonObject:
    return {"name": name, "in": "query", "description": description}


def _sortable(resource: ResourceView) -> list[str]:
    """The fields and the members of value objects to sort by, as texts of a pattern."""
    names = []
    for name, view in resource.searchable.items():
        members = view.field.scalar.members or {}
        names += [name] if view.field.scalar.sortable else []
        names += [rf"{name}\.{key}" for key, member in members.items() if member.scalar.sortable]
    return names


def _sort(names: list[str]) -> JsonObject:
    key = f"-?({'|'.join(names)})"
    schema = {"type": "string", "pattern": f"^{key}(,{key}){{0,{MAX_SORT - 1}}}$"}
    return {**_query("sort", "`-` is descending."), "schema": schema}


def _filtered(resource: ResourceView) -> list[FieldDef]:
    """The fields that have parameters: not those of every resource, nor those named like a parameter of every list."""
    return [
        view.field
        for name, view in resource.searchable.items()
        if name not in RESERVED and name not in SERVER_FIELDS and "eq" in view.field.scalar.ops
    ]


def _filters(field: FieldDef, resource: ResourceView) -> dict[str, JsonObject]:
    """The parameters of a field by their names among the components: `status-OrderStatus`, `status.in-OrderStatus`;
    those of a deprecated one are its own, `Order.status-OrderStatus`."""
    name, kind, schema = field.name, scalar_name(field.scalar), text_schema(field.scalar)
    filters = {f"{name}-{kind}": {**_query(name, f"Only rows with this `{name}`."), "schema": schema}}
    if field.scalar.choices:
        several = {"type": "array", "items": schema, "minItems": 1, "maxItems": MAX_IN}
        filters[f"{name}.in-{kind}"] = {
            **_query(f"{name}[in]", f"Only rows with one of these `{name}`."),
            "schema": several,
        }
    if field.deprecated is None:
        return filters
    own = resource.resource.name
    return {f"{own}.{key}": with_deprecation(parameter, field.deprecated) for key, parameter in filters.items()}


# headers and responses


def build_headers() -> dict[str, JsonObject]:
    """Every header that responses refer to."""
    return {
        name: {"description": text, "required": required, "schema": {"type": "string"}}
        for name, (text, required) in _HEADERS.items()
    }


def headers(*names: str) -> dict[str, JsonObject]:
    """The headers of a response."""
    return {name: refer("headers", name) for name in names}


def operation(summary: str, tag: str, parameters: Iterable[JsonObject] = (), description: str = "") -> JsonObject:
    """An operation without its id and its responses."""
    part: JsonObject = {"summary": summary, "tags": [tag]}
    if description:
        part["description"] = description
    if listed := list(parameters):
        part["parameters"] = listed
    return part


def errors(statuses: Iterable[int]) -> JsonObject:
    """The responses of errors: some under their status, the others as `default`."""
    own = {str(status): refer("responses", ERRORS[status][0]) for status in sorted(statuses) if status in OWN_ERRORS}
    return {**own, "default": refer("responses", "Error")}


def build_responses(problem: str) -> dict[str, JsonObject]:
    """The responses of errors; `problem` names the schema of one."""
    content = {"application/problem+json": {"schema": ref(problem)}}
    responses: dict[str, JsonObject] = {
        ERRORS[status][0]: {"description": ERRORS[status][1], "content": content} for status in OWN_ERRORS
    }
    others = " ".join(f"{status}: {text}" for status, (_, text) in ERRORS.items() if status not in OWN_ERRORS)
    more = headers("WWW-Authenticate", "Retry-After")
    return {**responses, "Error": {"description": f"Any other error. {others}", "headers": more, "content": content}}


def add_responses(responses: dict[str, JsonObject], resource: ResourceView, page: str) -> None:
    """Add the response of a list of one resource; `page` names the schema of a page."""
    responses[resource.resource.many] = answer("A page.", ref(page))


def page_of(name: str, page: str) -> Schema:
    """The schema of a page."""
    properties = {"data": {"type": "array", "items": ref(name)}, "page": ref(page)}
    return {"type": "object", "properties": properties, "required": list(properties)}


def answer(text: str, schema: Schema, *names: str) -> JsonObject:
    """A response with JSON."""
    response: JsonObject = {"description": text, "content": {"application/json": {"schema": schema}}}
    return {**response, "headers": headers(*names)} if names else response


def html(status: int) -> JsonObject:
    """The content of a page for browsers; a query string or a form that cannot be read is a problem."""
    page: JsonObject = {"text/html": {"schema": {"type": "string"}}}
    return page | ({"application/problem+json": {"schema": {"type": "object"}}} if status == 400 else {})


def closed(properties: dict[str, Schema], *optional: str) -> Schema:
    """An object with these properties, all required but the optional ones, and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def page_schema(max_page: int) -> Schema:
    """The schema of `page`."""
    size: Schema = {"type": "integer", "minimum": 1, "maximum": max_page}
    total: Schema = {"type": "integer", "minimum": 0}
    cursor = nullable({"type": "string", "format": "cursor"})
    properties = {
        "size": {**size, "description": "The requested page size."},
        "next": {**cursor, "description": "For `after`; null on the last page."},
        "previous": {**cursor, "description": "For `before`; null on the first page."},
        "total": {**total, "description": "The number of rows on all pages; only with `count=exact`."},
    }
    return closed(properties, "total")


def problem_schema(*, explained: bool = False) -> Schema:
    """The schema of an error; with `explained`, as `diptych dev` answers an admin."""
    text: Schema = {"type": "string"}
    fault = closed({"pointer": {**text, "description": "The path into the request."}, "message": text})
    properties = {
        "type": {**text, "example": "about:blank"},
        "title": {**text, "example": "Not found"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599, "example": 404},
        "detail": {**text, "example": "There is nothing here."},
        "code": {**text, "description": "The error code, the same as in GraphQL.", "example": "NOT_FOUND"},
        "errors": {"type": "array", "items": fault, "description": "Every fault of the request."},
        "allowed": {
            "type": ["array", "integer"],
            "items": text,
            "description": "The states that are possible next; or the allowed price, depth or rows.",
        },
        "price": {"type": "integer", "minimum": 0, "description": "The price of the request."},
        "list": {**text, "description": "The list whose page would have to be smaller."},
        "first": {"type": "integer", "minimum": 1, "description": "The largest page that would help."},
        "depth": {"type": "integer", "minimum": 0, "description": "The depth of the request."},
        "rows": {"type": "integer", "minimum": 0, "description": "How many rows the request writes, at least."},
        "field": {**text, "description": "The field whose sum has too many digits."},
        "row": {**text, "description": "The id of the row, if many are changed by a filter."},
        "retryAfter": {"type": "integer", "minimum": 0, "description": "Seconds after which to try again."},
        "request": {"type": ["string", "integer"], "description": "The request of a batch: its id, or its position."},
    }
    if explained:
        why = "In `diptych dev`, for an admin: the rules that led to this, in sentences."
        properties["why"] = {"type": "array", "items": text, "description": why}
    optional = (
        "errors",
        "allowed",
        "price",
        "list",
        "first",
        "depth",
        "rows",
        "field",
        "row",
        "retryAfter",
        "request",
        "why",
    )
    return {**closed(properties, *optional), "description": "An error (RFC 9457)."}
