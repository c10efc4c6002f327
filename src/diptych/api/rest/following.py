"""View → the operations of an OpenAPI document that tell of changes, as one role can follow them.

    GET /orders/changes     followOrderChange      a page of the log, or a stream that goes on

The name is that of the schema `OrderChange`, which no resource can have: `listOrderChanges` could be that of another.
"""

from __future__ import annotations

from diptych.api.draft import DEFAULT_SIZE
from diptych.api.rest.components import COSTED, Part, closed, filter_parameters, headers, operation, refer
from diptych.api.rest.schemas import Schema, described, nullable, ref
from diptych.ask.slots import CHANGE_KIND
from diptych.model.scalars import DATETIME
from diptych.model.view import ResourceView, View

KINDS = "kinds"
"""The one parameter of changes that lists do not have: a field of this name is filtered through `where`."""
STREAM = "text/event-stream"
_CURSOR: Schema = {"type": "string", "format": "change-cursor"}
_TOLD = (
    "As `application/json`, a page of the log; as `text/event-stream`, server-sent events that go on: each has the "
    "cursor as its `id` and a change as its `data`, a heart-beat has the cursor alone, and an event `end` has a code "
    "and a cursor. Without a cursor, the log begins at the oldest change that is kept, and a stream now."
)
_EVENT = 'id: 1f0c…\ndata: {"cursor":"1f0c…","kind":"CREATED","id":"…","at":"…",…}\n\n'


def following(each: ResourceView) -> Part:
    """GET on the changes of a collection, but for its errors."""
    found = each.resource
    common = [f"changes.{name}" for name in ("first", KINDS, "after")]
    own = [f"{found.name}.{name}" for name in filter_parameters(each, KINDS)]
    names = (f"{found.name}.fields", *common, *own, "If-None-Match", "Last-Event-ID", "Prefer-Cost")
    given = [refer("parameters", name) for name in names]
    get = operation(f"The changes of {found.name}, as they were committed.", found.name, given, _TOLD)
    content = {
        "application/json": {"schema": _page(found.name)},
        STREAM: {"schema": {"type": "string"}, "example": _EVENT},
    }
    ok = {"description": f"Changes of {found.name}.", "headers": headers(*FOLLOWED), "content": content}
    return {**get, "responses": {"200": ok}}


FOLLOWED = ("Log-ETag", "Cache-Control", "Vary", "Change-Cursor", *COSTED)
"""The headers of what tells of changes."""


def build_changes(view: View) -> dict[str, Schema]:
    """The schemas of changes, by name."""
    found = {each.resource.name + "Change": _change(each) for each in view.resources.values()}
    kinds = described({"type": "string", "enum": list(CHANGE_KIND.choices)}, CHANGE_KIND.description)
    return {**found, CHANGE_KIND.name: kinds} if found else {}


def following_parameters(view: View, max_page: int) -> dict[str, Part]:
    """The parameters that changes of all resources have, if there is any to follow."""
    if not view.resources:
        return {}
    size = {"type": "integer", "minimum": 1, "maximum": max_page, "default": DEFAULT_SIZE}
    kinds = {"type": "array", "items": ref(CHANGE_KIND.name), "minItems": 1}
    return {
        "changes.first": _query("first", "How many a page of the log has; a stream takes none.", {"schema": size}),
        "changes.kinds": _query(
            KINDS, "Only changes of these kinds.", {"style": "form", "explode": False, "schema": kinds}
        ),
        "changes.after": _query("after", "Begin after this cursor of changes.", {"schema": _CURSOR}),
    }


def _query(name: str, description: str, more: Part) -> Part:
    return {"name": name, "in": "query", "description": description, **more}


def _page(name: str) -> Schema:
    following = nullable(_CURSOR)
    page = closed({
        "next": described(following, "For `after`, if more is known already; else null."),
        "last": described(_CURSOR, "For `after`, now or later: everything up to here was told."),
    })  # fmt: skip
    return closed({"data": {"type": "array", "items": ref(name + "Change")}, "page": page})


def _change(each: ResourceView) -> Schema:
    found = each.resource
    row = f"The {found.name} after the change, if the caller may read it now; null with `DELETED` and `LEFT`."
    properties: dict[str, Schema] = {
        "cursor": described(_CURSOR, "Resumes after this change."),
        "kind": ref(CHANGE_KIND.name),
        "id": described(dict(found.key.openapi), f"The id of the {found.name}."),
        "at": described(dict(DATETIME.openapi), "When it was changed."),
        found.one: described(nullable(ref(found.name)), row),
    }
    return described(closed(properties), f"A change of one {found.name}.")
