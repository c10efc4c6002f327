"""What a webhook sends: the changes that its owner may see, each as a message with a stable id.

    {"type": "posts.updated", "timestamp": "2026-01-31T12:00:00.000000Z",
     "data": {"eventId": "q3Zt…", "kind": "UPDATED", "rowId": "01a0…", "at": "2026-01-31T12:00:00.000000Z",
              "post": {…}}}

`data` is the change as `GET /posts/changes` reports it, without a cursor. The id of the message is that of the webhook
and that of the event, so it is the same on every try and on every node.
"""

from __future__ import annotations

import json

from msgspec.structs import replace

from diptych.api.query_string import bad_parameter
from diptych.api.rest.query import Query, read_query
from diptych.api.rest.target import Target
from diptych.api.understand import understand_changes
from diptych.engine.watch import BoundWatch, Change, WatchEngine
from diptych.errors import Code, Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model

_LONGEST_QUERY = 4_000


def watch_of(engine: WatchEngine, resource: str, query: str, viewer: Viewer) -> BoundWatch:
    """The Watch of a webhook, under the rules of its owner; a Refusal if that may not follow it."""
    model = engine.engine.model
    target, parsed = _read(model, resource, query)
    measures = parsed.measure(f"webhook /{model.resources[resource].path}/changes", viewer, engine.engine.checks)
    view = model.view(model.signature(viewer))
    wish = understand_changes(target, parsed, view)
    parts = tuple(part for part in wish.ask.parts if part.what != "cursor")
    wish = replace(wish, ask=replace(wish.ask, parts=parts))
    prepared = engine.prepare(wish, view, Code.BAD_REQUEST, measures)
    return engine.follow(prepared, parsed.inputs, viewer)


def check_known(model: Model, resource: str, query: str) -> None:
    """Refuse a Watch of what the model does not have, for any follower: another version of the model may have it."""
    target, parsed = _read(model, resource, query)
    understand_changes(target, parsed, model.trusted(True, frozenset(model.viewer_values)))


def _read(model: Model, resource: str, query: str) -> tuple[Target, Query]:
    """What a webhook follows, and its query as far as that can be read without a role."""
    definition = model.resources.get(resource)
    if definition is None or not definition.followed:
        raise Refusal(Code.NOT_FOUND, f"There is no resource {resource!r} whose changes can be followed.")
    if len(query) > _LONGEST_QUERY:
        raise Refusal(Code.BAD_REQUEST, f"The query of a webhook has at most {_LONGEST_QUERY} characters.")
    target = Target(definition.name, changes=True)
    parsed = read_query(query, target)
    for name in ("after", "first"):
        if name in parsed.parameters:
            raise bad_parameter(name, "a webhook has none")
    return target, parsed


def resource_at(model: Model, path: str) -> str:
    """The name of the resource with this path, or of that name."""
    if path in model.resources:
        return path
    definition = model.by_path.get(path)
    if definition is None:
        raise Refusal(Code.NOT_FOUND, f"There is no resource {path!r}; there are {', '.join(sorted(model.by_path))}.")
    return definition.name


def body_of(change: Change, path: str) -> bytes:
    """The body of the message of a change."""
    kind = change.kind.decode().strip('"').lower()
    return b'{"type":"%b.%b","timestamp":%b,"data":%b}' % (path.encode(), kind.encode(), change.at, change.body(""))


def row_id_of(change: Change) -> str:
    """The id of the row that has changed."""
    return str(json.loads(change.row_id))


def message_id(webhook: str, event: str) -> str:
    """The id of the message of an event."""
    return f"{webhook}_{event}"
