"""The targets of REST paths: a path → what it names in the model.

/posts                   a collection           /posts/<id>/publish      a call of the model's own code
/posts/<id>              one resource           /posts/changes           the changes of a collection
/users/<id>/posts        a relation of it       /posts/batch             where several rows are created
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from diptych.model.model import Model
from diptych.model.view import View, not_yours
from diptych.model.viewer_object import ROOT as VIEWER_PATH
from diptych.model.viewer_object import VIEWER

PATH_ID = "{id}"
"""The id in the name of an operation, and among the inputs of a request."""


class Target(NamedTuple):
    """The target of a path: a collection, one resource, a relation of it, a call of the model's own code, the changes
    of a collection, where several rows of it are created, or the viewer."""

    resource: str
    id: str | None = None
    relation: str = ""
    call: str = ""
    changes: bool = False
    batch: bool = False


def find_target(path: str, model: Model) -> Target | None:
    """Parse a path; None if it names nothing. It is split before it is decoded: %2F does not split."""
    parts = path[1:].split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    resource = model.by_path.get(parts[0])
    if resource is None or len(parts) > 3 or (len(parts) > 1 and not parts[1]):
        return Target(VIEWER) if parts == [VIEWER_PATH] else None
    if len(parts) == 1:
        return Target(resource.name)
    calls = model.calls[resource.name]
    if len(parts) == 2:
        if parts[1] == "changes":
            return Target(resource.name, changes=True)
        if parts[1] == "batch" and resource.offers("create"):
            return Target(resource.name, batch=True)
        call = calls.get(("class", parts[1]), "") if calls else ""
        return Target(resource.name, None if call else parts[1], "", call)
    relation = model.collections[resource.name].get(parts[2])
    if relation is not None:
        return Target(resource.name, parts[1], relation)
    call = calls.get(("row", parts[2]), "")
    return Target(resource.name, parts[1], "", call) if call else None


def check_target(target: Target, view: View) -> None:
    """Refuse a collection that other roles have and this one has not."""
    resource = view.resources.get(target.resource)
    if resource is None or not resource.may("read") or (target.relation and target.relation not in resource.relations):
        raise not_yours(view)


def operation_name(method: str, target: Target, model: Model) -> str:
    """The name of a request for checks: `GET /users/{id}/posts`."""
    if target.resource == VIEWER:
        return f"{method} /{VIEWER_PATH}"
    calls, collections = model.calls[target.resource], model.collections[target.resource]
    last = [segment for (_, segment), name in calls.items() if name == target.call]
    last += [segment for segment, name in collections.items() if name == target.relation]
    parts = [model.resources[target.resource].path, *[PATH_ID] * (target.id is not None), *last]
    return f"{method} /{'/'.join([*parts, *['changes'] * target.changes, *['batch'] * target.batch])}"
