"""The parts of an OpenAPI document that operations share: query parameters, headers and responses.

Each stands once among the components, and operations refer to it:

    parameters   first, after, …   Order.sort, Order.where   Order.total, Order.total.gte (`total[gte]`)   If-Match, …
    headers      ETag, Link, …
    responses    order, orders (what a 200 holds)            BadRequest, NotFound, … (problems)

A role sees the parameters of those fields that exist for it. HEAD answers like GET without the content.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diptych.api.draft import DEFAULT_SIZE
from diptych.api.rest.query import RESERVED
from diptych.api.rest.schemas import MAX_IN, Schema, as_text, nullable, ref
from diptych.model.scalars import Scalar
from diptych.model.view import ResourceView, View

Part = dict[str, Any]

SERVICE = "service"
"""The tag of what is there whatever the model is; no resource begins with a small letter."""
MAX_OFFSET = 10_000
MAX_SORT = 5
ERRORS = {
    400: ("BadRequest", "Something in the request is not valid, or asks for more than the limits allow."),
    401: ("Unauthenticated", "The token is not valid; or there is none, and one is needed."),
    403: ("Forbidden", "The token does not reach this."),
    404: ("NotFound", "There is no such thing, or none that the caller may read."),
    405: ("MethodNotAllowed", "The path does not have this method; or a mutation came by GET."),
    406: ("NotAcceptable", "The request accepts no media type that there is."),
    409: ("Conflict", "The row, or another one, stands against it: a state, a unique value, a reference."),
    410: ("ResumeGap", "Not all changes after the cursor are kept, or it is of another database: read anew."),
    412: ("PreconditionFailed", "The row has another version than `If-Match` names."),
    413: ("PayloadTooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The body has a media type that is not taken."),
    422: ("BadUserInput", "A value in the body is not valid; or an `Idempotency-Key` came with another body."),
    429: ("RateLimited", "Too many requests of the caller were new; those that are known go on."),
    431: ("HeadersTooLarge", "The address and the headers are too large together."),
    503: ("Unavailable", "The service cannot answer now."),
    504: ("Timeout", "The answer took too long."),
}
"""The errors that a route can have: status → name of its response, and what it means."""
_TOLD_BY = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    415: ("Accept-Patch",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
"""The headers of some of them."""
_HEADERS = {
    "ETag": ("A tag of this answer, for `If-None-Match`.", True),
    "Cache-Control": ("Who may keep the answer, and for how long.", True),
    "Vary": ("The request headers on which the answer depends.", True),
    "Link": ("Where the next and the previous page are (RFC 8288).", False),
    "Allow": ("The methods that the path has.", True),
    "Accept-Patch": ("The media types that PATCH takes (RFC 5789).", False),
    "Location": ("Where the new row is; of many there is none.", False),
    "Log-ETag": ("A tag of what a page tells, without its cursors; a stream has none.", False),
    "Change-Cursor": ("From here on, changes can be followed; of what was read, with `Prefer: change-cursor`.", False),
    "Cost": ("`price=153, allowed=5000, depth=3`, with `Prefer: cost`: the price, and the one that is allowed.", False),
    "Applied": ("The preferences that were followed, if there were any (RFC 7240).", False),
    "New-ETag": ("A tag of the new row, for `If-Match`; of many there is none.", False),
    "Idempotency-Replayed": ("`true`, if the answer is that to an earlier request with this key.", False),
    "Preference-Applied": ("The preference that was followed (RFC 7240).", True),
    "Retry-After": ("Seconds after which to try again.", True),
    "WWW-Authenticate": ("How to authenticate (RFC 6750).", True),
}
_SENT_AS = {"Log-ETag": "ETag", "New-ETag": "ETag", "Applied": "Preference-Applied"}
"""Headers that mean something else in some answers, by their name among the components."""
_FIELDS = (
    "The fields of the answer, through relations too: `name,recent:posts[first=5;sort=-createdAt](title)`. "
    "A relation takes the fields of its target in parentheses; a to-many one takes `first last after before "
    "offset sort where` in brackets before them. `alias:` renames. `*` is all plain fields, and the default."
)
_PAGING: dict[str, tuple[Schema, str, tuple[str, ...]]] = {
    "first": ({"default": DEFAULT_SIZE}, "The first so many.", ("last",)),
    "last": ({}, "The last so many.", ("first", "offset")),
    "after": ({"type": "string", "format": "cursor"}, "Begin after this cursor: `page.next`.", ()),
    "before": ({"type": "string", "format": "cursor"}, "End before this cursor: `page.previous`.", ()),
    "offset": ({"minimum": 0, "maximum": MAX_OFFSET}, "Leave out so many first.", ("last",)),
    "count": ({"type": "string", "enum": ["exact"]}, "Adds `page.total`.", ()),
}
"""Name → schema (an integer, if it says nothing else), meaning, and the parameters that it excludes."""
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "An id; an ill-formed one names nothing.",
    "schema": {"type": "string"},
}
_REQUEST_HEADERS: dict[str, tuple[str, Schema]] = {
    "If-None-Match": ("Tags of answers that the client has: 304 if this one is among them.", {}),
    "If-Match": ("Tags of the row, of which only the version counts: 412 if it has another by now.", {}),
    "Idempotency-Key": (
        "A key of the client's choice. The request is done once: when it comes again within 24 hours, it gets the same "
        "answer.",
        {"pattern": r'^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$', "format": "idempotency-key"},
    ),
    "Prefer": ("`return=representation` answers with the row as it was; `cost` with a `Cost`, too (RFC 7240).", {}),
    "Prefer-Read": ("`change-cursor` answers with a `Change-Cursor`, `cost` with a `Cost`, too (RFC 7240).", {}),
    "Prefer-Cursor": ("`change-cursor` answers with a `Change-Cursor`, too (RFC 7240).", {}),
    "Prefer-Cost": ("`cost` answers with a `Cost`, too (RFC 7240).", {}),
    "Last-Event-ID": (
        "The cursor after which a stream goes on, before that in `after`: what a browser sends when it comes again.",
        {"format": "change-cursor"},
    ),
}


_READING = ("If-None-Match", "Prefer-Read")
"""The request headers of a read."""


def refer(kind: str, name: str) -> Part:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


# parameters


def list_parameters(each: ResourceView) -> list[Part]:
    """References to all parameters of a list of a resource, in the order in which they are documented."""
    own = [f"{each.resource.name}.{name}" for name in _own_parameters(each)]
    return [refer("parameters", name) for name in (*own[:1], *_PAGING, *own[1:], *_READING)]


def one_parameters(each: ResourceView) -> list[Part]:
    """References to the parameters of one row."""
    return [refer("parameters", name) for name in (f"{each.resource.name}.fields", *_READING)]


def filter_parameters(each: ResourceView, *taken: str) -> list[str]:
    """The names, among its components, of the filters of a resource, but for those of fields whose name is taken."""
    others = ("fields", "sort")
    return [name for name in _own_parameters(each) if name not in others and name.split(".")[0] not in taken]


def build_parameters(view: View, max_page: int) -> dict[str, Part]:
    """Every parameter that operations refer to."""
    found = {name: _paging(name, max_page) for name in _PAGING}
    found["id"] = _ID
    for name, (text, more) in _REQUEST_HEADERS.items():
        schema = {"type": "string", **more}
        sent = "Prefer" if name.startswith("Prefer-") else name
        found[name] = {"name": sent, "in": "header", "description": text, "schema": schema}
    for each in view.resources.values():
        found |= {f"{each.resource.name}.{name}": part for name, part in _own_parameters(each).items()}
    return found


def _paging(name: str, max_page: int) -> Part:
    schema, text, excludes = _PAGING[name]
    if "type" not in schema:
        schema = {"type": "integer", "minimum": 1, "maximum": max_page, **schema}
    if excludes:
        text += f" Not together with {' or '.join(f'`{other}`' for other in excludes)}."
    part = {**_query(name, text), "schema": schema}
    return {**part, "x-excludes": list(excludes)} if excludes else part


def _query(name: str, description: str) -> Part:
    return {"name": name, "in": "query", "description": description}


def _own_parameters(each: ResourceView) -> dict[str, Part]:
    """The parameters that are of a resource's own: `fields` first."""
    names = list(each.fields)
    fields = {"type": "string", "format": "fields", "minLength": 1}
    found = {"fields": {**_query("fields", _FIELDS), "schema": fields, "example": ",".join(names[:2]) or "*"}}
    if sortable := [name for name, view in each.searchable.items() if view.field.scalar.sortable]:
        found["sort"] = _sort(sortable)
    found["where"] = {
        **_query("where", "Only those for which this holds, as JSON; together with all other filters."),
        "content": {
            "application/json": {
                "schema": ref(each.resource.name + "Where"),
                "example": {name: {"isNull": False} for name in names[:1]},
            }
        },
    }
    for name, field in each.searchable.items():
        if name not in RESERVED:
            found |= _filters(name, field.field.scalar)
    return found


def _sort(names: list[str]) -> Part:
    key = f"-?({'|'.join(names)})"
    schema = {"type": "string", "pattern": f"^{key}(,{key}){{0,{MAX_SORT - 1}}}$"}
    text = f"Up to {MAX_SORT} keys, `-` for descending; nulls stand last, ids break ties."
    return {**_query("sort", text), "schema": schema, "example": "-" + names[-1]}


def _filters(name: str, scalar: Scalar) -> dict[str, Part]:
    """The filters of one field by `name.operator`; a bare name is equality."""
    return {name if op == "eq" else f"{name}.{op}": _filter(name, op, as_text(scalar)) for op in scalar.ops}


def _filter(name: str, op: str, value: Schema) -> Part:
    found = _query(name if op == "eq" else f"{name}[{op}]", _MEANING[op].format(name))
    if op == "isNull":
        return {**found, "schema": {"type": "boolean"}}
    if op == "in":
        several = {"type": "array", "items": value, "minItems": 1, "maxItems": MAX_IN}
        return {**found, "style": "form", "explode": False, "schema": several}
    return {**found, "schema": value}


_MEANING = {
    "eq": "`{}` equals this.",
    "ne": "`{}` does not equal this; null does not.",
    "lt": "`{}` is less than this.",
    "lte": "`{}` is at most this.",
    "gt": "`{}` is greater than this.",
    "gte": "`{}` is at least this.",
    "in": "`{}` is one of these, with commas between them.",
    "contains": "`{}` contains this text, in the same case.",
    "startsWith": "`{}` starts with this text, in the same case.",
    "isNull": "Is `{}` null?",
}


# headers and responses


def build_headers() -> dict[str, Part]:
    """Every header that responses refer to."""
    return {
        name: {"description": text, "required": required, "schema": {"type": "string"}}
        for name, (text, required) in _HEADERS.items()
    }


def headers(*names: str) -> dict[str, Part]:
    """The headers of a response."""
    return {_SENT_AS.get(name, name): refer("headers", name) for name in names}


def operation(summary: str, tag: str, parameters: Iterable[Part] = (), description: str = "") -> Part:
    """An operation, but for its id and its responses."""
    found: Part = {"summary": summary, "tags": [tag]}
    if description:
        found["description"] = description
    if given := list(parameters):
        found["parameters"] = given
    return found


def errors(statuses: Iterable[int]) -> Part:
    """The responses of errors."""
    return {str(status): refer("responses", ERRORS[status][0]) for status in sorted(statuses)}


CACHED = ("ETag", "Cache-Control", "Vary")
"""The headers of every answer to a GET."""
COSTED = ("Cost", "Applied")
"""The headers of an answer that tells what it cost."""
PLACED = ("Change-Cursor", "Applied")
"""The headers of an answer from which changes can be followed."""


def build_responses(view: View, problem: str) -> dict[str, Part]:
    """Every response that operations refer to; `problem` names the schema of an error."""
    found: dict[str, Part] = {}
    for each in view.resources.values():
        name = each.resource.name
        found[each.resource.one] = answer(f"One {name}.", ref(name), *CACHED, *PLACED, "Cost")
        found[each.resource.many] = answer(f"A page of {name}.", _page_of(name), *CACHED, "Link", *PLACED, "Cost")
    same = "The client has this answer already."
    found["NotModified"] = {"description": same, "headers": headers(*CACHED, *PLACED, "Cost")}
    for status, (name, text) in ERRORS.items():
        extra = _TOLD_BY.get(status, ())
        content = {"application/problem+json": {"schema": ref(problem)}}
        found[name] = {
            "description": text,
            "headers": headers("Cache-Control", "Vary", *extra),
            "content": content,
        }
    return found


def answer(text: str, schema: Schema, *names: str) -> Part:
    """A response with JSON."""
    content = {"application/json": {"schema": schema}}
    return {"description": text, "headers": headers(*names), "content": content}


def _page_of(name: str) -> Schema:
    return closed({"data": {"type": "array", "items": ref(name)}, "page": ref("PageInfo")})


def closed(properties: dict[str, Schema], *optional: str) -> Schema:
    """An object that has these properties, all but the optional ones, and no other."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def page_info(max_page: int) -> Schema:
    """What leads on from a page."""
    size: Schema = {"type": "integer", "minimum": 1, "maximum": max_page}
    total: Schema = {"type": "integer", "minimum": 0}
    cursor = nullable({"type": "string", "format": "cursor"})
    properties = {
        "size": {**size, "description": "How many were asked for."},
        "next": {**cursor, "description": "For `after`; null on the last page."},
        "previous": {**cursor, "description": "For `before`; null on the first page."},
        "total": {**total, "description": "How many on all pages; only with `count=exact`."},
    }
    return closed(properties, "total")


def problem_schema() -> Schema:
    """An error."""
    text: Schema = {"type": "string"}
    fault = closed({"pointer": {**text, "description": "Where in the request."}, "message": text})
    properties = {
        "type": text,
        "title": text,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": text,
        "code": {**text, "description": "What went wrong, in one word: the same as in GraphQL."},
        "errors": {"type": "array", "items": fault, "description": "Every place that is at fault."},
        "allowed": {
            "type": ["array", "integer"],
            "items": text,
            "description": "The states that could come next; or the price or depth that a request may have.",
        },
        "price": {"type": "integer", "minimum": 0, "description": "What the request would have cost."},
        "depth": {"type": "integer", "minimum": 0, "description": "How deep the request is."},
        "retryAfter": {"type": "integer", "minimum": 0, "description": "Seconds after which to try again."},
    }
    told = ("errors", "allowed", "price", "depth", "retryAfter")
    return {**closed(properties, *told), "description": "An error (RFC 9457)."}
